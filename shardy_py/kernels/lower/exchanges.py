"""Memory of the exchanges between lanes on the host, and reductions over lanes at the begin of phases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count

from xdsl.ir import Block

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.dialect.memory_ops import ShuffleReduceOp
from shardy_py.kernels.lower.lane_reductions import LaneReduction, word_type
from shardy_py.kernels.lower.live_threads import strips_of
from shardy_py.kernels.lower.phases import DONE, Phase, Phases
from shardy_py.kernels.lower.writer import ModuleWriter


def slot_name(number: int) -> str:
    """Return the name of the memory of a value that is kept from phase to phase."""
    return f"%kept{number}"


def exchanged_words(phases: Phases, module: ModuleWriter) -> dict[int, list[tuple[str, str]]]:
    """Return, for each phase after an exchange, the words that lanes exchanged: name and type.

    A reduction over lanes has words for its values, and as many others. A phase reads and writes different words, so
    that LLVM can vectorize it. Phases that do not follow each other share words, which keeps them in the cache.
    """
    words: dict[int, list[tuple[str, str]]] = {}
    for phase in phases.phases:
        if phase.after is None:
            continue
        values = phase.after.arguments if isinstance(phase.after, ShuffleReduceOp) else (phase.after.value,)
        types = [word_type(module.type(value.type)) for value in values]
        before = {item.number for item in phases.phases if phase.number in item.exits}
        used = {item for number in before | set(phase.exits) for item in words.get(number, ())}
        words[phase.number] = []
        for type_ in types * (2 if isinstance(phase.after, ShuffleReduceOp) else 1):
            new = next(item for item in _arrays(type_) if item not in used)
            used.add(new)
            words[phase.number].append(new)
    return words


def _arrays(type_: str) -> Iterator[tuple[str, str]]:
    """Yield names of arrays of a type, each with the type."""
    suffix = re.sub(r"\W+", ".", type_).strip(".")
    for number in count():
        yield f"%lanes{number}.{suffix}", type_


def copied_slots(phases: Phases, phase: Phase, module: ModuleWriter) -> list[tuple[str, str]]:
    """Return the slots of the values that a reduction over lanes begins with, where they are only copied before it.

    It may write there if no later phase uses the values.
    """
    op = phase.after
    assert isinstance(op, ShuffleReduceOp)
    before = [item for item in phases.phases if phase.number in item.exits]
    if len(set(op.arguments)) != len(op.arguments):
        return []
    if len(before) != 1 or before[0].after is not None or [list(block.ops) for block in before[0].blocks] != [[op]]:
        return []
    kept, later = [], _blocks_from(phases, phase)
    for value in op.arguments:
        type_ = module.type(value.type)
        is_used = any(use.operation.parent in later for use in value.uses)
        # A vector is kept by its elements.
        if value not in phases.slots or is_used or word_type(type_) != type_ or type_.startswith("<"):
            return []
        kept.append((slot_name(phases.slots.index(value)), type_))
    return kept


def _blocks_from(phases: Phases, phase: Phase) -> set[Block]:
    """Return the blocks of a phase and of all that may follow it."""
    numbers, pending = {phase.number}, [phase.number]
    while pending:
        for number in phases.phases[pending.pop()].exits:
            if number != DONE and number not in numbers:
                numbers.add(number)
                pending.append(number)
    return {block for number in numbers for block in phases.phases[number].blocks}


def lane_reduction(
    phase: Phase, words: Sequence[tuple[str, str]], combining: int, module: ModuleWriter, threads: int, warp: int
) -> LaneReduction:
    """Return the reduction over lanes that a phase begins with.

    Args:
        phase: The phase.
        words: The arrays of its values: those that hold them, then others.
        combining: The threads that combine values.
        module: The text that it becomes part of.
        threads: The threads of a block.
        warp: Those of a warp.

    Raises:
        UnsupportedError: a lane would be in another warp.
    """
    op = phase.after
    assert isinstance(op, ShuffleReduceOp)
    distance = op.max_distance.value.data
    if not 0 < distance < warp:
        message = f"lanes combine values within a warp of {warp}, not with those {distance} further down"
        raise UnsupportedError(Diagnostic("host-shuffle", message, op=op.name))
    arrays = [name for name, _ in words]
    types = tuple(module.type(value.type) for value in op.arguments)
    warps, lanes = strips_of(combining, warp)
    sources, scratch = tuple(arrays[: len(types)]), tuple(arrays[len(types) :])
    return LaneReduction(op.combiner.string_value(), types, sources, scratch, distance, warp, warps, lanes, threads)

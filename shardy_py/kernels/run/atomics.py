"""Atomic updates: made later, one after the other in the order of the threads, so that chunks change nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Operation, Region, SSAValue

from shardy_py.kernels.dialect.memory_ops import AtomicRMWOp
from shardy_py.kernels.passes.vectorize import added_value
from shardy_py.kernels.run.frame import Chunk, Frame, Handler
from shardy_py.kernels.run.memory import Buffer, Pointer, Value
from shardy_py.kernels.run.tensors import Places, places
from shardy_py.kernels.run.threads import Threads
from shardy_py.kernels.run.values import Array, from_words, rank_of, to_words
from shardy_py.support.identity import identity
from shardy_py.values import frozen

Combine = Callable[[Frame, Array, Any], Array]
"""New elements, from a frame that has the used values, the elements that are there, the positions of the threads."""


@frozen(eq=False)
class AtomicUpdates:
    """Atomic updates of some threads by one op.

    Args:
        combine: The new elements.
        buffer: The tensor.
        words: The places of the elements, one per thread.
        threads: The threads.
        values: What the op uses besides the element, per thread or for all.
    """

    combine: Combine
    buffer: Buffer
    words: Any
    threads: Threads
    values: Mapping[SSAValue, Value]


def record(
    frame: Frame,
    op: Operation,
    buffer: Buffer,
    at: Places,
    used: Sequence[SSAValue],
    combine: Combine,
) -> None:
    """Record that active threads update an element.

    Shared memory is updated at the next barrier, other memory when all threads are done: what is read before is
    undefined on a device.

    Args:
        frame: The activation.
        op: The op.
        buffer: The memory.
        at: The places of the elements.
        used: What the op uses besides the element.
        combine: The new elements.

    Raises:
        VerificationError: the memory is constant, or another thread accesses the element at the same time.
    """
    active, words = note(frame, op, buffer, at)
    values = {value: _at_positions(frame.get(value), active, value) for value in used}
    frame.chunk.atomics.append(AtomicUpdates(combine, buffer, words, frame.threads.taken(active), values))


def record_vector(frame: Frame, op: Operation, buffer: Buffer, at: Places, values: Array) -> None:
    """Record that active threads add vectors to neighbours, each element by itself.

    Args:
        frame: The activation.
        op: The op.
        buffer: The memory.
        at: The places of the first elements.
        values: The vectors.
    """
    count = frame.threads.count
    vectors = np.broadcast_to(values, (count, np.shape(values)[-1]))
    for step in range(vectors.shape[1]):
        part = vectors[:, step]
        active, words = note(frame, op, buffer, Places(at.threads, at.words + step, at.stamps))
        update = AtomicUpdates(_adding(part[active]), buffer, words, frame.threads.taken(active), {})
        frame.chunk.atomics.append(update)


def _adding(values: Array) -> Combine:
    def combine(_: Frame, current: Array, positions: Any) -> Array:
        return current + values[positions]

    return combine


def note(frame: Frame, op: Operation, buffer: Buffer, at: Places) -> tuple[Any, Any]:
    """Note atomic updates of elements; return the active threads and the place of each.

    Raises:
        VerificationError: the memory is constant, or another thread accesses the element at the same time.
    """
    active = np.arange(frame.threads.count) if at.threads is None else at.threads
    words = np.broadcast_to(at.words, (len(active),))
    if not buffer.memory.is_writable:
        # No element of such memory is noted; the update has to end the run.
        raise frame.error(int(active[0]), op, "read-only", f"writes to {buffer.memory.name}")
    races = buffer.memory.note_atomic(words, at.stamps)
    if races.any():
        message = f"updates an element of {buffer.memory.name} that another thread accesses with no barrier between"
        frame.report(int(active[np.argmax(races)]), op, "race", message)
    return active, words


def atomic_rmw(frame: Frame, op: AtomicRMWOp) -> list[Value]:
    """Record that active threads update an element by the body of the op."""
    buffer: Buffer = frame.get(op.dest)

    def combine(inner_frame: Frame, current: Array, _: Any) -> Array:
        return inner_frame.run(op.body, [current])[0]

    (type_,) = op.body.block.arg_types
    if isinstance(type_, builtin.VectorType):
        (width,) = type_.get_shape()
        values = frame.get(added_value(op))
        record_vector(frame, op, buffer, places(frame, op, buffer, op.indices, extent=width), values)
        return [buffer]
    record(frame, op, buffer, places(frame, op, buffer, op.indices), _outer_values(op.body), combine)
    return [buffer]


def _at_positions(value: Value, positions: Any, typed: SSAValue) -> Value:
    if isinstance(value, Buffer | Pointer) or np.ndim(value) == rank_of(typed.type):
        return value
    return value[positions]


def _outer_values(body: Region) -> Sequence[SSAValue]:
    """Return the values that a region uses and does not compute itself."""
    outer: dict[SSAValue, None] = {}
    for op in body.walk():
        for value in op.operands:
            block = value.owner.parent if not hasattr(value.owner, "args") else value.owner
            if block is None or not body.is_ancestor(block):
                outer[value] = None
    return list(outer)


def run_atomics(chunk: Chunk, *, shared: bool) -> None:
    """Make the recorded updates of shared memory, or of other memory.

    Args:
        chunk: The blocks that run.
        shared: Which.
    """
    due = [update for update in chunk.atomics if update.buffer.memory.is_shared == shared]
    chunk.atomics[:] = [update for update in chunk.atomics if update.buffer.memory.is_shared != shared]
    memories = {identity(update.buffer.memory): update.buffer.memory for update in due}
    for memory in memories.values():
        _run_in_order(chunk, [update for update in due if update.buffer.memory is memory])


def _run_in_order(chunk: Chunk, updates: Sequence[AtomicUpdates]) -> None:
    """Apply the updates of one memory in rounds, one update of each element per round."""
    words = np.concatenate([update.words for update in updates])
    numbers = np.concatenate([update.threads.numbers for update in updates])
    sources = np.repeat(np.arange(len(updates)), [len(update.words) for update in updates])
    positions = np.concatenate([np.arange(len(update.words)) for update in updates])
    order = np.lexsort((sources, numbers, words))
    ordered = words[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ranks = np.arange(len(ordered)) - np.repeat(begins, np.diff(np.r_[begins, len(ordered)]))
    by_round = np.argsort(ranks, kind="stable")
    ends = np.cumsum(np.bincount(ranks))
    for first, last in zip(np.r_[0, ends[:-1]], ends, strict=True):
        chosen = order[by_round[first:last]]
        for source in np.unique(sources[chosen]):
            _update(chunk, updates[source], positions[chosen[sources[chosen] == source]])


def _update(chunk: Chunk, update: AtomicUpdates, positions: Any) -> None:
    """Apply the updates of some threads of one op, all of different elements."""
    frame = Frame(chunk, update.threads.taken(positions))
    for value, thread_values in update.values.items():
        frame.bind(value, _at_positions(thread_values, positions, value))
    words = update.words[positions]
    memory, type_ = update.buffer.memory, update.buffer.type_
    new = update.combine(frame, from_words(memory.words[words], type_), positions)
    memory.words[words] = to_words(np.asarray(new), type_)


HANDLERS: Mapping[str, Handler] = MappingProxyType({"xla_gpu.atomic_rmw": atomic_rmw})

"""Names of the functions that fragments become, and which fragments share one.

Mirrors mpmd/transforms/export/naming_utils.cc.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise

from shardy_py.ir.graph.attributes import freeze
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.mpmd.dialect.fragments import body_of, call_counter_of, mesh_of, origins_of, stage_of
from shardy_py.mpmd.dialect.op_names import IN_SHARDINGS, OUT_SHARDINGS

_MOST_CHARACTERS = 200
_BUFFERS = ("arg_attrs", "res_attrs")
_SHARDINGS = (IN_SHARDINGS, OUT_SHARDINGS)


def body_key(fragment: Op) -> Hashable:
    """Return a value that is equal for fragments of one mesh with equal bodies, whatever their shardings."""
    attributes = tuple(freeze(fragment.attributes.get(name)) for name in _BUFFERS)
    return mesh_of(fragment), attributes, _block_key(body_of(fragment), {})


def signature_key(fragment: Op) -> Hashable:
    """Return a value that is equal for fragments with equal bodies that can share a function: equal shardings."""
    attributes = tuple(freeze(fragment.attributes.get(name)) for name in _SHARDINGS)
    types = tuple(value.type.text for value in (*fragment.operands, *fragment.results))
    return types, attributes


def _block_key(block: Block, numbers: dict[int, int]) -> Hashable:
    for argument in block.arguments:
        numbers[argument.id] = len(numbers)
    keys = [tuple(argument.type.text for argument in block.arguments)]
    for op in block.ops:
        operands = tuple(numbers.get(value.id, -1) for value in op.operands)
        for value in op.results:
            numbers[value.id] = len(numbers)
        regions = tuple(tuple(_block_key(inner, numbers) for inner in region.blocks) for region in op.regions)
        types = tuple(value.type.text for value in op.results)
        keys.append((op.name, operands, types, freeze(dict(op.attributes.items())), regions))  # type: ignore[arg-type]
    return tuple(keys)


def function_name(group: int, fragments: Sequence[Op], program: Program, *, has_backward: bool) -> str:
    """Return the name of the function of fragments that share one: ``p0_stage1_fwd_calls0to3.step``."""
    first = fragments[0]
    module = module_name(program)
    name = f"p{group}_{_base_name(first)}{_phase(first) if has_backward else ''}{_calls(fragments)}"
    if len(name) + len(module) + 1 > _MOST_CHARACTERS:
        name = name[: _MOST_CHARACTERS - len(module) - 6] + "<...>"
    return f"{name}.{module}"


def module_name(program: Program) -> str:
    """Return the name of a program without the prefix of `jax.jit`, ``main`` where it has none."""
    return str(program.attributes.get("sym_name") or "main").removeprefix("jit_")


def _base_name(fragment: Op) -> str:
    stage, origins = stage_of(fragment), origins_of(fragment)
    if stage is not None:
        return f"stage{stage}"
    if not origins:
        return "inferred"
    counts = Counter(re.sub(r"_\d+$", "", origin.name) for origin in origins)
    base = min(counts, key=lambda name: (-counts[name], name))
    numbers = [match[1] for origin in origins if (match := re.fullmatch(re.escape(base) + r"_(\d+)", origin.name))]
    if numbers:
        base += f"_{numbers[0]}" if len(numbers) == 1 else f"_{numbers[0]}:{numbers[-1]}"
    return base + ("..." if len(counts) > 1 else "")


def _phase(fragment: Op) -> str:
    counts = {origin.transpose_count for origin in origins_of(fragment)}
    if len(counts) != 1:
        return ""
    count = counts.pop()
    return {0: "_fwd", 1: "_bwd"}.get(count, f"_transpose{count}")


def _calls(fragments: Sequence[Op]) -> str:
    counters = [call_counter_of(item) for item in fragments]
    if None in counters:
        return ""
    numbers = [number for number in counters if number is not None]
    if len(numbers) == 1:
        return f"_call{numbers[0]}"
    steps = {second - first for first, second in pairwise(numbers)}
    if steps == {1}:
        return f"_calls{numbers[0]}to{numbers[-1]}"
    return f"_calls{numbers[0]}from{numbers[-1]}" if steps == {-1} else ""


def argument_shardings(fragment: Op) -> tuple[Mapping[int, object], Mapping[int, object]]:
    """Return number to sharding of the arguments and of the results that have one, in types or attributes."""
    from shardy_py.mpmd.dialect.types import mesh_tensor_of

    def of(values: Sequence[Value], name: str) -> dict[int, object]:
        listed = fragment.attributes.get(name)
        result: dict[int, object] = {} if listed is None else dict(enumerate(listed.shardings))
        for number, value in enumerate(values):
            type_ = mesh_tensor_of(value)
            if type_ is not None and type_.sharding is not None:
                result[number] = type_.sharding
        return result

    return of(fragment.operands, IN_SHARDINGS), of(fragment.results, OUT_SHARDINGS)

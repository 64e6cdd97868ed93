"""Features ``manual_computation``, ``named_computation``, ``unknown_regions``: more ops with regions."""

from __future__ import annotations

from math import prod

from attrs import evolve

from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION, NAMED_COMPUTATION, REGION_RETURN
from shardy_py.oracle.generate.control_flow import result_for
from shardy_py.oracle.generate.program import BlockBuilder, GeneratedValue, ResultType, region_text
from shardy_py.oracle.generate.shardings import Axis, AxisPiece, dim_text
from shardy_py.values import frozen


@frozen
class _Local:
    """A sharding at the border of a manual computation, and the shape inside for a shape outside."""

    sharding: str
    outer: tuple[int, ...]
    inner: tuple[int, ...]


def _border(block: BlockBuilder, shape: tuple[int, ...], manual: list[Axis], *, from_inside: bool) -> _Local:
    """Return a sharding whose dimensions begin with manual axes."""
    choices, mesh = block.choices, block.module.mesh
    left, free = (
        choices.shuffled(manual),
        [axis for axis in mesh.axes if axis not in manual and axis.name not in block.without],
    )
    free = choices.shuffled(free)
    dims, outer, inner = [], [], []
    for size in shape:
        dim_axes: list[Axis] = []
        while (
            left and choices.chance(50) and (from_inside or size % (prod(a.size for a in dim_axes) * left[0].size) == 0)
        ):
            dim_axes.append(left.pop(0))
        manual_size = prod(axis.size for axis in dim_axes)
        local = size if from_inside else size // manual_size
        extra = [free.pop(0)] if free and choices.chance(25) and local % free[0].size == 0 else []
        pieces = [AxisPiece(axis.name, axis.size) for axis in [*dim_axes, *extra]]
        dims.append(dim_text(pieces, is_open=choices.chance(block.module.style.open_dims)))
        outer.append(size * manual_size if from_inside else size)
        inner.append(local)
    names = {axis.name for axis in left}
    unused = [f'"{axis.name}"' for axis in mesh.axes if axis.name in names]
    tail = f", replicated={{{', '.join(unused)}}}" if unused and choices.chance(50) else ""
    return _Local(f"<{mesh.reference}, [{', '.join(dims)}]{tail}>", tuple(outer), tuple(inner))


def manual_computation(block: BlockBuilder) -> None:
    """A computation in which some axes are manual."""
    choices, mesh = block.choices, block.module.mesh
    usable = [axis for axis in mesh.axes if axis.name not in block.without]
    if not usable or not mesh.is_full:
        return
    manual = choices.some(usable, low=0 if choices.chance(20) else 1)
    operands = [block.value(low=1) for _ in range(choices.integer(1, 3))]
    borders = [_border(block, value.dims, manual, from_inside=False) for value in operands]
    kinds: list[ResultType] = [(item.inner, value.dtype) for item, value in zip(borders, operands, strict=True)]
    body, arguments = block.child(kinds, isolated=True)
    body.without = block.without | {axis.name for axis in manual}
    block.module.emit(body, choices.integer(1, 4))
    results = [body.value() for _ in range(choices.integer(1, 2))]
    outs = [_border(block, value.dims, manual, from_inside=True) for value in results]
    head = ", ".join(f"{value.name}: {value.type}" for value in arguments)
    inner = region_text(body, [], REGION_RETURN, results)
    types = [(item.outer, value.dtype) for item, value in zip(outs, results, strict=True)]
    text = (
        f"sdy.manual_computation({_names(operands)}) in_shardings=[{', '.join(item.sharding for item in borders)}] "
        f"out_shardings=[{', '.join(item.sharding for item in outs)}] "
        f"manual_axes={{{', '.join(f'{chr(34)}{axis.name}{chr(34)}' for axis in manual)}}} ({head}) {{\n{inner}\n}} "
        f": ({_types(operands)}) -> ({', '.join(GeneratedValue('', *item).type for item in types)})"
    )
    block.raw(MANUAL_COMPUTATION, operands, types, text)


def _names(values: list[GeneratedValue]) -> str:
    return ", ".join(value.name for value in values)


def _types(values: list[GeneratedValue]) -> str:
    return ", ".join(value.type for value in values)


def named_computation(block: BlockBuilder) -> None:
    """A computation with a name, with or without shardings at its border."""
    choices = block.choices
    operands = [block.value() for _ in range(choices.integer(1, 3))]
    kinds: list[ResultType] = [(value.shape, value.dtype) for value in operands]
    body, arguments = block.child(kinds, isolated=True)
    block.module.emit(body, choices.integer(1, 4))
    results = [body.value() for _ in range(choices.integer(1, 2))]
    style = evolve(block.module.style, priorities=0, unreduced=0)
    parts = [
        f" {label}=[{', '.join(block.sharding(value.shape, style) for value in values)}]" if choices.chance(40) else ""
        for label, values in (("in_shardings", operands), ("out_shardings", results))
    ]
    head = ", ".join(f"{value.name}: {value.type}" for value in arguments)
    text = (
        f'sdy.named_computation<"f{block.function.names}">({_names(operands)}){parts[0]}{parts[1]} ({head}) {{\n'
        f"{region_text(body, [], REGION_RETURN, results)}\n}} : ({_types(operands)}) -> ({_types(results)})"
    )
    block.raw(NAMED_COMPUTATION, operands, [(value.shape, value.dtype) for value in results], text)


def unknown_region(block: BlockBuilder) -> None:
    """An op of an unknown dialect with a region, which may use the values around it.

    The reference crashes on block arguments whose owner it does not know, so they have a switch of their own. In a
    module with such an op it does not see who calls a function, so the two do not go together here.
    """
    if block.module.functions:
        return
    operands = [block.value() for _ in range(block.choices.integer(1, 2))]
    with_arguments = block.module.has("unknown_region_arguments")
    body, arguments = block.child([(value.shape, value.dtype) for value in operands if with_arguments])
    body.opaque = True
    block.module.emit(body, block.choices.integer(1, 3))
    kinds: list[ResultType] = [(value.shape, value.dtype) for value in operands]
    results = [result_for(body, kind) for kind in kinds]
    block.op("test.region", operands, kinds, regions=[region_text(body, arguments, "test.yield", results)])


EMITTERS = {
    "manual_computation": ((2, manual_computation),),
    "named_computation": ((2, named_computation),),
    "unknown_regions": ((1, unknown_region),),
}

"""Features ``while``, ``case``, ``optimization_barrier`` and ``data_flow_edges`` (explicit edge ops), ``tokens``."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.ir.graph.op_names import DATA_FLOW_EDGE
from shardy_py.oracle.generate.program import TOKEN, BlockBuilder, GeneratedValue, ResultType, region_text


def flow(
    block: BlockBuilder,
    name: str,
    operands: Sequence[GeneratedValue],
    results: Sequence[ResultType],
    regions: Sequence[str],
) -> None:
    """Add a data-flow op: plain, or with an edge op on some of its results.

    A value that has an edge must have no other use, so later ops see the result of the edge instead.
    """
    choices = block.choices
    edges = block.module.has("data_flow_edges") and choices.chance(60)
    values = block.op(name, operands, results, regions=regions, sharded=not edges, keep=False)
    for value in values:
        if not edges or value.shape is None or choices.chance(10):
            block.values.append(value)
            continue
        sharding = f" sharding={block.sharding(value.shape)}" if choices.chance(25) else ""
        text = f"sdy.data_flow_edge {value.name}{sharding} : {value.type}"
        block.raw(DATA_FLOW_EDGE, [value], [(value.shape, value.dtype)], text, pinned="}p" in sharding)


def carried(block: BlockBuilder, low: int, high: int) -> list[GeneratedValue]:
    """Return values that go through an op; the same one twice now and then."""
    values = [block.value() for _ in range(block.choices.integer(low, high))]
    if values and block.choices.chance(10):
        values.append(values[0])
    if block.module.has("tokens") and block.choices.chance(15):
        values.append(block.op("stablehlo.create_token", [], [(None, TOKEN)], sharded=False, keep=False)[0])
    return values


def result_for(block: BlockBuilder, kind: ResultType, default: GeneratedValue | None = None) -> GeneratedValue:
    """Return a value of a type to give out of a region, preferably one made in it."""
    shape, dtype = kind
    if shape is None:
        if default is not None:
            return default
        return block.op("stablehlo.create_token", [], [(None, TOKEN)], sharded=False, keep=False)[0]
    matching = [value for value in block.values if (value.shape, value.dtype) == kind]
    if matching and block.choices.chance(85):
        return matching[-1]
    if default is not None and block.choices.chance(50):
        return default
    return block.tensor(shape, dtype)


def while_(block: BlockBuilder) -> None:
    """A loop over some values, counting in one of them."""
    start = block.tensor((), "i32")
    operands = [*carried(block, 1, 4), start]
    kinds: list[ResultType] = [(value.shape, value.dtype) for value in operands]
    condition, values = block.child(kinds)
    limit = condition.tensor((), "i32")
    direction = {"comparison_direction": "#stablehlo<comparison_direction LT>"}
    going = condition.op("stablehlo.compare", [values[-1], limit], [((), "i1")], direction, sharded=False)
    first = region_text(condition, values, "stablehlo.return", going)
    body, arguments = block.child(kinds)
    block.module.emit(body, block.choices.integer(1, 4))
    count = body.op("stablehlo.add", [arguments[-1], body.tensor((), "i32")], [((), "i32")], sharded=False)
    results = [result_for(body, kind, value) for kind, value in zip(kinds[:-1], arguments, strict=False)]
    second = region_text(body, arguments, "stablehlo.return", [*results, *count])
    flow(block, "stablehlo.while", operands, kinds, [first, second])


def case(block: BlockBuilder) -> None:
    """A choice between branches by an index, or between two by a predicate."""
    choices = block.choices
    results: list[ResultType] = [
        (value.shape, value.dtype) for value in (block.value() for _ in range(choices.integer(1, 3)))
    ]
    is_if = choices.chance(15)
    regions = []
    for _ in range(2 if is_if else choices.integer(1, 3)):
        branch, _arguments = block.child()
        block.module.emit(branch, choices.integer(0, 3))
        regions.append(region_text(branch, [], "stablehlo.return", [result_for(branch, kind) for kind in results]))
    if is_if:
        block.op("stablehlo.if", [block.tensor((), "i1")], results, regions=regions)
        return
    flow(block, "stablehlo.case", [block.tensor((), "i32")], results, regions)


def optimization_barrier(block: BlockBuilder) -> None:
    """Values that pass a barrier together."""
    operands = carried(block, 1, 4)
    flow(block, "stablehlo.optimization_barrier", operands, [(value.shape, value.dtype) for value in operands], [])


EMITTERS = {
    "while": ((2, while_),),
    "case": ((2, case),),
    "optimization_barrier": ((2, optimization_barrier),),
}

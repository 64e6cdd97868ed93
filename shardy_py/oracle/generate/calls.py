"""Features ``calls`` (private functions, called once or more, also in regions) and ``func_data_flow_edges``."""

from __future__ import annotations

from shardy_py.ir.graph.op_names import CALL, FUNC_DATA_FLOW_EDGE
from shardy_py.oracle.generate.program import BlockBuilder, Function, GeneratedValue, Module, ResultType, region_text


def call(block: BlockBuilder) -> None:
    """A call of one of the functions made before this one."""
    callee = _callee(block)
    if callee is not None:
        _call(block, callee)


def _callee(block: BlockBuilder) -> Function | None:
    functions = block.module.functions
    callees = functions[: functions.index(block.function)] if block.function in functions else functions
    return block.choices.pick(callees) if callees and not block.opaque else None


def _call(block: BlockBuilder, callee: Function) -> list[GeneratedValue]:
    operands = [block.tensor(value.dims, value.dtype) for value, _ in callee.arguments]
    attributes = {"callee": f"@{callee.name}"}
    with_edges = callee.name.startswith("edges")
    kinds = [(value.shape, value.dtype) for value, _ in callee.results]
    values = block.op(CALL, operands, kinds, attributes, keep=not with_edges, sharded=not with_edges)
    if with_edges:
        for value in values:
            edge(block, value)
    return values


def calls_inside_and_outside(block: BlockBuilder) -> None:
    """A call in a loop or a branch and one of the same function beside it, before or after."""
    callee = _callee(block)
    if callee is None or callee.name.startswith("edges") or block.depth >= block.module.depth_limit:
        return
    around = [emit for feature, emit in (("while", _loop), ("case", _branches)) if block.module.has(feature)]
    first = block.choices.chance(50)
    if first:
        _call(block, callee)
    if around:
        block.choices.pick(around)(block, callee, [(value.shape, value.dtype) for value, _ in callee.results])
    if not first or block.choices.chance(30):
        _call(block, callee)


def _loop(block: BlockBuilder, callee: Function, kinds: list[ResultType]) -> None:
    start = block.tensor((), "i32")
    operands = [*(block.tensor(shape or (), dtype) for shape, dtype in kinds), start]
    carried: list[ResultType] = [*kinds, ((), "i32")]
    condition, values = block.child(carried)
    direction = {"comparison_direction": "#stablehlo<comparison_direction LT>"}
    limit = condition.tensor((), "i32")
    going = condition.op("stablehlo.compare", [values[-1], limit], [((), "i1")], direction, sharded=False)
    body, arguments = block.child(carried)
    results = [*_call(body, callee), arguments[-1]]
    regions = [
        region_text(condition, values, "stablehlo.return", going),
        region_text(body, arguments, "stablehlo.return", results),
    ]
    block.op("stablehlo.while", operands, carried, regions=regions)


def _branches(block: BlockBuilder, callee: Function, kinds: list[ResultType]) -> None:
    predicate = block.tensor((), "i1")
    regions = []
    for is_called in (True, block.choices.chance(50)):
        branch, _ = block.child()
        results = _call(branch, callee) if is_called else [branch.tensor(shape or (), dtype) for shape, dtype in kinds]
        regions.append(region_text(branch, [], "stablehlo.return", results))
    block.op("stablehlo.if", [predicate], kinds, regions=regions)


def edge(block: BlockBuilder, value: GeneratedValue) -> GeneratedValue:
    """Add the edge op of a call result or of a function argument."""
    text = f"sdy.func_data_flow_edge {value.name} : {value.type}"
    return block.raw(FUNC_DATA_FLOW_EDGE, [value], [(value.shape, value.dtype)], text)[0]


def add_functions(module: Module, size: int) -> None:
    """Add up to three private functions that later ones may call."""
    choices = module.choices
    for index in range(choices.integer(1, 3)):
        edges = module.has("func_data_flow_edges") and choices.chance(50)
        function = Function(module, f"{'edges' if edges else 'callee'}_{index}", private=True)
        for _ in range(choices.integer(1, 3)):
            function.argument(module.shape(), "f32")
        block = function.body
        if edges:
            arguments, block.values[:] = list(block.values), []
            for value in reversed(arguments):
                edge(block, value)
        module.functions.append(function)
        module.emit(block, max(2, size // 4))
        module.finish(function)


EMITTERS = {"calls": ((5, call), (2, calls_inside_and_outside))}

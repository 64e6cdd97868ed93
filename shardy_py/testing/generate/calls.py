"""Features ``calls`` (private functions, called once, twice or from each other) and ``func_data_flow_edges``."""

from __future__ import annotations

from shardy_py.testing.generate.program import Block, Function, Module, Tensor


def call(block: Block) -> None:
    """A call of one of the functions made before this one."""
    functions = block.module.functions
    callees = functions[: functions.index(block.function)] if block.function in functions else functions
    if not callees or block.opaque:
        return
    callee = block.choices.pick(callees)
    operands = [block.tensor(value.dims, value.dtype) for value, _ in callee.arguments]
    attributes = {"callee": f"@{callee.name}"}
    with_edges = callee.name.startswith("edges")
    kinds = [(value.shape, value.dtype) for value, _ in callee.results]
    values = block.op("func.call", operands, kinds, attributes, keep=not with_edges, sharded=not with_edges)
    if with_edges:
        for value in values:
            edge(block, value)


def edge(block: Block, value: Tensor) -> Tensor:
    """Add the edge op of a call result or of a function argument."""
    text = f"sdy.func_data_flow_edge {value.name} : {value.type}"
    return block.raw("sdy.func_data_flow_edge", [value], [(value.shape, value.dtype)], text)[0]


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


EMITTERS = {"calls": ((3, call),)}

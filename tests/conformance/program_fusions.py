"""The pieces of whole programs as modules of their own, which XLA:CPU can run beside their kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir

from shardy_py.frontends.mlir import import_module
from shardy_py.ir.graph.program import Program
from shardy_py.kernels.fusion.fusion import Fusion
from shardy_py.kernels.pieces.greedy import pieces_of
from shardy_py.kernels.pieces.read import blocks_of
from shardy_py.plugins.installed import installed_registry

_SHARDING = "sdy.sharding"


def program_fusions(text: str) -> list[tuple[Fusion, str]]:
    """The pieces of all functions of a program, each with a module whose main function computes it."""
    registry = installed_registry()
    with jax_mlir.make_ir_context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        program = import_module(module)
        natives = _natives(program, module)
        bodies = [block for function in program.functions.values() for block in function.regions[0].blocks]
        pieces = pieces_of([block for body in bodies for block in blocks_of(body, registry)], registry, {})
        return [(fusion, str(_module_of(fusion, natives))) for fusion in pieces]


def _natives(program: Program, module: ir.Module) -> dict[int, Any]:
    """The native op of every op, by its id: both have them in one order."""
    operations = list(_walk(module.operation.regions))
    ops = list(program.walk())
    names = [op.name for op in ops]
    assert [operation.name for operation in operations] == names
    return {op.id: operation for op, operation in zip(ops, operations, strict=True)}


def _walk(regions: Sequence[Any]) -> Iterator[Any]:
    for region in regions:
        for block in region.blocks:
            for op in block.operations:
                yield op.operation
                yield from _walk(op.operation.regions)


def _module_of(fusion: Fusion, natives: dict[int, Any]) -> ir.Module:
    """A module that computes the roots of a fusion."""
    location = ir.Location.unknown()
    module = ir.Module.create(location)
    types = [ir.Type.parse(str(value.type)) for value in fusion.parameters]
    results = [ir.Type.parse(str(value.type)) for value in fusion.roots]
    with location, ir.InsertionPoint(module.body):
        function = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get("main"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, results)),
            },
            regions=1,
        )
        body = function.regions[0].blocks.append(*types)
        known = {value.id: argument for value, argument in zip(fusion.parameters, body.arguments, strict=True)}
        with ir.InsertionPoint(body):
            for op in fusion.ops:
                operands = [known[value.id] for value in op.operands]
                # Constraints are about several devices; the kernel of one gives their operand.
                if op.name.startswith("sdy."):
                    known[op.results[0].id] = operands[0]
                    continue
                clone = natives[op.id].clone()
                for number, operand in enumerate(operands):
                    clone.operands[number] = operand
                if _SHARDING in clone.attributes:
                    del clone.attributes[_SHARDING]
                known |= {value.id: result for value, result in zip(op.results, clone.results, strict=True)}
            ir.Operation.create("func.return", operands=[known[root.id] for root in fusion.roots])
    module.operation.verify()
    return module

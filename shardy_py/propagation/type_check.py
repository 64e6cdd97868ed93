"""Check of the types that can be sharded."""

from __future__ import annotations

from collections.abc import Collection

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.op_index import all_ops
from shardy_py.ir.graph.op_values import region_arguments
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.support.identity import identity


def check_types(program: Program, *, arguments: bool = False) -> None:
    """Check that every result has a type that can be sharded, or none at all.

    Mirrors basic_propagation.cc::allValidShapes.

    Args:
        program: The program.
        arguments: Whether to check the arguments of blocks, too. The reference does not, although it leaves such
            arguments without a sharding.

    Raises:
        UnsupportedError: a dynamic shape or a tuple; every such op is named.
    """
    if not any(map(_type_problem, _distinct_types(program, arguments))):
        return
    found: list[Diagnostic] = []
    for op in all_ops(program):
        for value in (*op.results, *region_arguments(op)) if arguments else op.results:
            _note_problem(value, op, found)
    raise UnsupportedError(*found)


def _distinct_types(program: Program, arguments: bool) -> Collection[Type]:
    """Return the types of all results, each once: equal ones are mostly the same object, told apart much faster."""
    ops = all_ops(program)
    types = {identity(value.type): value.type for op in ops for value in op.results}
    if arguments:
        types.update({identity(value.type): value.type for op in ops if op.regions for value in region_arguments(op)})
    return types.values()


def _note_problem(value: Value, op: Op, found: list[Diagnostic]) -> None:
    """Note a value with a type that cannot be sharded."""
    message = _type_problem(value.type)
    if message is not None:
        hint = "give every dimension a size, and pass the elements of a tuple one by one"
        what = f"argument {value.index}: " if isinstance(value.owner, Block) else ""
        found.append(Diagnostic("unsupported-type", f"{what}{message}", op.location, op.name, hint))


def _type_problem(type_: Type) -> str | None:
    if isinstance(type_, TensorType):
        if type_.is_static:
            return None
        return f"Shardy propagation only supports ranked tensors with a static shape. type: {type_}"
    if type_.is_tuple:
        return f"Shardy propagation doesn't support tuples: {type_}"
    if type_.text.startswith("tensor<*"):
        return f"Shardy propagation only supports ranked tensors with a static shape. type: {type_}"
    return None

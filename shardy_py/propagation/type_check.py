"""Which types can be sharded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.finding import all_ops
from shardy_py.ir.graph import Block, Op, Program, Value
from shardy_py.ir.types import OpaqueType, TensorType


def check_types(program: Program, *, arguments: bool = False) -> None:
    """Check that every result has a type that can be sharded, or none at all.

    Args:
        program: The program.
        arguments: Whether to check the arguments of blocks, too. The reference does not, although it leaves such
            arguments without a sharding.

    Raises:
        UnsupportedError: a dynamic shape or a tuple; every such op is named.
    """
    found: list[Diagnostic] = []
    # Equal types are mostly the same object, and identities are hashed much faster. The values keep the types alive.
    seen: set[int] = set()
    for op in all_ops(program):
        values: Sequence[Value] = op.results
        if arguments and op.regions:
            values = [
                *values,
                *(value for region in op.regions for block in region.blocks for value in block.arguments),
            ]
        for value in values:
            if id(value.type) not in seen and not _is_bad(value, op, found):
                seen.add(id(value.type))
    if found:
        raise UnsupportedError(*found)


def _arguments(op: Op) -> Iterator[Value]:
    return (argument for region in op.regions for block in region.blocks for argument in block.arguments)


def _is_bad(value: Value, op: Op, found: list[Diagnostic]) -> bool:
    """Return whether a value has a type that cannot be sharded, and note it."""
    message = _type_problem(value.type)
    if message is None:
        return False
    hint = "give every dimension a size, and pass the elements of a tuple one by one"
    what = f"argument {value.index}: " if isinstance(value.owner, Block) else ""
    found.append(Diagnostic("unsupported-type", f"{what}{message}", op.location, op.name, hint))
    return True


def _type_problem(type_: TensorType | OpaqueType) -> str | None:
    if isinstance(type_, TensorType):
        if type_.is_static:
            return None
        return f"Shardy propagation only supports ranked tensors with a static shape. type: {type_}"
    if type_.is_tuple:
        return f"Shardy propagation doesn't support tuples: {type_}"
    if type_.text.startswith("tensor<*"):
        return f"Shardy propagation only supports ranked tensors with a static shape. type: {type_}"
    return None

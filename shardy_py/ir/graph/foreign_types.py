"""Write values whose types belong to a dialect, such as ``!torch.vtensor<[2,3],f32>``.

Shardy lets its attribute ``sdy.sharding`` and its ops stand with builtin types only. On tensors of other types, what is
written has ``shardy.sharding`` and ``shardy.reshard`` instead, which MLIR takes as they are; they are read again as if
they were Shardy's. In the op graph they always have Shardy's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType

SHARDY = "sdy.sharding"
FOREIGN = "shardy.sharding"
_SHARDY_DIALECT = "sdy."
_FOREIGN_DIALECT = "shardy."
_TAKEN_BY_SHARDY = "!mpmd."
"""Tensors on a mesh are of Shardy's other dialect, and its attributes stand with them."""


def native_name(op: Op) -> str:
    """Return the name with which an op is written."""
    name = op.name
    if name.startswith(_SHARDY_DIALECT) and any(map(_is_foreign_tensor, (*op.operands, *op.results))):
        return _FOREIGN_DIALECT + name.removeprefix(_SHARDY_DIALECT)
    return name


def shardy_name(name: str) -> str:
    """Return the name in the op graph of an op that was read."""
    if not name.startswith(_FOREIGN_DIALECT):
        return name
    return _SHARDY_DIALECT + name.removeprefix(_FOREIGN_DIALECT)


def rename_to_foreign(program: Program) -> None:
    """Give the attributes with shardings of foreign values the name under which they are written."""
    _rename(program, SHARDY, FOREIGN)


def rename_to_shardy(program: Program) -> None:
    """Give the attributes with shardings of foreign values the name that they have in the op graph."""
    _rename(program, FOREIGN, SHARDY)


def _rename(program: Program, old: str, new: str) -> None:
    for op in program.walk():
        if op.name == FUNCTION:
            for name, values in _interface(op):
                items = op.attributes.get(name)
                if items:
                    _set(op, name, tuple([_renamed(*pair, old, new) for pair in zip(items, values, strict=True)]))
        elif old in op.attributes and any(map(_is_foreign_tensor, op.results)):
            op.attributes[new] = op.attributes[old]
            del op.attributes[old]


def _interface(function: Op) -> Iterator[tuple[str, Sequence[Value]]]:
    blocks = function.regions[0].blocks if function.regions else ()
    if blocks:
        yield "arg_attrs", blocks[0].arguments
    yield "res_attrs", function.function_results


def _renamed(item: Any, value: Value, old: str, new: str) -> Any:
    if old not in item or not _is_foreign_tensor(value):
        return item
    return {new if name == old else name: part for name, part in item.items()}


def _is_foreign_tensor(value: Value) -> bool:
    """Return whether Shardy's own verifiers do not take the type of a value, whose shape comes from a plugin."""
    type_ = value.type
    return isinstance(type_, TensorType) and type_.is_foreign and not type_.text.startswith(_TAKEN_BY_SHARDY)


def _set(op: Op, name: str, items: tuple[Any, ...]) -> None:
    if items != tuple(op.attributes[name]):
        op.attributes[name] = items

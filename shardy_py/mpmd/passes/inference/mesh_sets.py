"""Use sets and src sets on ops, arguments and results, and which ops need a mesh."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from shardy_py.ir.graph.op_names import FUNCTION, MESH, RETURN
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.mpmd.dialect.calls import attributes_at, block_of, set_attributes_at
from shardy_py.mpmd.dialect.op_names import FOR, FRAGMENT
from shardy_py.mpmd.dialect.origins import MeshSet, parse_mesh_set

BROADCAST_IN = "broadcast_in"


def is_meshless(op: Op) -> bool:
    """Return whether an op of a function or loop needs a mesh: not one of this dialect, and not a terminator."""
    return not op.name.startswith("mpmd.") and op.name not in (FUNCTION, RETURN, MESH)


def blocks_of(function: Op) -> Iterator[Block]:
    """Iterate over the blocks whose ops are not in a fragment: the function's own, and those of its loops."""
    stack = [block_of(function)]
    while stack:
        block = stack.pop()
        yield block
        stack.extend(op.regions[0].block for op in block.ops if op.name == FOR)


def get_set(attributes: Any, name: str) -> MeshSet | None:
    """Return a set in attributes, or None where there is none, which means any mesh for src sets, none for use sets."""
    value = attributes.get(name)
    return None if value is None else parse_mesh_set(value)


def set_of_argument(function: Op, index: int, name: str) -> MeshSet | None:
    """Return a set of an argument of a function."""
    items = function.attributes.get("arg_attrs")
    return get_set(items[index], name) if items else None


def set_of_result(function: Op, index: int, name: str) -> MeshSet | None:
    """Return a set of a result of a function."""
    items = function.attributes.get("res_attrs")
    return get_set(items[index], name) if items else None


def put_at(function: Op, where: str, count: int, index: int, name: str, value: MeshSet) -> None:
    """Set a set of an argument or result of a function or loop."""
    items = attributes_at(function, where, count)
    items[index][name] = value.attribute
    set_attributes_at(function, where, items)


def user_in_block(user: Op, block: Block) -> Op | None:
    """Return the op of a block that a user is or is inside of."""
    current: Op | None = user
    while current is not None and current.parent is not block:
        current = current.parent_op
    return current


def used_values(op: Op) -> list[Value]:
    """Return the operands of an op and what its regions use from outside, each once."""
    values = {value.id: value for value in op.operands}
    if op.regions and op.name != FRAGMENT:
        inside = {inner.id for inner in op.walk()}
        for inner in op.walk():
            for value in inner.operands:
                if value.owning_op.id not in inside or (value.owning_op is op and value.defining_op is op):
                    values.setdefault(value.id, value)
    return list(values.values())


def preferred_mesh(use_set: MeshSet | None, available: MeshSet | None) -> str | None:
    """Return the first mesh by name in both sets, else of the available ones, else of the use set.

    Meshes in the use set because of a broadcast come last.
    """
    candidates = [
        name for name in (use_set or MeshSet()).names if available is None or name in available or "*" in available
    ]
    if not candidates and available is not None:
        candidates = [name for name in available.names if name != "*"] or list((use_set or MeshSet()).names)
        return min(candidates, default=None)
    first = [name for name in candidates if use_set is None or BROADCAST_IN not in use_set.origins(name)]
    return min(first or candidates, default=None)


def union(sets: Iterable[MeshSet | None]) -> MeshSet:
    """Return the union of sets, absent ones left out."""
    result = MeshSet()
    for item in sets:
        if item is not None:
            result = result.union(item)
    return result


def clear_sets(function: Op, *names: str) -> None:
    """Remove sets from a function and all ops in it."""
    for op in function.walk():
        for name in names:
            if name in op.attributes:
                del op.attributes[name]
        for where in ("arg_attrs", "res_attrs"):
            items = op.attributes.get(where)
            if items and any(name in item for item in items for name in names):
                set_attributes_at(op, where, [{k: v for k, v in item.items() if k not in names} for item in items])

"""Transfers of one value to other meshes, alone or in a chain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from shardy_py.ir.graph.program import Op, Value
from shardy_py.mpmd.dialect.fragments import new_transfer
from shardy_py.mpmd.dialect.op_names import TRANSFER
from shardy_py.mpmd.dialect.types import MeshTensor, require_mesh_tensor

_NUMBER_AT_END = re.compile(r"(\d+)$")


def sorted_meshes(types: Iterable[MeshTensor]) -> list[MeshTensor]:
    """Return types in the order of a chain: by the numbers at the ends of mesh names if all have one, or by text.

    `m2` comes before `m10`.
    """
    items = list(types)
    if all(_number_at_end(item.mesh) is not None for item in items):
        return sorted(items, key=lambda item: (_number_at_end(item.mesh) or 0, item.mesh))
    return sorted(items, key=lambda item: item.mesh)


def comes_before_mesh(first: str, second: str) -> bool:
    """Return whether a mesh comes before another one: by the numbers at the ends of their names, or by text."""
    numbers = _number_at_end(first), _number_at_end(second)
    return first < second if None in numbers else (numbers[0] or 0) < (numbers[1] or 0)


def _number_at_end(name: str) -> int | None:
    match = _NUMBER_AT_END.search(name)
    return None if match is None else int(match[1])


def find_transfer(value: Value, type_: MeshTensor) -> Op | None:
    """Return a transfer of a value to a type, the first in the program."""
    transfers = [op for op, _ in value.uses if op.name == TRANSFER and op.results[0].type.text == str(type_)]
    return min(transfers, key=position_in_block, default=None)


def position_in_block(op: Op) -> int:
    """Return the index of an op in its block."""
    index = 0
    while op.prev is not None:
        op, index = op.prev, index + 1
    return index


def earliest(ops: Sequence[Op]) -> Op:
    """Return the op that comes first in its block, of ops of one block."""
    block = ops[0].parent
    assert block is not None
    op_ids = {op.id for op in ops}
    return next(op for op in block.ops if op.id in op_ids)


def comes_before(first: Op, second: Op) -> bool:
    """Return whether an op comes before another one of the same block."""
    return first is not second and earliest([first, second]) is first


def transfer_before(value: Value, type_: MeshTensor, anchor: Op) -> Value:
    """Return a value on another mesh: an existing transfer, moved before the anchor if need be, or a new one."""
    if value.type.text == str(type_):
        return value
    assert anchor.parent is not None
    existing = find_transfer(value, type_)
    if existing is None or existing.parent is not anchor.parent:
        return anchor.parent.insert_before(anchor, new_transfer(value.owning_op.program, value, type_)).results[0]
    if existing is not anchor and comes_before(anchor, existing):
        anchor.parent.remove(existing)
        anchor.parent.insert_before(anchor, existing)
    return existing.results[0]


def chain_before(value: Value, types: Iterable[MeshTensor], anchor: Op) -> dict[str, Value]:
    """Return the value on each mesh by the text of its type, each transferred from the one before it."""
    source_type = require_mesh_tensor(value)
    others = [type_ for type_ in dict.fromkeys(types) if type_ != source_type]
    result, current = {str(source_type): value}, value
    if len({type_.mesh for type_ in others}) < len(others):
        # Two memories of one mesh do not form a chain.
        return result | {str(type_): transfer_before(value, type_, anchor) for type_ in others}
    for type_ in sorted_meshes(others):
        current = result[str(type_)] = transfer_before(current, type_, anchor)
    return result

"""Locations of the ops of kernel modules: the op of the fusion for which each computes something."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from xdsl.dialects import builtin
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

from shardy_py.ir.graph.program import Op

_OP, _GRID = "<op>", "<grid>"
GRID_LOCATION = builtin.FileLineColLoc(builtin.StringAttr(_GRID), builtin.IntAttr(0), builtin.IntAttr(0))
"""The location of what a kernel does for no op: the numbers of threads, its loops, indices."""


def locate_new_ops(block: Block, last: Operation | None, op: Op) -> None:
    """Give the ops behind another one the location of an op of the fusion, unless they have one.

    Args:
        block: The block.
        last: The op that was the last one of the block before; None where the block was empty.
        op: The op that was emitted since.
    """
    location = _location_of(op)
    new = block.last_op
    while new is not None and new is not last:
        for inner in new.walk():
            if not has_location(inner):
                inner.location = location
        new = new.prev_op


def _location_of(op: Op) -> builtin.FileLineColLoc:
    return file_location(_OP, op.id)


def locate_entry(entry: Operation, heroes: Collection[Op]) -> None:
    """Give the ops of an entry function a location: that of its hero where they read, exchange or write elements.

    Args:
        entry: The function.
        heroes: The ops of the fusion that it computes itself, or whose results it writes; all is for the grid where
            there are several.
    """
    hero = _location_of(next(iter(heroes))) if len(heroes) == 1 else GRID_LOCATION
    for op in entry.walk():
        if not has_location(op):
            op.location = hero if _has_elements(op) else GRID_LOCATION


def _has_elements(op: Operation) -> bool:
    """Return whether an op without a region has elements as operands or results, not indices alone."""
    is_structure = bool(op.regions) or op.has_trait(IsTerminator)
    return not is_structure and any(value.type != builtin.IndexType() for value in (*op.operands, *op.results))


def has_location(op: Operation) -> bool:
    """Return whether the location of an op is known."""
    return op.location != builtin.UNKNOWN_LOC


def located_op(op: Operation) -> int | None:
    """Return the id of the op of the fusion for which an op computes something; None where it is for the grid."""
    location = op.location
    if isinstance(location, builtin.FileLineColLoc) and location.filename.data == _OP:
        return location.line.data
    return None


def file_location(name: str, line: int) -> builtin.FileLineColLoc:
    """Return the location of a line of a file."""
    return builtin.FileLineColLoc(builtin.StringAttr(name), builtin.IntAttr(line), builtin.IntAttr(0))


def file_line(op: Operation) -> str:
    """Return the file and the line of an op, or of that from which a pass made it; "" where it is of no file."""
    location = op.location
    if not isinstance(location, builtin.FileLineColLoc) or location.filename.data in (_OP, _GRID):
        return ""
    return f"{location.filename.data}:{location.line.data}"


def inherit_locations(module: builtin.ModuleOp) -> None:
    """Give each op without a location that of an op that uses it, or of one that it uses.

    Passes give an op that replaces another one its location; what they add besides is for its neighbours.
    """
    for op in [*module.walk()][::-1]:
        _inherit(op, (use.operation for result in op.results for use in result.uses))
    for op in module.walk():
        _inherit(op, (value.owner for value in op.operands))


def _inherit(op: Operation, neighbours: Iterator[Operation | Block]) -> None:
    if not has_location(op):
        located = (item for item in neighbours if isinstance(item, Operation) and has_location(item))
        op.location = next((item.location for item in located), builtin.UNKNOWN_LOC)

"""Memory of a device over the main function: how long each tensor lives, and the bytes at each op."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from shardy_py.explain.explore.program_rows import ProgramRows
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.ir.graph.walk import entry_block
from shardy_py.values import frozen


@frozen(eq=False)
class Life:
    """The part of a program in which a tensor is held.

    Args:
        value: The row of the tensor.
        start: The position of the op that makes it; 0 for an argument.
        stop: The position of the last op that uses it; arguments and results are held to the end.
    """

    value: int
    start: int
    stop: int


def memory_over_time(rows: ProgramRows, main: Op, local: Sequence[int]) -> dict[str, Any]:
    """Return the bytes that a device holds at each op of the main function, and what is held.

    Every tensor counts as stored, from the op that makes it to the last one that uses it, or to the end for arguments
    and results. So this is an upper bound of what a compiler that fuses ops needs.

    Args:
        rows: The program.
        main: Its main function.
        local: Row of a value to its bytes on one device.
    """
    block = entry_block(main)
    positions = {} if block is None else _positions(block, rows)
    lives = [] if block is None else [life for life in _lives(block, positions, rows) if local[life.value]]
    ops = list(positions)
    changes = [0] * (len(ops) + 1)
    for life in lives:
        changes[life.start] += local[life.value]
        changes[life.stop + 1] -= local[life.value]
    return {
        "op": [rows.row_of[op] for op in ops],
        "bytes": list(accumulate(changes[:-1])),
        "value": [life.value for life in lives],
        "from": [life.start for life in lives],
        "to": [life.stop for life in lives],
    }


def _positions(block: Block, rows: ProgramRows) -> dict[int, int]:
    """Return the ops of a block that the page shows, by id, with their positions."""
    shown = [op.id for op in block.ops if op.id in rows.row_of]
    return {op: position for position, op in enumerate(shown)}


def _lives(block: Block, positions: dict[int, int], rows: ProgramRows) -> Iterator[Life]:
    end = len(positions) - 1
    if end < 0:
        return
    last = _last_uses(block, positions, rows)
    for value in block.arguments:
        yield Life(rows.value_of[value.id], 0, end)
    for op in block.ops:
        if op.id in positions:
            for value in op.results:
                start = positions[op.id]
                yield Life(rows.value_of[value.id], start, max(start, last.get(value.id, start)))


def _last_uses(block: Block, positions: dict[int, int], rows: ProgramRows) -> dict[int, int]:
    """Return, by id of a value, the position of the last op that uses it, itself or in its regions."""
    last: dict[int, int] = {}
    position = 0
    for op in block.ops:
        position = positions.get(op.id, position)
        is_end = op.next is None
        for inner in op.walk():
            for value in inner.operands:
                source: Value = rows.source(value)
                last[source.id] = len(positions) - 1 if is_end else position
    return last

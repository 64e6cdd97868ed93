"""Local programs among other devices: the devices get other numbers, and groups of them may run the program each."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.collectives.mesh_axes import read_mesh_groups
from shardy_dialects.stablehlo.local.literals import dense, read_dense
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.graph.types import tensor

_DEVICE = "stablehlo.partition_id"
_GROUPS = frozenset(f"stablehlo.{kind}" for kind in ("all_gather", "all_reduce", "all_to_all", "reduce_scatter"))
_PAIRS = "stablehlo.collective_permute"


def renumber_devices(program: Program, copies: Sequence[Sequence[int]]) -> None:
    """Write a local program for other device numbers.

    Args:
        program: The program, which changes.
        copies: For each group of devices that runs the program, the new number of each of its devices.
    """
    for op in list(program.walk()):
        if op.name in _GROUPS:
            groups = read_mesh_groups(op) or read_dense(str(op.attributes["replica_groups"]))
            op.attributes["replica_groups"] = dense(_renumbered(groups, copies))
        elif op.name == _PAIRS:
            pairs = read_dense(str(op.attributes["source_target_pairs"]))
            op.attributes["source_target_pairs"] = dense(_renumbered(pairs, copies))
        elif op.name == _DEVICE:
            _look_up(program, op, copies)


def _renumbered(rows: Sequence[Sequence[int]], copies: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the rows of each copy; a negative number fills up a row, and stays.

    >>> _renumbered([[0, 1]], [[0, 2], [1, 3]])
    [[0, 2], [1, 3]]
    """
    return [[copy[item] if item >= 0 else item for item in row] for copy in copies for row in rows]


def _look_up(program: Program, op: Op, copies: Sequence[Sequence[int]]) -> None:
    """Put the old number of the device, which a table has for the new one, in the place of the number."""
    numbers = {new: old for copy in copies for old, new in enumerate(copy)}
    scalar, entry = tensor(dtype="ui32"), tensor(1, dtype="ui32")
    entries = [numbers.get(new, 0) for new in range(max(numbers) + 1)]
    table = tensor(len(entries), dtype="ui32")
    block = op.parent
    if block is None:
        return
    text = RawAttribute(f"dense<{entries}> : {table}")
    device = _before(block, op, Op(program, _DEVICE, (), [scalar], {}))
    known = _before(block, op, Op(program, "stablehlo.constant", (), [table], {"value": text}))
    operands = [known.result, device.result]
    looked_up = _before(block, op, Op(program, "stablehlo.dynamic_slice", operands, [entry], {"slice_sizes": (1,)}))
    number = _before(block, op, Op(program, "stablehlo.reshape", [looked_up.result], [scalar], {}))
    op.result.replace_all_uses_with(number.result)
    op.erase()


def _before(block: Block, op: Op, new_op: Op) -> Op:
    block.insert_before(op, new_op)
    return new_op

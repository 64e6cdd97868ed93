"""Sharding groups in normal form."""

from __future__ import annotations

import pytest

from shardy_py.errors import VerificationError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.transforms.prepare.import_sharding_groups import ShardingGroupImportPass

T = tensor(8)


def groups_of(pairs: list[tuple[int, int]], *, types: tuple[object, ...] = (T, T, T)) -> list[tuple[int, int]]:
    """Put arguments into groups, run the pass, and return the pairs of argument and group that are left."""
    b = Builder()
    with b.function("main", types) as arguments:
        for argument, group_id in pairs:
            b.emit("sdy.sharding_group", [arguments[argument]], attributes={"group_id": group_id})
        b.return_()
    ShardingGroupImportPass().run(b.program, PassContext(Registry.of()))
    ops = [op for op in b.program.walk() if op.name == "sdy.sharding_group"]
    return [(op.operands[0].index, op.attributes["group_id"]) for op in ops]


def test_groups_that_share_a_value_become_one() -> None:
    """Sharing is transitive: 5 with 7 through one value, 7 with 9 through another."""
    assert groups_of([(0, 5), (0, 7), (1, 7), (1, 9), (2, 9)]) == [(0, 0), (1, 0), (2, 0)]


def test_groups_are_numbered_from_zero() -> None:
    """Ids that leave gaps are replaced."""
    assert groups_of([(0, 12), (1, 89), (2, 12)]) == [(0, 0), (1, 1), (2, 0)]


def test_a_value_is_in_its_group_once() -> None:
    """The second op for the same value and group goes."""
    assert groups_of([(0, 3), (0, 3), (1, 3)]) == [(0, 0), (1, 0)]


def test_members_must_have_one_shape() -> None:
    """Values of different shapes cannot be sharded alike."""
    with pytest.raises(VerificationError, match="same shape") as caught:
        groups_of([(0, 0), (1, 0)], types=(tensor(8), tensor(4), T))
    assert caught.value.diagnostics[0].code == "group-shapes-differ"


def test_a_group_stays_inside_its_manual_computation() -> None:
    """Values inside a manual computation have local shapes, so groups do not cross it."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        b.emit("sdy.sharding_group", [x], attributes={"group_id": 0})
        with b.region_op("sdy.manual_computation", [x], [T]) as manual, b.region(manual, [T]) as (inner,):
            b.emit("sdy.sharding_group", [inner], attributes={"group_id": 0})
            b.emit("sdy.return", [inner])
        b.return_(manual.result)
    with pytest.raises(VerificationError, match="cannot cross ManualComputationOp"):
        ShardingGroupImportPass().run(b.program, PassContext(Registry.of()))

"""Ops without uses: erased in time that grows with their number, not with its square or cube."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.dead_ops import erase_together
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import tensor
from shardy_py.propagation.dead_ops import Removal, plan_removal


def dead_users(count: int) -> Op:
    """Return a function whose argument has so many users that nobody uses, and one more."""
    b = Builder()
    with b.function("main", [tensor(8)]) as (x,):
        for _ in range(count):
            b.op("toy.neg", [x], [tensor(8)])
        b.return_(b.op("toy.add", [x, x], [tensor(8)]))
    return next(iter(b.program.functions.values()))


def test_counts_of_uses_follow_what_is_erased() -> None:
    """After each erasure the number of uses of a value is that of the users that are left, each as often as it uses."""
    function = dead_users(5)
    ops = list(function.regions[0].blocks[0].ops)
    x = ops[0].operands[0]
    steps = {op.id: number for number, op in enumerate(ops)}
    plan = plan_removal(ops[:5], ops[:5], steps)
    assert plan is not None
    removal = Removal(plan)
    assert removal.use_count(x) == 7
    for number in range(5):
        erasure = removal.erase(number)
        assert removal.use_count(x) == 6 - number
        assert erasure.touched == []


def test_the_last_user_hears_that_it_is_the_only_one() -> None:
    """A step is touched when another user of its operand goes and one use is left; not before."""
    b = Builder()
    with b.function("main", [tensor(8)]) as (x,):
        dead = [b.op("toy.neg", [x], [tensor(8)]).owning_op for _ in range(3)]
        alive = b.op("toy.neg", [x], [tensor(8)])
        b.return_(alive)
    steps = {op.id: number for number, op in enumerate([*dead, alive.owning_op])}
    plan = plan_removal(dead, dead, steps)
    assert plan is not None
    removal = Removal(plan)
    assert [removal.erase(number).touched for number in range(3)] == [[], [], [3]]


def test_ops_are_erased_together() -> None:
    """What is left of a value's uses is in the old order."""
    function = dead_users(4)
    block = function.regions[0].blocks[0]
    ops = list(block.ops)
    x = ops[0].operands[0]
    erase_together(ops[1:4])
    assert [op.id for op in block.ops] == [op.id for op in (ops[0], *ops[4:])]
    assert [(op.id, number) for op, number in x.uses] == [(ops[0].id, 0), (ops[4].id, 0), (ops[4].id, 1)]


def test_many_dead_users_are_erased() -> None:
    """Thousands of unused users of a value are erased; a pass over all uses for each of them would take minutes."""
    pytest.importorskip("jaxlib")
    lines = ['sdy.mesh @m = <["x"=2]>', "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {"]
    lines.append('%b = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<8xf32>')
    lines += [f"%d{number} = stablehlo.negate %b : tensor<8xf32>" for number in range(4000)]
    lines.append("return %b : tensor<8xf32> }")
    result = sdy.propagate("\n".join(lines))
    assert result.text.count("stablehlo.negate") == 1

"""Laws of the steps that ops are compiled to."""

from __future__ import annotations

from collections import Counter

import pytest

from shardy_py.propagation.compile import has_multi_use
from shardy_py.propagation.engine import op_rules
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.slots import NO_SLOT
from tests.properties.test_dependents import SEEDS, as_it_is, prepared

pytest.importorskip("jaxlib", reason="random programs are MLIR text")


def check_steps(problem: Problem) -> Counter[tuple[int, bool]]:
    """Check the steps of ops with a rule; return how many there are by number of operands and by multi-use."""
    with_rule = {op.id for op, _ in op_rules(problem)}
    checked: Counter[tuple[int, bool]] = Counter()
    for op, slots, group in zip(problem.step_ops, problem.step_slots, problem.step_groups, strict=True):
        if op.id in with_rule:
            multi_use = has_multi_use(op)
            assert slots == tuple(problem.slot_of.get(value.id, NO_SLOT) for value in (*op.operands, *op.results))
            assert problem.groups[group].multi_use is multi_use
            checked[len(op.operands), multi_use] += 1
    return checked


def test_a_step_has_the_slots_of_its_op_and_knows_of_several_uses() -> None:
    """The loop over all ops, which asks no function, finds what the functions for one op find."""
    checked: Counter[tuple[int, bool]] = Counter()
    for seed in SEEDS:
        for problem in (prepared(seed), as_it_is(seed)):
            checked += check_steps(problem) if problem is not None else Counter()
    assert min(checked[count, multi_use] for count in (1, 2, 3) for multi_use in (False, True)) > 5

"""Laws of which steps see a change of a sharding."""

from __future__ import annotations

import pytest

from shardy_py import ShardyError
from shardy_py.cost.session import Session
from shardy_py.ir.graph.shardings import load_shardings
from shardy_py.oracle.generate import generate
from shardy_py.plugins import Registry
from shardy_py.propagation.engine import make_problem
from shardy_py.propagation.problem import Problem

pytest.importorskip("jaxlib", reason="random programs are MLIR text")

SEEDS = range(100, 130)


def prepared(seed: int) -> Problem | None:
    """Return the problem of a random program after all passes before propagation; None where it is refused."""
    try:
        return Session.open(generate(seed)).problem
    except ShardyError:
        return None


def as_it_is(seed: int) -> Problem | None:
    """Return the problem of a random program that no pass has prepared, so that loops and calls have no edges."""
    from shardy_py.frontends.mlir import import_module, parse_module

    registry = Registry.from_entry_points()
    try:
        program = import_module(parse_module(generate(seed)))
        load_shardings(program, registry)
        return make_problem(program, registry)
    except ShardyError:
        return None


@pytest.mark.parametrize("make", [prepared, as_it_is])
@pytest.mark.parametrize("seed", SEEDS)
def test_dependents_are_all_steps_with_a_slot(make, seed: int) -> None:
    """A step with a slot among its own is requeued or not; the quick look-up finds what a search finds."""
    problem = make(seed)
    if problem is None:
        return
    without_slots = {step for step, slots in enumerate(problem.step_slots) if not slots}
    for slot in range(len(problem.slot_values)):
        having = {step for step, slots in enumerate(problem.step_slots) if slot in slots}
        put_back = set(problem.dependents.of(slot))
        assert set(problem.dependents.not_requeued.get(slot, ())) == having - put_back
        assert set(problem.dependents.all_of(slot)) - without_slots >= having


def test_random_programs_have_steps_that_are_not_requeued() -> None:
    """The law above is about something: some programs have steps that see a change and are not put back."""
    problems = [prepared(seed) for seed in SEEDS]
    actual = 0
    for problem in problems:
        for slot in range(len(problem.slot_values) if problem else 0):
            assert problem is not None
            problem.dependents.of(slot)
        actual += sum(map(len, problem.dependents.not_requeued.values())) if problem else 0
    assert actual > 10

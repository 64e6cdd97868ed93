"""Laws of what one walk over all ops finds: the slow and clear form of each beside the fast one."""

from __future__ import annotations

import pytest

from shardy_py import ShardyError
from shardy_py.ir.graph.dead_ops import find_dead_ops
from shardy_py.ir.graph.kinds import kind_of, kinds_of
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import all_ops
from shardy_py.oracle.conformance import reference_registry
from shardy_py.oracle.generate import generate
from shardy_py.propagation.engine import make_problem
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.slots import assign_slots
from shardy_py.transforms.import_pipeline import ImportPipeline
from shardy_py.transforms.run import run_on_attributes

pytest.importorskip("jaxlib", reason="random programs are MLIR text")

SEEDS = range(740, 764)


def prepared(seed: int) -> Program | None:
    """Return a random program before propagation, with ops that were read, copied, renamed and made by passes."""
    from shardy_py.frontends.mlir import import_module, parse_module
    from shardy_py.ir.interfaces.passes import PassContext

    program = import_module(parse_module(generate(seed)))
    # As `propagate` does, whose passes change no types.
    program.kinds_hold = True
    try:
        run_on_attributes(program, ImportPipeline().passes, PassContext(reference_registry()))
    except ShardyError:
        return None
    return program


def problem_of(program: Program) -> Problem | None:
    """Return the problem of a program; None where it is refused."""
    try:
        return make_problem(program, reference_registry())
    except ShardyError:
        return None


@pytest.mark.parametrize("seed", SEEDS)
def test_one_walk_finds_what_each_question_finds_alone(seed: int) -> None:
    """Kinds, unused ops and dead ops are those that asking op by op finds."""
    program = prepared(seed)
    if program is None:
        return
    ops = all_ops(program)
    assert list(kinds_of(program, ops)) == [kind_of(op) for op in ops]
    slots, registry = assign_slots(program, reference_registry()), reference_registry()
    assert slots.unused == [op for op in ops if not any(value.uses for value in op.results)]
    assert find_dead_ops(program, registry, unused=slots.unused) == find_dead_ops(program, registry)


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_are_numbered_and_grouped_in_their_order(seed: int) -> None:
    """The number of a step is its position, and a group has the steps that say they are of it."""
    program = prepared(seed)
    problem = None if program is None else problem_of(program)
    if problem is None:
        return
    members: list[list[int]] = [[] for _ in problem.groups]
    for step, group in enumerate(problem.step_groups):
        members[group].append(step)
    assert problem.group_steps == members


def test_the_laws_are_about_something() -> None:
    """Some of the programs have known kinds, unused ops and dead ops."""
    programs = [program for seed in SEEDS if (program := prepared(seed)) is not None]
    assert any(kind is not None for program in programs for kind in kinds_of(program, all_ops(program)))
    assert any(find_dead_ops(program, reference_registry()) for program in programs)
    assert any(len(problem.groups) > 1 for program in programs if (problem := problem_of(program)) is not None)

"""Advice for the shardings of inputs: a plan and known layouts, each with what it costs as a user writes it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from attrs import evolve

from shardy_py.api.keywords import narrow, takes
from shardy_py.api.main_function import argument_names, arguments_of
from shardy_py.api.options import ProgramInput
from shardy_py.cost.advice.arguments import AdviseInputsArguments, PricingOptions, open_judge
from shardy_py.cost.advice.as_written import WrittenJudge
from shardy_py.cost.advice.layouts import ArgumentShardings, InputAdvice
from shardy_py.cost.advice.pricing import Goal, Judge
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.frontends.select import frontend_of
from shardy_py.plans.planning import PlanSettings, plan_session
from shardy_py.plans.result import ShardingPlan


@takes(AdviseInputsArguments)
def advise_inputs(arguments: AdviseInputsArguments) -> InputAdvice:
    """Return shardings of the arguments of a program: those of a plan, and known layouts beside it.

    Each layout has the figures of the program with it, read again: that of a plan with its constraints inside, and with
    the shardings of the inputs alone. The shardings that the program came with are one more layout.

    Raises:
        ShardyError: the module or an option is not valid, the program has no mesh, or no plan meets the budget.
    """
    session = arguments.options.open(narrow(arguments, ProgramInput), keep_names=True)
    options = PricingOptions(
        machine=arguments.machine, minimise=arguments.minimise, budget_memory=arguments.budget_memory
    )
    goal, judge = open_judge(session, options)
    plan = plan_inputs(goal, judge, arguments.budget_memory, known_layouts=None)
    layouts = _distinct([*_as_it_is(judge), *layouts_of(plan, judge)])
    if not layouts:
        message = "the program is not valid with the shardings of a plan"
        raise OptionError(Diagnostic("no-layout", message, hint="shardy plan --form mlir writes it with them"))
    return InputAdvice(
        goal,
        tuple(sorted(layouts, key=lambda layout: goal.score(layout.figures))),
        prod(plan.mesh.values()),
        plan.machine,
        plan.to_mlir(),
        session.warnings,
    )


def plan_inputs(goal: Goal, judge: Judge, budget: float | None, *, known_layouts: bool | None = False) -> ShardingPlan:
    """Return the plan with the least time or memory.

    Args:
        goal: What is minimised, the time or the memory, and the memory of the machine.
        judge: The judge of the program.
        budget: The bytes that a device may use at most; None for what the machine has.
        known_layouts: Whether to price known layouts beside it, see `PlanSettings`.

    Raises:
        ShardyError: nothing can be planned, or no plan meets the budget.
    """
    measure = goal.measure
    if judge.machine is None or measure == "bytes":
        message = "inputs are planned for time or memory, on a machine: a program with no sharding at all sends nothing"
        raise OptionError(Diagnostic("not-planned", message, hint="give a machine, and minimise time or memory"))
    settings = PlanSettings(machine=judge.machine, minimise=measure, budget_memory=budget, known_layouts=known_layouts)
    plan = plan_session(judge.session, settings)
    if goal.memory is not None and plan.peak_bytes > goal.memory and budget is None:
        return plan_session(judge.session, evolve(settings, budget_memory=goal.memory))
    return plan


def best_inputs(goal: Goal, judge: Judge, budget: float | None) -> ArgumentShardings | None:
    """Return the shardings of the inputs in the plan for what is to become small, with what they cost alone.

    Args:
        goal: The time or the memory, and the memory that the machine has.
        judge: The judge of the program.
        budget: The bytes that a device may use at most; None for what the machine has.

    Raises:
        ShardyError: nothing can be planned, or no plan meets the budget.
    """
    plan = plan_inputs(goal, judge, budget)
    figures = WrittenJudge(judge).with_inputs(plan.inputs)
    return None if figures is None else ArgumentShardings(plan.title, plan.inputs, figures, frontend=plan.frontend)


def layouts_of(plan: ShardingPlan, judge: Judge) -> Iterator[ArgumentShardings]:
    """Yield the layouts of a plan and those beside it, with what each costs as it is written.

    Args:
        plan: The plan.
        judge: The judge of the program.
    """
    written = WrittenJudge(judge)
    for name, item in ((plan.title, plan), *((layout.title, layout.plan) for layout in plan.known)):
        figures = written.with_plan(item.written.write_into)
        if figures is not None:
            yield ArgumentShardings(name, item.inputs, figures, len(item.constraints), item.frontend)
        alone = written.with_inputs(item.inputs) if item.constraints else None
        if alone is not None:
            yield ArgumentShardings(f"{name}, inputs alone", item.inputs, alone, frontend=item.frontend)


def _as_it_is(judge: Judge) -> Iterator[ArgumentShardings]:
    """Yield the layout that the program came with, if an argument has a sharding."""
    session = judge.session
    slots = [session.problem.slot_of.get(value.id, -1) for value in arguments_of(session.main)]
    table, initial = session.problem.table.values, session.problem.initial
    given = [table[initial[slot]] if slot >= 0 else None for slot in slots]
    if any(sharding is not None for sharding in given):
        shardings = dict(zip(argument_names(session.main), given, strict=True))
        frontend = frontend_of(session.program).name
        yield ArgumentShardings("as it is", shardings, WrittenJudge(judge).as_it_is(), frontend=frontend)


def _distinct(layouts: list[ArgumentShardings]) -> list[ArgumentShardings]:
    """Return layouts without those that have the shardings and the costs of one before them."""
    seen = {(tuple(layout.specs.items()), layout.figures): layout for layout in reversed(layouts)}
    return list(reversed(seen.values()))

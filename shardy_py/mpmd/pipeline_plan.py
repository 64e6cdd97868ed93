"""Stages chosen by cost: where a program is cut, and which schedule with how many microbatches is fastest and fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
from attrs import field

from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import SessionOptions
from shardy_py.api.propagate import propagate
from shardy_py.api.result import Result
from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.extensions import function
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.op_names import CALL
from shardy_py.mpmd.partitioning import WITH_MODULES
from shardy_py.mpmd.schedules.builders import build_schedule, check_counts
from shardy_py.mpmd.schedules.simulation import StageTimes, Timeline, simulate
from shardy_py.mpmd.stage_costs import ProgramCosts, StageCost, choose_cuts, main_block, op_numbers
from shardy_py.support.texts import format_bytes, format_seconds
from shardy_py.values import frozen

SCHEDULES = (("GPipe", 1), ("1F1B", 1), ("ZB-H1", 1), ("ZB-H2", 1), ("Interleaved1F1B", 2), ("ZB-V", 2))
"""The schedules that are compared, with the stages that each mesh has."""
_GRADIENTS = 2
"""Bytes of an argument and of its gradient, in sizes of it."""


GIVEN, PLANNED = "given", "planned"


@frozen
class PipelineOutcome:
    """A schedule for a program that is cut into stages.

    Args:
        schedule: The name of the schedule.
        chunks: The number of stages on each mesh.
        microbatches: The number of microbatches.
        cuts: The stages, in order.
        timeline: What each mesh does when.
        peak_bytes: The bytes that a device of the fullest mesh holds: arguments with gradients, and activations.
        fits: Whether that is within the budget.
        shardings: Whether the shardings inside of stages are those of the program, ``given``, or ``planned``.
    """

    schedule: str
    chunks: int
    microbatches: int
    cuts: tuple[StageCost, ...]
    timeline: Timeline
    peak_bytes: int
    fits: bool
    shardings: str = GIVEN

    @property
    def seconds(self) -> float:
        """The time of all microbatches."""
        return self.timeline.makespan

    @property
    def seconds_per_microbatch(self) -> float:
        """The time of all microbatches, divided by their number: what is compared."""
        return self.seconds / self.microbatches


@frozen
class PipelinePlan:
    """The pipelines that were tried: first those that fit, the fastest first.

    Args:
        candidates: All of them.
        skipped: Schedules that do not exist for the numbers, with the reasons.
        specs: Argument to its planned sharding, where shardings were planned.
    """

    candidates: tuple[PipelineOutcome, ...]
    skipped: tuple[str, ...] = ()
    specs: Mapping[str, str] = field(factory=dict)

    @property
    def best(self) -> PipelineOutcome:
        """The fastest pipeline that fits.

        Raises:
            UnsupportedError: none fits.
        """
        if not self.candidates[0].fits:
            least = min(item.peak_bytes for item in self.candidates)
            message = f"no schedule fits: the smallest needs {format_bytes(least)} on each device"
            hint = "give more meshes, smaller microbatches, or axes that shard the arguments"
            raise UnsupportedError(Diagnostic("no-plan", message, hint=hint))
        return self.candidates[0]

    @property
    def next_best(self) -> PipelineOutcome | None:
        """The next one that fits, or None."""
        others = [item for item in self.candidates[1:] if item.fits]
        return others[0] if others else None

    def __str__(self) -> str:
        """Return the table of the candidates, the stages of the best one, and what the next best costs."""
        best = self.best
        lines = ["schedule          stages  microbatches  each        bubble  memory"]
        for item in self.candidates:
            over = "" if item.fits else "  over the budget"
            over += "" if item.shardings == GIVEN else "  with planned shardings"
            lines.append(
                f"{item.schedule:<16}  {len(item.cuts):>6}  {item.microbatches:>12}  "
                f"{format_seconds(item.seconds_per_microbatch):<10}  {item.timeline.bubble:>6.1%}  "
                f"{format_bytes(item.peak_bytes)}{over}"
            )
        lines += self.skipped
        planned = " with planned shardings" if best.shardings == PLANNED else ""
        lines += ["", f"stages of {best.schedule}{planned}:"]
        lines += [f"  {number}: {cut}" for number, cut in enumerate(best.cuts)]
        if planned:
            lines += ["arguments in one stage's mesh:", *(f"  {name}: {spec}" for name, spec in self.specs.items())]
        other = self.next_best
        if other is not None:
            more = other.seconds_per_microbatch / best.seconds_per_microbatch - 1.0
            lines.append(f"next best: {other.schedule} with {other.microbatches} microbatches costs {more:.1%} more")
        return "\n".join(lines)


def plan(
    source: Any,
    *,
    meshes: int,
    microbatches: int | Iterable[int],
    machine: Any,
    budget_memory: int | None = None,
    plan_shardings: bool = False,
    **options: Any,
) -> PipelinePlan:
    """Return the stages, the schedule and the number of microbatches that are fastest for a program.

    The program is the forward pass of one microbatch. Its shardings, over the mesh of one stage, are propagated, and
    each op is priced with the communication that it needs. It is cut where the slowest stage is fastest, and
    little is sent. A backward part takes as long as two forward parts.

    Args:
        source: The program, or its result, which `propagate` returned.
        meshes: The number of meshes.
        microbatches: The number of microbatches, or several to choose from.
        machine: The machine, by name or as a value: what one mesh of devices is a part of.
        budget_memory: The bytes that a device may use; by default what the machine says.
        plan_shardings: Whether the shardings that `shardy_py.plan` finds for one mesh are tried beside the given ones.
        options: Options of `propagate`, such as ``mesh`` and ``in_shardings``.

    Raises:
        OptionError: a number is not positive, or there are fewer ops than stages.
    """
    counts = (microbatches,) if isinstance(microbatches, int) else tuple(microbatches)
    check_counts(meshes=meshes, chunks=1)
    if not counts:
        raise OptionError(Diagnostic("invalid-count", "the number of microbatches is missing", hint="microbatches=8"))
    for count in counts:
        check_counts(microbatches=count)
    results, specs = _results(source, machine, options, plan_shardings=plan_shardings)
    candidates: list[PipelineOutcome] = []
    skipped: list[str] = []
    for shardings, result in results.items():
        costs = ProgramCosts.of(result, machine)
        _try_schedules(costs, meshes, counts, budget_memory, shardings, candidates, skipped)
    if not candidates:
        message = f"the program cannot be cut into {meshes} stages: {'; '.join(skipped)}"
        raise OptionError(Diagnostic("too-few-ops", message, hint="give fewer meshes"))
    candidates.sort(key=lambda item: (not item.fits, item.seconds_per_microbatch, item.peak_bytes))
    return PipelinePlan(tuple(candidates), tuple(dict.fromkeys(skipped)), specs)


def _results(
    source: Any, machine: Any, options: dict[str, Any], *, plan_shardings: bool
) -> tuple[dict[str, Result], dict[str, str]]:
    """Return the results to cut, by their shardings, and the planned shardings of arguments."""
    if not plan_shardings:
        return {GIVEN: _propagated(source, options)}, {}
    inputs, session = _split(source, options)
    run_options = session.run_options()
    sharding_plan = function("plan")(source, **inputs, machine=machine, known_layouts=False, options=session)
    given = _propagated(source, inputs | run_options)
    if sharding_plan.frontend in WITH_MODULES:
        planned = _propagated(sharding_plan.to_mlir(), run_options)
    else:
        # Constraints inside are not in the programs of other frontends; what follows from the arguments is.
        planned = _propagated(source, inputs | run_options | {"in_shardings": sharding_plan.inputs})
    return {GIVEN: given, PLANNED: planned}, sharding_plan.specs


def _propagated(source: Any, options: dict[str, Any]) -> Result:
    """Return the result of a program with its ops in one block, each on a line of its own where there are lines.

    It is propagated again only where ops of functions or of one line of a file have to be told apart, by their costs.
    """
    result = source if isinstance(source, Result) else propagate(source, **{**options, "inline_calls": True})
    has_lines = frontend_of(result.program).name in WITH_MODULES
    # The first time, calls go; then what was called twice gets two lines.
    for _ in range(2):
        if not has_lines or _is_told_apart(result):
            break
        result = propagate(str(result), inline_calls=True, registry=result.registry)
    return result


def _is_told_apart(result: Result) -> bool:
    """Return whether the ops of the main function are on different lines, and none of them is a call."""
    block = main_block(result.program)
    numbers = op_numbers(block)
    count = sum(1 for _ in block.ops)
    is_alone = len(numbers) >= count and all(len(items) == 1 for items in numbers.values())
    return is_alone and all(op.name != CALL for op in block.ops)


def _try_schedules(
    costs: ProgramCosts,
    meshes: int,
    counts: Sequence[int],
    budget_memory: int | None,
    shardings: str,
    candidates: list[PipelineOutcome],
    skipped: list[str],
) -> None:
    """Add the outcomes of all schedules and numbers of microbatches for a program."""
    budget = costs.machine_memory if budget_memory is None else budget_memory
    cuts_by_count: dict[int, tuple[StageCost, ...] | None] = {}
    for name, chunks in SCHEDULES:
        stages = meshes * chunks
        if stages not in cuts_by_count:
            cuts_by_count[stages] = choose_cuts(costs, stages) if stages <= costs.count else None
        cuts = cuts_by_count[stages]
        if cuts is None:
            skipped.append(f"{name}: the program has {costs.count} ops for {stages} stages")
            continue
        for count in counts:
            try:
                schedule = build_schedule(name, meshes=meshes, microbatches=count, chunks=chunks)
            except OptionError as error:
                skipped.append(f"{name} with {count} microbatches: {error.diagnostics[0].message}")
                continue
            timeline = simulate(schedule, _times(cuts))
            candidates.append(_outcome(name, chunks, count, cuts, timeline, budget, shardings))


def _split(source: Any, options: dict[str, Any]) -> tuple[dict[str, Any], SessionOptions]:
    """Return the options of a program, and those of its propagations, which a plan of shardings runs many of.

    Raises:
        OptionError: the program is a result, or an option is not one that a plan has.
    """
    if isinstance(source, Result):
        message = "the shardings of a result are fixed, so they cannot be planned"
        raise OptionError(Diagnostic("no-program", message, hint="give the program itself, with mesh="))
    names = {item.name for item in attrs.fields(ProgramInput)}
    others = {name: value for name, value in options.items() if name not in names}
    unknown = sorted(set(others) - {item.name for item in attrs.fields(SessionOptions)})
    if unknown:
        message = f"a plan of shardings has no option {', '.join(unknown)}"
        raise OptionError(Diagnostic("option-conflict", message, hint="leave it out, or plan_shardings"))
    return {name: value for name, value in options.items() if name in names}, SessionOptions(**others)


def _times(cuts: Sequence[StageCost]) -> StageTimes:
    """Return the times of the slowest stage, and of the longest transfer."""
    slowest = max(cut.seconds for cut in cuts)
    return StageTimes(slowest, slowest, slowest, max(cut.transfer_seconds for cut in cuts))


def _outcome(
    name: str,
    chunks: int,
    microbatches: int,
    cuts: tuple[StageCost, ...],
    timeline: Timeline,
    budget: int | None,
    shardings: str,
) -> PipelineOutcome:
    orders = timeline.schedule.orders
    peaks = []
    for mesh, order in enumerate(orders):
        mesh_cuts = [cuts[stage] for stage in sorted({action.stage for action in order})]
        held = timeline.live(mesh) * max(cut.activation_bytes for cut in mesh_cuts)
        peaks.append(_GRADIENTS * sum(cut.argument_bytes for cut in mesh_cuts) + held)
    peak = max(peaks)
    return PipelineOutcome(
        name, chunks, microbatches, cuts, timeline, peak, budget is None or peak <= budget, shardings
    )

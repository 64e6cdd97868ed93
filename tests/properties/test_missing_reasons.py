"""Laws of the reasons for axes that are not there: each holds when it is checked with the engine alone.

SHARDY_FUZZ_SEED is the first seed of the long run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from attrs import evolve

from shardy_py import ShardyError, propagate
from shardy_py.oracle.generate import generate
from shardy_py.propagation.step_outcomes import project_step
from shardy_py.propagation.steps.factors import Direction
from shardy_py.propagation.trace import directions_of_visit, slots_of_visit
from shardy_py.schedule.builtin import BUILTIN
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import any_overlap
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.missing_axes import find_missing
from shardy_py.trace.reasons import Reason
from shardy_py.trace.recording import Recording
from shardy_py.trace.slots import SlotRefusal
from shardy_py.trace.trace import Trace

pytest.importorskip("jaxlib", reason="random programs are MLIR text")

FEATURES = frozenset(
    (
        *("elementwise", "dot", "transpose", "reshape", "calls", "manual_computation", "while", "case"),
        *("optimization_barrier", "sharding_constraint", "sharding_group", "priorities", "replicated", "custom_rules"),
        *("unknown_ops", "sub_axes", "non_divisible", "several_meshes"),
    )
)
FIRST = int(os.environ.get("SHARDY_FUZZ_SEED", "0"))
FLAT = {"schedule": "flat"}
CASES = ((3, {}), (12, {}), (20, {"dedup_functions_fully": True}), (1, FLAT), (37, FLAT), (106, FLAT))
"""Programs with options; the last three end before everything is settled."""


def traced(seed: int, **options: object) -> Trace | None:
    """Return the trace of a random program, or None where it is refused."""
    finish = Recording.finish

    def finish_and_look(recording: Recording, *arguments: object) -> Trace:
        """Look at the edges of manual computations before later passes change these."""
        trace = finish(recording, *arguments)
        trace.edges = {step: at_end(trace, step) for step in trace.problem.transforms}
        owners = {step: trace.problem.step_ops[step].operands[0].owning_op for step in trace.problem.transforms}
        trace.manual = {step: op.attributes["manual_axes"].names for step, op in owners.items()}
        trace.changed = {step: visited_again(trace, step) for step in trace.problem.transforms}
        return trace

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recording, "finish", finish_and_look)
        try:
            return propagate(generate(seed, features=FEATURES, size=20), trace=True, **options).trace
        except ShardyError:
            return None


def reasons_of(trace: Trace) -> Iterator[SlotRefusal]:
    """Yield the reasons for all axes that are on no dimension where they could be."""
    for slot in range(len(trace.problem.slot_values)):
        sharding = trace.history.last(slot)
        for dimension in range(sharding.rank if sharding else 0):
            for _, reasons in find_missing(trace, slot, dimension, trace.problem.table.mesh_of(sharding)):
                yield from reasons


def at_end(trace: Trace, step: int) -> list[TensorSharding | None]:
    """Return the shardings that a step sees at the end."""
    if step in getattr(trace, "edges", ()):
        return trace.edges[step]
    values, final = trace.problem.table.values, trace.solution.shardings
    actual = [values[final[slot]] if slot >= 0 else None for slot in slots_of_visit(trace.problem, step)]
    if step in trace.problem.transforms and actual[-1] is not None:
        actual[-1] = trace.problem.transforms[step][0](actual[-1])
    return actual


def visited_again(trace: Trace, step: int) -> dict[int, TensorSharding]:
    """Return what the engine would change if it visited a step at the end: position to new sharding."""
    if step in getattr(trace, "changed", ()):
        return trace.changed[step]
    problem = trace.problem
    visits = [visit for visit in trace.log.visits if visit.step == step]
    if not visits:
        return {}
    last = visits[-1]
    rule = problem.step_rules[step] if step >= 0 else problem.function_results[-1 - step][0]
    group = problem.groups[last.group] if step >= 0 else None
    ids = tuple(problem.table.intern(item) if item is not None else 0 for item in at_end(trace, step))
    outcome = problem.outcomes.outcome(
        problem.outcomes.intern_rule(rule),
        directions_of_visit(problem, trace.log, last),
        trace.log.places[last.place].strategy,
        ids,
        is_elementwise=group is not None and group.is_elementwise,
        conservative=group is not None and group.conservative and step not in problem.transforms,
    )
    collected = {}
    slots, final = slots_of_visit(problem, step), trace.solution.shardings
    for position, number in outcome:
        new = problem.table.values[number]
        if position == len(slots) - 1 and step in problem.transforms:
            new = problem.transforms[step][1](new)
        if slots[position] >= 0 and new != problem.table.values[final[slots[position]]]:
            collected[position] = problem.table.values[number]
    return collected


def had(trace: Trace, spot: tuple[int, int], reason: SlotRefusal) -> tuple[AxisRef, ...]:
    """Return the axes of a dimension after the visit of a reason; those of the end where it is about the end."""
    slot, dimension = spot
    time = 2 * reason.visit + 2
    sharding = (
        trace.history.sharding(trace.history.before(slot, time)) if reason.visit >= 0 else trace.history.last(slot)
    )
    manual = trace.annotations[slot].sharding if slot in trace.annotations else None
    axes = [item.dim_shardings[dimension].axes for item in (sharding, manual) if item is not None]
    return tuple(axis for some in axes for axis in some)


def check(trace: Trace, reason: SlotRefusal) -> None:
    """Check one reason."""
    check_source(trace, reason)
    match reason.reason:
        case Reason.NOT_REVISITED:
            check_not_revisited(trace, reason)
        case Reason.ERASED:
            assert trace.problem.step_ops[reason.step].parent is None or not is_alive(trace, reason.step)
        case Reason.MESH:
            check_mesh(trace, reason)
        case Reason.CONFLICT | Reason.OVERLAP | Reason.LOST:
            assert reason.obstacle is not None
            assert reason.by
            held = had(trace, reason.obstacle, reason)
            assert all(any_overlap((item,), held) for item in reason.by)
        case Reason.CLOSED:
            slot, dimension = reason.obstacle or reason.slot_dim
            assert as_seen(trace, reason, slot).dim_shardings[dimension].is_closed
        case Reason.REPLICATED | Reason.UNREDUCED:
            sharding = as_seen(trace, reason, (reason.obstacle or reason.slot_dim)[0])
            is_replicated = reason.reason is Reason.REPLICATED
            assert any_overlap(reason.by, sharding.replicated_axes if is_replicated else sharding.unreduced_axes)
        case Reason.BLOCKED:
            assert reason.factor in rule_of(trace, reason).blocked_propagation_factors
        case Reason.FACTOR_KIND:
            assert rule_of(trace, reason).kind(reason.factor) is not FactorKind.PASS_THROUGH
        case Reason.DIRECTION:
            last = [visit for visit in trace.log.visits if visit.step == reason.step][-1]
            assert directions_of_visit(trace.problem, trace.log, last)[reason.factor] != Direction.BOTH
        case Reason.GROUP:
            assert reason.source[0] in [member for member, _ in trace.problem.tied[reason.slot_dim[0]].others()]
        case Reason.MANUAL:
            check_manual(trace, reason)
        case Reason.NOT_OFFERED:
            check_not_offered(trace, reason)


def as_seen(trace: Trace, reason: SlotRefusal, slot: int) -> TensorSharding:
    """Return the sharding of a tensor at the end, as the step of a reason sees it."""
    slots = () if reason.step is None else slots_of_visit(trace.problem, reason.step)
    sharding = at_end(trace, reason.step)[slots.index(slot)] if slot in slots else trace.history.last(slot)
    assert sharding is not None
    return sharding


def check_source(trace: Trace, reason: SlotRefusal) -> None:
    """Check that what wanted to bring the axis has it."""
    if reason.source is not None:
        assert any_overlap((reason.axis,), had(trace, reason.source, reason))
    for rival in reason.rivals:
        assert rival != reason.obstacle
        assert any_overlap((reason.axis,), had(trace, rival, reason))


def check_not_revisited(trace: Trace, reason: SlotRefusal) -> None:
    """Check that the step would bring the axis, or a part of it."""
    slots = slots_of_visit(trace.problem, reason.step)
    brought = [
        new.dim_shardings[reason.slot_dim[1]].axes
        for position, new in visited_again(trace, reason.step).items()
        if slots[position] == reason.slot_dim[0]
    ]
    assert any(any_overlap((reason.axis,), axes) for axes in brought)


def check_mesh(trace: Trace, reason: SlotRefusal) -> None:
    """Check that there really are two meshes, or one of a single device."""
    meshes = [trace.problem.table.mesh_of(item) for item in at_end(trace, reason.step) if item is not None]
    assert len({mesh for mesh in meshes if not mesh.is_empty}) > 1 or any(mesh.is_maximal for mesh in meshes)


def check_manual(trace: Trace, reason: SlotRefusal) -> None:
    """Check that the axis is one of the manual axes of the computation."""
    assert reason.axis.name in trace.manual[reason.step]


def check_not_offered(trace: Trace, reason: SlotRefusal) -> None:
    """Check that no dimension that corresponds has the axis, of any tensor next to it as the step sees it."""
    slot, dimension = reason.slot_dim
    for step, position in trace.steps_at.get(slot, ()):
        slots, index = trace.slots_and_index(step)
        if step in trace.erased or index is None:
            continue
        shardings = at_end(trace, step)
        meshes = [trace.problem.table.mesh_of(item) for item in shardings if item is not None]
        mesh = next((item for item in meshes if not item.is_empty), None)
        if mesh is None or mesh.is_maximal or any(item != mesh for item in meshes if not item.is_empty):
            continue
        tensors = project_step(index.rule, shardings, mesh).tensors
        for factor in index.mappings[position][dimension]:
            for other, tensor in enumerate(tensors):
                if other != position and slots[other] >= 0 and factor in tensor.factors:
                    assert not any_overlap((reason.axis,), tensor.factors[factor].axes)


def rule_of(trace: Trace, reason: SlotRefusal):
    """Return the rule of the step of a reason."""
    return trace.problem.step_rules[reason.step]


def is_alive(trace: Trace, step: int) -> bool:
    """Return whether a step was visited in the last fixpoint of the run."""
    last = [visit for visit in trace.log.visits if visit.step == step][-1:]
    return bool(last) and last[0].place == len(trace.log.places) - 1 and len(trace.log.places) > 1


def check_reasons(trace: Trace) -> Counter[Reason]:
    """Check all reasons of a trace; each once, as the same reason comes for many dimensions."""
    counts: Counter[Reason] = Counter()
    seen: set[object] = set()
    stuck: set[int] = set()
    for reason in reasons_of(trace):
        key = (reason.reason, reason.axis, reason.slot_dim, reason.step, reason.source, reason.obstacle)
        if key not in seen:
            seen.add(key)
            counts[reason.reason] += 1
            check(trace, reason)
            if reason.step is not None and reason.reason not in (
                Reason.NOT_REVISITED,
                Reason.ERASED,
                Reason.NO_DIMENSION,
            ):
                stuck.add(reason.step)
    unsettled = set(trace.final_visits.unsettled)
    for step in stuck - unsettled:
        assert not visited_again(trace, step), trace.labels.of_step[step]
    assert all(visited_again(trace, step) for step in unsettled)
    return counts


@pytest.mark.parametrize(("seed", "options"), CASES)
def test_every_reason_holds(seed: int, options: dict[str, object]) -> None:
    """What a reason names is there, and one more visit of a step changes something only where it says so."""
    trace = traced(seed, **options)
    assert trace is not None
    counts = check_reasons(trace)
    assert bool(counts[Reason.NOT_REVISITED]) == bool(trace.final_visits.unsettled) == (options is FLAT)


@pytest.mark.parametrize("seed", [seed for seed, _ in CASES])
def test_settled_runs_leave_nothing_to_do(seed: int) -> None:
    """With the schedule that settles no step would change anything, and no reason says so."""
    for schedule in ("settled", evolve(BUILTIN["flat"], settles=True)):
        trace = traced(seed, schedule=schedule)
        assert trace is not None
        check_settled(trace)


def check_settled(trace: Trace) -> None:
    """Check that every step is a fixpoint."""
    assert trace.final_visits.unsettled == ()
    visited = {visit.step for visit in trace.log.visits} - trace.erased
    assert not any(visited_again(trace, step) for step in visited)
    assert all(reason.reason is not Reason.NOT_REVISITED for reason in reasons_of(trace))


@pytest.mark.fuzz
@pytest.mark.parametrize("start", range(0, 160, 20))
def test_every_reason_of_many_programs_holds(start: int) -> None:
    """So it is for many more programs, under several schedules and with shared functions."""
    for seed in range(FIRST + start, FIRST + start + 20):
        options = ({}, {"schedule": "flat"}, {"schedule": "forward-only"}, {"dedup_functions_fully": True})[seed % 4]
        for trace in (traced(seed, **options), traced(seed, schedule="settled")):
            if trace is not None:
                check_reasons(trace)
        if trace is not None:
            check_settled(trace)

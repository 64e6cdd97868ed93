"""A search of schedules: the one that ends first among those that hold few enough microbatches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import floor

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.mpmd.schedules.builders import SCHEDULES, build_schedule, check_counts
from shardy_py.mpmd.schedules.greedy import GreedyRule, PipelineSizes, greedy_orders
from shardy_py.mpmd.schedules.schedule import PipelineSchedule
from shardy_py.mpmd.schedules.simulation import StageTimes, Timeline, simulate
from shardy_py.support.arguments import shown

_SCALES = (1.0, 0.75, 0.5)
_OFFSETS = (0, 1, 2, -1)
_GAPS = (1.0, 0.97, 0.9, 0.75, 0.5, 0.25)
_SLACK = 1e-9


def search_schedule(
    *,
    meshes: int,
    microbatches: int,
    times: StageTimes | Mapping[str, float] | None = None,
    limit: float | None = None,
    weight_activations: float = 1.0,
) -> Timeline:
    """Return the timeline of the schedule that takes least time, with one stage on each mesh.

    The schedules by name take part, and those of a greedy rule with split backward parts, whose settings are varied.

    >>> timeline = search_schedule(meshes=4, microbatches=8, limit=4)
    >>> round(timeline.bubble_rate, 4), timeline.schedule.name
    (0.1111, 'ZB-H1')

    Args:
        meshes: The number of meshes.
        microbatches: The number of microbatches.
        times: The times of actions; by default 1 each, and none for transfers.
        limit: The largest number of microbatches whose activations a mesh may hold; by default there is none.
        weight_activations: The part of these activations that gradients of weights still need, once the gradient of
            the input is there.

    Raises:
        OptionError: a number is not valid, or no schedule holds so few microbatches.
    """
    values = times if isinstance(times, StageTimes) else StageTimes(**dict(times or {}))
    _check_numbers(meshes, microbatches, limit, weight_activations)
    most = float(microbatches if limit is None else min(microbatches, limit))
    sizes = PipelineSizes(meshes, microbatches, values, most, weight_activations)
    best = _best_by_name(sizes)
    longest = best.longest if best is not None else float("inf")
    orders = None
    for rule in _rules(sizes):
        if longest <= sizes.shortest() + _SLACK:
            break
        result = greedy_orders(sizes, rule, longest)
        if result is not None:
            longest, orders = result
    if orders is not None:
        return simulate(PipelineSchedule(orders, "searched"), values)
    if best is None:
        message = f"no schedule of {meshes} meshes holds at most {limit:g} microbatches"
        raise OptionError(Diagnostic("schedule-limit", message, hint=f"give limit={min(meshes, microbatches)}"))
    return best


def _check_numbers(meshes: int, microbatches: int, limit: float | None, weight_activations: float) -> None:
    check_counts(meshes=meshes, microbatches=microbatches)
    if limit is not None and not _is_amount(limit, float("inf")):
        message = f"limit is {shown(limit)}, not a number from 0 on"
        raise OptionError(Diagnostic("invalid-number", message, hint="give limit=4"))
    if not _is_amount(weight_activations, 1.0):
        message = f"weight_activations is {shown(weight_activations)}, not a number from 0 to 1"
        raise OptionError(Diagnostic("invalid-number", message, hint="give weight_activations=1.0"))


def _is_amount(value: object, top: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= top


def _best_by_name(sizes: PipelineSizes) -> Timeline | None:
    """Return the best timeline of the schedules by name, which is the answer where nothing is better."""
    best: Timeline | None = None
    for name in SCHEDULES:
        try:
            schedule = build_schedule(name, meshes=sizes.meshes, microbatches=sizes.microbatches)
        except OptionError:
            continue  # It does not exist for these numbers.
        if schedule.stage_count != sizes.meshes or schedule.has_replicated_stages:
            continue
        timeline = simulate(schedule, sizes.times)
        if timeline.held(sizes.weight_activations) > sizes.limit + _SLACK:
            continue
        if best is None or timeline.longest < best.longest - _SLACK:
            best = timeline
    return best


def _rules(sizes: PipelineSizes) -> Iterator[GreedyRule]:
    """Give rules by what is most often best first, none twice.

    As many forward parts as end before the first gradient of an input arrives, and weights in gaps that they fit
    into; then more or fewer in flight, and smaller gaps.
    """
    budgets = sizes.shortest() - sizes.work, float("inf")
    seen = set()
    for scale, offset, gap, budget in product(_SCALES, _OFFSETS, _GAPS, budgets):
        counts = tuple(max(1, _fitting_forwards(sizes, mesh, scale) + offset) for mesh in range(sizes.meshes))
        rule = GreedyRule(tuple(min(count, sizes.microbatches) for count in counts), gap, budget)
        if rule not in seen:
            seen.add(rule)
            yield rule


def _fitting_forwards(sizes: PipelineSizes, mesh: int, scale: float) -> int:
    """Return how many forward parts end on a mesh before its first gradient of an input can arrive, or a part of it."""
    if not sizes.times.forward:
        return sizes.microbatches
    return floor(scale * sizes.first_gradient_time(mesh) / sizes.times.forward + _SLACK)

"""Laws of explanations of whole programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from shardy_py import ShardyError, propagate
from shardy_py.oracle.generate import generate
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import axis_set_difference
from shardy_py.trace.chains import SlotChain, find_chains
from shardy_py.trace.missing_axes import find_missing
from shardy_py.trace.slot_moves import SlotMove
from shardy_py.trace.trace import Trace

pytest.importorskip("jaxlib", reason="random programs are MLIR text")

SEEDS = range(12)
STRATEGIES = ("basic", "aggressive", "op-priority", "user-priority")


def traced(seed: int) -> Trace | None:
    """Return the trace of a random program, or None where it is refused."""
    try:
        result = propagate(generate(seed), trace=True, strategy=STRATEGIES[-1 - seed % 5 // 4])
    except ShardyError:
        return None
    return result.trace


@pytest.mark.parametrize("seed", SEEDS)
def test_the_history_ends_with_the_solution(seed: int) -> None:
    """The visits of the log, replayed, lead to the shardings of the solution."""
    trace = traced(seed)
    if trace is not None:
        assert [moments[-1].sharding for moments in trace.history.moments] == list(trace.solution.shardings)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_axis_goes_back_to_annotations(seed: int) -> None:
    """The chains of an axis cover all of it, and each ends in an annotation that has the axis where the chain ends."""
    trace = traced(seed)
    if trace is not None:
        check_chains(trace)


def check_chains(trace: Trace) -> None:
    """Check the chains of all axes."""
    for slot, dimension, axis in axes_of(trace):
        mesh = trace.problem.table.mesh_of(trace.history.last(slot))
        chains = find_chains(trace, slot, dimension, axis)
        assert axis_set_difference((axis,), [chain.axis for chain in chains], mesh) == ()
        for chain in chains:
            start = chain.annotation.sharding.dim_shardings[chain.dimension].axes
            assert any(item.contains(chain.axis) for item in start)
            assert all(later.visit > earlier.visit or later.direction == "group" for later, earlier in pairs(chain))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_axis_that_is_not_there_has_a_reason(seed: int) -> None:
    """Of every tensor with a sharding, for every dimension; what lost is a dimension that has the axis."""
    trace = traced(seed)
    if trace is None:
        return
    for slot in range(len(trace.problem.slot_values)):
        sharding = trace.history.last(slot)
        for dimension in range(sharding.rank if sharding else 0):
            check_reasons(trace, slot, dimension)


def check_reasons(trace: Trace, slot: int, dimension: int) -> None:
    """Check the reasons of one dimension."""
    mesh = trace.problem.table.mesh_of(trace.history.last(slot))
    for axis, reasons in find_missing(trace, slot, dimension, mesh):
        assert reasons, (slot, dimension, axis)
        for reason in reasons:
            if reason.source is None:
                continue
            source, source_dimension = reason.source
            had = trace.history.before(source, 2 * reason.visit + 1) if reason.visit >= 0 else None
            sharding = trace.history.last(source) if had is None else trace.history.sharding(had)
            held = sharding.dim_shardings[source_dimension].axes if sharding else ()
            manual = trace.annotations[source].sharding.dim_shardings if source in trace.annotations else ()
            outside = manual[source_dimension].axes if manual else ()
            assert any(item.overlaps(reason.axis) for item in (*held, *outside))


def axes_of(trace: Trace) -> Iterator[tuple[int, int, AxisRef]]:
    """Yield the axes of all dimensions at the end."""
    for slot in range(len(trace.problem.slot_values)):
        sharding = trace.history.last(slot)
        for dimension, dim in enumerate(sharding.dim_shardings if sharding else ()):
            for axis in dim.axes:
                yield slot, dimension, axis


def pairs(chain: SlotChain) -> Iterable[tuple[SlotMove, SlotMove]]:
    """Return successive moves of a chain."""
    return zip(chain.moves, chain.moves[1:], strict=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_tracing_changes_nothing(seed: int) -> None:
    """With and without a trace the result is the same."""
    try:
        plain = propagate(generate(seed))
    except ShardyError:
        return
    assert propagate(generate(seed), trace=True).text == plain.text
    assert plain.trace is None

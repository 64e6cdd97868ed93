"""A program on two partitioners, side by side: bytes, seconds, deviation, and the summary of many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import exp, inf, isclose, log
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from shardy_py.cost.estimates import Cost
    from shardy_py.jax.figures import XlaFigures

_TURNS = 7
_SECONDS = 60.0
"""The processor time after which no further turn begins."""
_ADDED = 64
"""Bytes that are added to both sides of a ratio, as many programs send nothing."""


@frozen
class PartitionerComparison:
    """A program on both ways: bytes that one device sends, processor time, and the largest relative deviation.

    `is_counted` says whether costs count what the compiled program sends, collectives of each kind by themselves.
    """

    name: str
    our_bytes: float
    their_bytes: float
    our_seconds: float
    their_seconds: float
    deviation: float
    is_counted: bool

    @property
    def byte_ratio(self) -> float:
        """Our bytes by theirs."""
        return (self.our_bytes + _ADDED) / (self.their_bytes + _ADDED)

    @property
    def time_ratio(self) -> float:
        """Our seconds by theirs."""
        return self.our_seconds / self.their_seconds

    @property
    def sends_no_more(self) -> bool:
        """True if ours sends at most the bytes of theirs."""
        return self.our_bytes <= self.their_bytes

    def __str__(self) -> str:
        return (
            f"{self.name:40} {self.our_bytes:14,.0f} {self.their_bytes:14,.0f} {self.byte_ratio:7.2f}"
            f" {self.time_ratio:7.2f} {self.deviation:9.1e} {'equal' if self.is_counted else 'other':>6}"
        )


@frozen
class CompiledModule:
    """A compiled module, as `shardy_py.jax.figures.measure` reads it."""

    devices: Sequence[Any]
    executable: Any


def counts_what_is_sent(cost: Cost, figures: XlaFigures) -> bool:
    """Return whether a cost counts, of each kind of collective, the bytes of the compiled program."""
    from shardy_py.cost.against_xla import XlaComparison

    return all(isclose(item.bytes, item.xla_bytes, rel_tol=1e-3) for item in XlaComparison(cost, figures).kinds)


def largest_deviation(results: Sequence[Any], expected: Sequence[Any]) -> float:
    """Return the largest relative deviation between the results of two runs.

    It is infinite if NaNs, integers or booleans differ, as a wrong index is near the right one.
    """
    from shardy_py.jax.deviations import compare_results

    items = compare_results(results, expected)
    if any(item.nans or (item.relative and not item.tolerance) for item in items):
        return inf
    return max((item.relative for item in items), default=0.0)


def seconds_in_turns(*runs: Callable[[], Any]) -> list[float]:
    """Return the median of the processor time of all devices that each of some functions takes; they run in turns.

    The devices are those of the host: what passes on its clock depends on what else runs there.
    """
    times: list[list[float]] = [[] for _ in runs]
    end = process_time() + _SECONDS
    while not times[0] or (len(times[0]) < _TURNS and process_time() < end):
        for number, run in enumerate(runs):
            start = process_time()
            run()
            times[number].append(process_time() - start)
    return [median(item) for item in times]


def print_comparisons(items: Iterable[PartitionerComparison | str]) -> list[PartitionerComparison]:
    """Print a row per program, then the share of programs that send no more, and the geometric means."""
    comparisons = []
    head = (
        f"{'program':40} {'our bytes':>14} {'their bytes':>14} {'bytes':>7} {'time':>7} {'deviation':>9} {'costs':>6}"
    )
    print(head, flush=True)
    for item in items:
        print(item, flush=True)
        comparisons += [item] if isinstance(item, PartitionerComparison) else []
    share = sum(item.sends_no_more for item in comparisons) / max(1, len(comparisons))
    byte_ratio = geometric_mean([item.byte_ratio for item in comparisons])
    time_ratio = geometric_mean([item.time_ratio for item in comparisons])
    print(f"{len(comparisons)} programs, {share:.0%} of which send no more than XLA's partitioner")
    print(f"geometric means: bytes {byte_ratio:.2f}, time {time_ratio:.2f}")
    print(f"costs count the bytes of the compiled program in {sum(item.is_counted for item in comparisons)}")
    return comparisons


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean of ratios; 0 of none."""
    return exp(sum(map(log, ratios)) / len(ratios)) if ratios else 0.0

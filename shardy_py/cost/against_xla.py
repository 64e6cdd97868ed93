"""Estimates beside XLA's own figures of the same program, compiled for host devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from shardy_py.cost.estimates import Cost
from shardy_py.jax.figures.values import XlaFigures
from shardy_py.values import frozen


@frozen
class EstimateComparison:
    """One number, estimated and by XLA.

    Args:
        name: Its name.
        estimate: The estimate.
        xla: XLA's number.
    """

    name: str
    estimate: float
    xla: float

    @property
    def ratio(self) -> float | None:
        """The estimate by XLA's number; None where only XLA's is zero."""
        if self.xla:
            return self.estimate / self.xla
        return None if self.estimate else 1.0


@frozen
class KindComparison:
    """The collectives of one kind, estimated and by XLA.

    Args:
        kind: The kind.
        count: The number of collectives in the program, combined ones counted once.
        xla_count: The same by XLA.
        runs: The number of their runs.
        xla_runs: The same by XLA.
        bytes: The bytes that one device sends in all runs.
        xla_bytes: The same by XLA.
    """

    kind: str
    count: int
    xla_count: int
    runs: float
    xla_runs: float
    bytes: float
    xla_bytes: float


@frozen
class XlaComparison:
    """The cost of a program beside XLA's figures.

    Args:
        cost: The estimate.
        figures: XLA's figures.
    """

    cost: Cost
    figures: XlaFigures

    @property
    def numbers(self) -> tuple[EstimateComparison, ...]:
        """The numbers of one device, loops counted as often as they run."""
        return tuple(self._numbers())

    @property
    def kinds(self) -> tuple[KindComparison, ...]:
        """The collectives by kind, the kinds in alphabetical order; local ops that send nothing are left out."""
        return tuple(self._kinds())

    def _numbers(self) -> Iterator[EstimateComparison]:
        cost, figures = self.cost, self.figures
        pairs = (
            ("flops", cost.flops, figures.flops),
            ("transcendentals", cost.transcendentals, figures.transcendentals),
            ("memory_traffic_bytes", cost.memory_traffic_bytes, figures.bytes_accessed),
            ("communication_bytes", cost.communication_bytes, figures.communication_bytes),
            ("argument_bytes", cost.argument_bytes, figures.argument_bytes),
            ("result_bytes", cost.result_bytes, figures.result_bytes),
            ("peak_bytes", cost.peak_bytes, figures.peak_bytes),
        )
        for name, quantity, value in pairs:
            yield EstimateComparison(name, quantity.value or 0.0, value)

    def _kinds(self) -> Iterator[KindComparison]:
        ours = [item for item in self.cost.transfers if item.bytes]
        theirs = self.figures.collectives
        for kind in sorted({item.kind for item in ours} | {item.kind for item in theirs}):
            mine = [item for item in ours if item.kind == kind]
            others = [item for item in theirs if item.kind == kind]
            first = [item for item in mine if item.combined_with < 0]
            yield KindComparison(
                kind,
                len({item.op_id for item in first}),
                len(others),
                sum(item.runs for item in first),
                sum(item.runs for item in others),
                sum(item.runs * item.bytes for item in mine),
                sum(item.runs * item.bytes for item in others),
            )

    def to_json(self, *, transfers: bool = False) -> dict[str, Any]:
        """Return the comparison as plain lists, dictionaries and numbers.

        Args:
            transfers: Whether to list every transfer of both, too.
        """
        xla = attrs.asdict(self.figures)
        collectives = xla.pop("collectives")
        xla["peak_bytes"] = self.figures.peak_bytes
        xla["communication_bytes"] = self.figures.communication_bytes
        result: dict[str, Any] = {
            "numbers": [{**attrs.asdict(item), "ratio": item.ratio} for item in self.numbers],
            "collectives": [attrs.asdict(item) for item in self.kinds],
            "estimate": self.cost.to_json(transfers=transfers),
            "xla": xla,
        }
        if transfers:
            xla["collectives"] = collectives
        return result

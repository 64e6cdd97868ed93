"""Costs of ordinary loops and branches, for dialects to use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.costs import CostOpInterface
from shardy_py.values import NoFields, frozen


class BranchCost(NoFields, CostOpInterface):
    """One of the regions runs; which one is not known, so that all are equally likely."""

    def get_region_runs(self, op: Op) -> Sequence[float | None]:
        """Return the same fraction for each region."""
        return [1 / len(op.regions)] * len(op.regions)


@frozen
class CountedLoopCost(CostOpInterface):
    """A loop from one operand up to another by a third: it runs a known number of times where all are constant.

    Args:
        constant: Returns the number that a value always is, or None.
        first_operand: The number of the operand that is the lower bound; the upper bound and the step follow.
    """

    constant: Callable[[Value], int | None]
    first_operand: int = 0

    def get_region_runs(self, op: Op) -> Sequence[float | None]:
        """Return the number of runs of the only region."""
        bounds = op.operands[self.first_operand : self.first_operand + 3]
        lower, upper, step = map(self.constant, bounds)
        if lower is None or upper is None or step is None or step <= 0:
            return [None]
        return [max(0, -(-(upper - lower) // step))]

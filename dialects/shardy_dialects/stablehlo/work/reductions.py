"""Reductions over dimensions, and scatters.

As in XLA's hlo_cost_analysis.cc::HandleReduce and HandleScatter.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from attrs import frozen

from shardy_dialects.stablehlo.work.elementwise import region_work
from shardy_py.ir.graph import Op
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork


@frozen
class ReduceCost(CostOpInterface):
    """A reduction: its region runs once per element that disappears."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the work of the region times the elements that disappear."""
        runs = max(0, prod(shapes.operands[0]) - prod(shapes.results[0]))
        flops, transcendentals = region_work(op)
        return OpWork(flops * runs, transcendentals * runs)


@frozen
class ScatterCost(CostOpInterface):
    """A scatter: its region runs once per element of the updates, and only the places of updates are touched."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the work of the region times the elements of the updates."""
        count = len(op.results)
        updates = prod(shapes.operands[-1])
        flops, transcendentals = region_work(op)
        touched = dict.fromkeys(range(count), float(updates))
        return OpWork(flops * updates, transcendentals * updates, touched, touched)


COSTS: Mapping[str, CostOpInterface] = {"reduce": ReduceCost(), "scatter": ScatterCost()}

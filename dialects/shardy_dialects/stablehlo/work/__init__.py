"""Work of the ops, by the conventions of XLA's HloCostAnalysis: operations, and elements that are read and written.

Costs without fields are plain classes: a class of attrs takes a millisecond to make, in every process.
"""

from __future__ import annotations

from collections.abc import Mapping

from shardy_dialects.stablehlo.work import (
    contractions,
    elementwise,
    library,
    moving,
    normalization,
    others,
    reductions,
    solvers,
    windows,
)
from shardy_py.plugins import CostOpInterface


def works() -> Mapping[str, CostOpInterface]:
    """Return the costs by the names of the ops, without the dialect."""
    families = (library, elementwise, contractions, reductions, windows, moving, normalization, solvers, others)
    return {name: cost for family in families for name, cost in family.COSTS.items()}

"""Indexing maps as arithmetic."""

from __future__ import annotations

from xdsl.dialects import builtin

from shardy_py.indexing.expressions import Binary, Expression
from shardy_py.indexing.indexing_map import Interval
from shardy_py.indexing.ranges import Ranges
from shardy_py.kernels.dialect.ops import ApplyIndexingOp
from shardy_py.kernels.passes.base import KernelContext, erase_dead_ops, replace, walk_ops
from shardy_py.kernels.passes.index_arithmetic import IndexArithmetic
from shardy_py.kernels.passes.index_ranges import IndexRanges
from shardy_py.values import frozen

_DIVISIONS = ("/", "mod", "ceildiv")


@frozen
class SimplifyAffine:
    """Turn maps into ``arith`` where divisions see no negative numbers, so that they need no rounding down."""

    name: str = "simplify-affine"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        lower_maps(module, only_natural=True)


@frozen
class LowerAffine:
    """Turn the maps that are left into ``arith``, with divisions that round down."""

    name: str = "lower-affine"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        lower_maps(module, only_natural=False)


def lower_maps(module: builtin.ModuleOp, *, only_natural: bool) -> None:
    """Turn maps into arithmetic, in place.

    Args:
        module: The module.
        only_natural: Whether maps are left that divide what may be negative.
    """
    known = IndexRanges()
    for op in walk_ops(module.body):
        if not isinstance(op, ApplyIndexingOp):
            continue
        intervals = {}
        for (variable, bound), value in zip(op.map.variables.items(), op.arguments, strict=True):
            found: Interval | None = known.of(value)
            intervals[variable] = bound.interval if found is None else bound.interval.meet(found)
        ranges = Ranges(intervals)
        if only_natural and not all(_divides_naturals(result, ranges) for result in op.map.results):
            continue
        values = dict(zip(op.map.variables, op.arguments, strict=True))
        arithmetic = IndexArithmetic(op, values, ranges)
        replace(op, [arithmetic.value(result) for result in op.map.results])
    erase_dead_ops(module.body)


def _divides_naturals(expression: Expression, ranges: Ranges) -> bool:
    if not isinstance(expression, Binary):
        return True
    if expression.op in _DIVISIONS:
        is_natural = ranges.of(expression.left).lower >= 0 and ranges.of(expression.right).lower > 0
        if not is_natural or expression.op == "ceildiv":
            return False
    return _divides_naturals(expression.left, ranges) and _divides_naturals(expression.right, ranges)

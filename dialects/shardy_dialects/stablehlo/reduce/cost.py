"""Costs of reductions.

As in XLA's hlo_cost_analysis.cc::HandleReduce.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_dialects.stablehlo.attributes import case_of, integers_of
from shardy_dialects.stablehlo.costs import LibraryCost, element_types, has_many_elements
from shardy_dialects.stablehlo.elementwise.cost import region_work
from shardy_dialects.stablehlo.elementwise.ops import COMBINING, COMPARE, OR, SELECT
from shardy_py.ir.graph.program import Block, Op
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.costs import Part
from shardy_py.plugins import OpShapes, OpWork
from shardy_py.sharding.combiner import Combiner


class ReduceCost(LibraryCost):
    """A reduction: its region runs once per element that disappears."""

    def _is_in_library(self, op: Op, shapes: OpShapes) -> bool:
        is_single = len(op.results) == 1 and element_types(op) in ({"f32"}, {"f64"})
        return is_single and has_many_elements(shapes) and combines(op)

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the work of the region times the elements that disappear."""
        runs = max(0, prod(shapes.operands[0]) - prod(shapes.results[0]))
        flops, transcendentals = region_work(op)
        return OpWork(flops * runs, transcendentals * runs)

    def get_parts(self, op: Op) -> Sequence[Part | None]:
        """Return which results are the largest or the smallest elements, alone or beside their places.

        XLA:CPU takes the largest ones where ``jnp.argmax`` finds their places, which looks for NaN, too.
        """
        count, type_ = len(op.results), op.results[0].type
        if not isinstance(type_, TensorType) or type_.element_type not in _KEPT_TYPES:
            return ()
        extreme = _extreme(op.regions[0].blocks[0], count) if op.regions and op.regions[0].blocks else None
        if extreme is None:
            return ()
        return ((f"{extreme} {integers_of(op, 'dimensions')}", (0, count)), *[None] * (count - 1))


def _extreme(block: Block, count: int) -> str | None:
    """Return the op of scalars that gives the first result of a region that reduces, if that is an extreme."""
    ending = block.terminator
    if ending is None or len(ending.operands) != count or len(block.arguments) != 2 * count:
        return None
    producer, pair = ending.operands[0].defining_op, (block.arguments[0], block.arguments[count])
    if producer is None:
        return None
    if count == 1:
        is_extreme = producer.name in _EXTREMES.values() and set(producer.operands) == set(pair)
        return producer.name if is_extreme else None
    if producer.name != SELECT or tuple(producer.operands[1:]) != pair:
        return None
    choice = producer.operands[0].defining_op
    if choice is None or choice.name != OR:
        return None
    tests = {_comparison(value.defining_op): value for value in choice.operands}
    unequal = ("NE", pair[0], pair[0])
    return next((name for direction, name in _EXTREMES.items() if {(direction, *pair), unequal} == set(tests)), None)


_KEPT_TYPES = ("f32", "f64")
"""The types that XLA:CPU finds them in; narrower ones are converted before."""


_EXTREMES = {"GT": COMBINING[Combiner.MAX], "LT": COMBINING[Combiner.MIN]}


def _comparison(op: Op | None) -> tuple[object, ...]:
    """Return the direction of a comparison, and what it compares."""
    if op is None or op.name != COMPARE:
        return ()
    return (case_of(op, "comparison_direction"), *op.operands)


_COMBINING = frozenset(COMBINING[combiner] for combiner in (Combiner.ADD, Combiner.MAX, Combiner.MIN))


def combines(op: Op) -> bool:
    """Return whether a reduction is a sum, or gives the largest or the smallest element."""
    op_names = [inner.name for block in op.regions[0].blocks for inner in block.ops if inner.results]
    return len(op_names) == 1 and op_names[0] in _COMBINING


_LEAST_ELEMENTS = 4096
"""Of an operand or of the result, unless it only moves or multiplies."""

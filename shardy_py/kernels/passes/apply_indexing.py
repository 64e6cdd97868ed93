"""Folding of ``apply_indexing``: constants, chains, operands that are not used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects import arith
from xdsl.ir import Operation, OpResult, SSAValue

from shardy_py.indexing import Bound, Constant, Expression, IndexingMap, Variable, VariableKind, simplify
from shardy_py.indexing.expressions import rewritten, variables_of
from shardy_py.kernels.dialect.ops import ApplyIndexingOp
from shardy_py.kernels.dialect.types import index_attribute
from shardy_py.kernels.passes.base import constant_value, insert_before, replace


class AffineValue:
    """An index as an expression over other values of the kernel.

    Args:
        operands: The values; each is a dimension of the expression.
        bounds: Their bounds and names.
    """

    def __init__(self) -> None:
        self.operands: list[SSAValue] = []
        self.bounds: list[Bound] = []
        self._numbers: dict[SSAValue, int] = {}

    def variable(self, value: SSAValue, bound: Bound) -> Variable:
        """Return the dimension that stands for a value; equal values share one, within both bounds."""
        number = self._numbers.setdefault(value, len(self.operands))
        if number < len(self.operands):
            interval = bound.interval.meet(self.bounds[number].interval)
            self.bounds[number] = Bound(interval, self.bounds[number].name or bound.name)
            return Variable(VariableKind.DIM, number)
        self.operands.append(value)
        self.bounds.append(bound)
        return Variable(VariableKind.DIM, number)

    def of(self, value: SSAValue, bound: Bound) -> Expression:
        """Return an operand of an op as an expression: chains of maps are followed, constants put in."""
        constant = constant_value(value)
        if constant is not None:
            return Constant(constant)
        if isinstance(value, OpResult) and isinstance(value.op, ApplyIndexingOp):
            return self.result(value.op, value.index)
        return self.variable(value, bound)

    def result(self, op: ApplyIndexingOp, number: int) -> Expression:
        """Return a result of an op as an expression."""
        map_ = op.map
        values = {
            name: self.of(operand, bound)
            for (name, bound), operand in zip(map_.variables.items(), op.arguments, strict=True)
        }
        return rewritten(map_.results[number], values)


def single_map(expression: Expression, affine: AffineValue) -> tuple[IndexingMap, list[SSAValue]]:
    """Return an expression as a simplified map of the values that it really uses, with names that are unique."""
    if any(bound.interval.is_empty for bound in affine.bounds):
        return IndexingMap((Constant(0),)), []
    names: set[str] = set()
    bounds = []
    for bound in affine.bounds:
        bounds.append(Bound(bound.interval, "" if bound.name in names else bound.name))
        names.add(bound.name)
    map_, numbers = _shortest(IndexingMap((expression,), tuple(bounds)))
    return map_, [affine.operands[number] for number in numbers]


# Passes fold the same maps again and again.
@lru_cache(maxsize=1 << 12)
def _shortest(map_: IndexingMap) -> tuple[IndexingMap, tuple[int, ...]]:
    """Return a simplified map of one result without the dimensions that it does not mention, and which it mentions."""
    # These take no part in simplifying it.
    map_, used = _used_part(map_)
    map_, still_used = _used_part(simplify(map_))
    return simplify(map_), tuple(used[number] for number in still_used)


def _used_part(map_: IndexingMap) -> tuple[IndexingMap, tuple[int, ...]]:
    """Return a map of one result without the dimensions that it does not mention, and the numbers of the others."""
    (result,) = map_.results
    used = sorted(item.number for item in variables_of(result))
    numbers: dict[Variable, Expression] = {
        Variable(VariableKind.DIM, number): Variable(VariableKind.DIM, place) for place, number in enumerate(used)
    }
    short = IndexingMap((rewritten(result, numbers),), tuple(map_.dims[number] for number in used))
    return short, tuple(used)


def fold_apply(op: ApplyIndexingOp) -> None:
    """Put the simplest ops in the place of one: values, constants, or one map of the values that are really used."""
    values = [_folded(op, number) for number in range(len(op.map.results))]
    if len(values) == 1 and isinstance(values[0].owner, ApplyIndexingOp) and values[0].owner is op:
        return
    replace(op, values)


def _folded(op: ApplyIndexingOp, number: int) -> SSAValue:
    affine = AffineValue()
    expression = affine.result(op, number)
    map_, operands = single_map(expression, affine)
    return place_map(op, map_, operands)


def place_map(before: Operation, map_: IndexingMap, operands: Sequence[SSAValue]) -> SSAValue:
    """Return the result of a map with one result, by the ops that it needs."""
    (result,) = map_.results
    if isinstance(result, Constant):
        return insert_before(before, arith.ConstantOp(index_attribute(result.value)))
    if isinstance(result, Variable):
        return operands[result.number]
    if isinstance(before, ApplyIndexingOp) and before.map == map_ and list(before.arguments) == list(operands):
        return before.results[0]
    return insert_before(before, ApplyIndexingOp(map_, operands))

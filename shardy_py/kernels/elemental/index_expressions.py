"""Index expressions as ops: results of indexing maps, and conditions that indices lie in their domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, builtin
from xdsl.ir import Operation, SSAValue

from shardy_py.indexing import (
    Constant,
    Expression,
    IndexingMap,
    Interval,
    Variable,
    VariableKind,
    without_variables,
)
from shardy_py.indexing.expressions import variables_of
from shardy_py.kernels.dialect.ops import ApplyIndexingOp
from shardy_py.kernels.dialect.types import index_attribute


def add_op(builder: Builder, op: Operation) -> SSAValue:
    """Add an op and return its first result."""
    builder.insert(op)
    return op.results[0]


def index_constant(builder: Builder, value: int) -> SSAValue:
    """Return a constant index."""
    return add_op(builder, arith.ConstantOp(index_attribute(value)))


def apply_map(
    builder: Builder, map_: IndexingMap, indices: Sequence[SSAValue], symbols: Sequence[SSAValue] = ()
) -> list[SSAValue]:
    """Return the results of a map, each by an op of its own; variables and constants need none."""
    values = {Variable(VariableKind.DIM, number): value for number, value in enumerate(indices)}
    kinds = [(VariableKind.RANGE, len(map_.ranges)), (VariableKind.RUNTIME, len(map_.runtimes))]
    variables = [Variable(kind, number) for kind, count in kinds for number in range(count)]
    values |= dict(zip(variables, symbols, strict=False))
    return [_expression_value(builder, map_, result, values, (*indices, *symbols)) for result in map_.results]


def _expression_value(
    builder: Builder,
    map_: IndexingMap,
    expression: Expression,
    values: Mapping[Variable, SSAValue],
    operands: Sequence[SSAValue],
) -> SSAValue:
    if isinstance(expression, Variable):
        return values[expression]
    if isinstance(expression, Constant):
        return index_constant(builder, expression.value)
    single = IndexingMap((expression,), map_.dims, map_.ranges, map_.runtimes)
    if single.is_known_empty:
        # Nothing gets there, as behind padding that takes the place of all elements; an empty map has no text.
        return index_constant(builder, 0)
    return add_op(builder, ApplyIndexingOp(single, operands))


def domain_condition(
    builder: Builder, map_: IndexingMap, indices: Sequence[SSAValue], symbols: Sequence[SSAValue] = ()
) -> SSAValue:
    """Return whether variables lie in the domain of a map."""
    total = add_op(builder, arith.ConstantOp(builtin.IntegerAttr(1, builtin.i1)))
    conditions: list[SSAValue] = []
    for expression, interval in map_.constraints:
        value = _constrained_value(builder, map_, expression, (*indices, *symbols))
        conditions += interval_conditions(builder, value, interval)
    for bound, value in zip(map_.dims, indices, strict=True):
        conditions += interval_conditions(builder, value, bound.interval)
    for condition in conditions:
        total = add_op(builder, arith.AndIOp(total, condition))
    return total


def _constrained_value(
    builder: Builder, map_: IndexingMap, expression: Expression, operands: Sequence[SSAValue]
) -> SSAValue:
    """Return a constrained expression, by a map of those variables alone that it names."""
    used = variables_of(expression)
    unused = [variable for variable in map_.variables if variable not in used]
    single = without_variables(IndexingMap((expression,), map_.dims, map_.ranges, map_.runtimes), unused, {})
    used_values = [value for value, item in zip(operands, map_.variables, strict=True) if item in used]
    count = len(single.dims)
    (value,) = apply_map(builder, single, used_values[:count], used_values[count:])
    return value


def interval_conditions(builder: Builder, value: SSAValue, interval: Interval) -> list[SSAValue]:
    """Return conditions that a value lies in an interval."""
    if interval.is_point:
        return [_comparison(builder, "eq", value, interval.lower)]
    return [_comparison(builder, "sge", value, interval.lower), _comparison(builder, "sle", value, interval.upper)]


def _comparison(builder: Builder, predicate: str, value: SSAValue, bound: int) -> SSAValue:
    return add_op(builder, arith.CmpiOp(value, index_constant(builder, bound), predicate))

"""New axes of a step, each with the operand or result that it came from.

Mirrors source_sharding.cc::createSourceMap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import is_prefix
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.op_attributes import EdgeValueRef
from shardy_py.sharding.projection import Axes, TensorFactorShardings
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.values import frozen


@frozen
class NewAxis:
    """An axis that came onto a tensor of a step.

    Args:
        axis: The axis.
        target: The position of the tensor among operands, then results.
        source: The position of the tensor it came from.
    """

    axis: AxisRef
    target: int
    source: int


def find_new_axes(
    rule: OpShardingRule, mesh: Mesh, old: Sequence[TensorFactorShardings], new: Sequence[TensorFactorShardings]
) -> Iterator[NewAxis]:
    """Yield every axis that is on a tensor after a step and was not before, tensor by tensor.

    Args:
        rule: The rule of the step.
        mesh: The mesh.
        old: The factor shardings of operands, then results, before.
        new: Those after.
    """
    mappings = (*rule.operand_mappings, *rule.result_mappings)
    for target, mapping in enumerate(mappings):
        found: dict[AxisRef, int] = {}
        for factors in mapping:
            _find_in_dim(factors, mesh, old, new, target, found)
        for axis, source in found.items():
            yield NewAxis(axis, target, source)


def _find_in_dim(
    factors: Sequence[int],
    mesh: Mesh,
    old: Sequence[TensorFactorShardings],
    new: Sequence[TensorFactorShardings],
    target: int,
    found: dict[AxisRef, int],
) -> None:
    """Add the new axes of one dimension; the parts of an axis on successive factors count as one."""
    previous: AxisRef | None = None
    for factor in factors:
        if factor not in old[target].factors:
            # A factor minor to overflow axes takes no part.
            return
        before, after = old[target].factors[factor].axes, new[target].factors[factor].axes
        if before == after:
            continue
        last = after[-1]
        if previous is not None and previous.can_merge(last):
            found.pop(previous, None)
            last = previous.merge(last, mesh)
        previous = after[-1]
        source = _find_source(after, factor, old)
        if source is None:
            continue
        for axis in _added(before, (*after[:-1], last)):
            found.setdefault(axis, source)


def _added(before: Axes, after: Axes) -> Iterator[AxisRef]:
    """Yield the axes behind those of before, and the last of those if it grew."""
    last = len(before) - 1
    if before and before[last] != after[last]:
        yield after[last]
    yield from after[len(before) :]


def _find_source(axes: Axes, factor: int, old: Sequence[TensorFactorShardings]) -> int | None:
    """Return the first tensor that had all the axes along the factor."""
    for position, tensor in enumerate(old):
        entry = tensor.factors.get(factor)
        if entry is not None and is_prefix(axes, entry.axes):
            return position
    return None


def edge_value_ref(position: int, num_operands: int) -> EdgeValueRef:
    """Return the name of a position among operands, then results."""
    if position < num_operands:
        return EdgeValueRef("operand", position)
    return EdgeValueRef("result", position - num_operands)

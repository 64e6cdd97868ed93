"""Losses over classes of which each device has some: the number of the row's own class is summed over the devices."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.ir.graph.program import Value
from shardy_py.torch.parallel.in_parts.writer import OperatorWriter, element_type_of, shape_of

_NONE, _MEAN = 0, 1


def class_loss(write: OperatorWriter) -> Sequence[Value] | None:
    """Return the negative number of the class of each row, or their sum or mean."""
    value, target = write.tensor("self"), write.tensor("target")
    dim = 0 if len(shape_of(value)) == 1 else 1
    if not write.is_cut(value, [dim]):
        return None
    is_own, counted = _class_masks(write, value, target, dim)
    zero = write.pointwise("where.ScalarOther", condition=is_own, self=value, other=0.0)
    zero = write.cast(zero, element_type_of(value))
    rows = write.total(zero, [dim], keepdim=False)
    rows = write.pointwise("neg.default", self=rows)
    weights = _weights(write, value, is_own, counted, dim)
    losses = write.pointwise("mul.Tensor", self=rows, other=weights)
    reduction = write.op.attributes.get("reduction", _MEAN)
    dims = range(len(shape_of(losses)))
    total_weight = write.total(weights, dims, keepdim=False) if dims else weights
    if reduction != _NONE:
        losses = write.total(losses, dims, keepdim=False) if dims else losses
    if reduction == _MEAN:
        losses = write.pointwise("div.Tensor", self=losses, other=total_weight)
    return [losses, total_weight][: len(write.op.results)]


def class_loss_gradient(write: OperatorWriter) -> Sequence[Value] | None:
    """Return the gradients of the numbers of classes, which are zero but for the class of the row.

    So the sum of a row is known without a look at its parts.
    """
    value, target = write.tensor("self"), write.tensor("target")
    gradient = write.tensor("grad_output")
    dim = 0 if len(shape_of(value)) == 1 else 1
    if not (write.is_cut(value, [dim]) or write.is_cut(write.op.results[0], [dim])):
        return None
    like = value if write.is_cut(value, [dim]) else write.op.results[0]
    is_own, counted = _class_masks(write, like, target, dim)
    weights = _weights(write, like, is_own, counted, dim)
    reduction = write.op.attributes.get("reduction", _MEAN)
    rows = write.pointwise("mul.Tensor", self=weights, other=write.pointwise("neg.default", self=gradient))
    if reduction == _MEAN:
        rows = write.pointwise("div.Tensor", self=rows, other=write.tensor("total_weight"))
    # Where no row counts, all weights together are zero.
    rows = write.pointwise("where.ScalarOther", element_type_of(rows), condition=counted, self=rows, other=0.0)
    wide = write.unsqueezed(rows, dim)
    result = write.pointwise("where.ScalarOther", element_type_of(value), condition=is_own, self=wide, other=0.0)
    write.known_totals[result.id] = dim, wide
    return [result]


def _class_masks(write: OperatorWriter, value: Value, target: Value, dim: int) -> tuple[Value, Value]:
    """Return which elements are of the class of their row, and which rows count."""
    ignored = write.op.attributes.get("ignore_index", -100)
    counted = write.pointwise("ne.Scalar", "i1", self=target, other=ignored)
    wide = write.unsqueezed(target, dim)
    numbers = write.numbers(value, dim)
    return _sharded_like(write, value, write.pointwise("eq.Tensor", "i1", self=numbers, other=wide)), counted


def _sharded_like(write: OperatorWriter, value: Value, result: Value) -> Value:
    """Shard a result like a value of the same shape, and return it."""
    sharding = write.program.shardings.get(value.id)
    if sharding is not None and shape_of(result) == shape_of(value):
        write.program.shardings[result.id] = sharding
    return result


def _weights(write: OperatorWriter, value: Value, is_own: Value, counted: Value, dim: int) -> Value:
    """Return the weight of each row: that of its class, and zero where it does not count."""
    type_ = element_type_of(value)
    weight = write.operand("weight")
    rows = write.cast(counted, type_)
    if weight is None:
        return rows
    for _ in range(len(shape_of(value)) - 1 - dim):
        weight = write.unsqueezed(weight, len(shape_of(weight)))
    class_weights = write.pointwise("where.ScalarOther", type_, condition=is_own, self=weight, other=0.0)
    return write.pointwise("mul.Tensor", self=write.total(class_weights, [dim], keepdim=False), other=rows)

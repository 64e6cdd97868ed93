"""Softmax, its logarithm and its gradients: a maximum and a sum of each row are combined."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.ir.graph.program import Value
from shardy_py.torch.parallel.in_parts.writer import OperatorWriter, element_type_of, shape_of

_INFINITY = float("inf")


def softmax(write: OperatorWriter) -> Sequence[Value] | None:
    """Return exponentials divided by their sum."""
    shift = _shifted(write)
    if shift is None:
        return None
    shifted, highest, dims = shift
    exponentials = write.pointwise("exp.default", self=shifted)
    total = write.total(exponentials, dims)
    result = write.pointwise("div.Tensor", self=exponentials, other=total)
    if "_safe" in write.op.name:
        is_empty = write.pointwise("eq.Scalar", "i1", self=highest, other=-_INFINITY)
        result = write.pointwise("masked_fill.Scalar", self=result, mask=is_empty, value=0)
    return [write.cast(result, element_type_of(write.op.results[0]))]


def log_softmax(write: OperatorWriter) -> Sequence[Value] | None:
    """Return differences to the logarithm of the sum of exponentials."""
    shift = _shifted(write)
    if shift is None:
        return None
    shifted, _, dims = shift
    total = write.total(write.pointwise("exp.default", self=shifted), dims)
    logarithm = write.pointwise("log.default", self=total)
    result = write.pointwise("sub.Tensor", self=shifted, other=logarithm)
    return [write.cast(result, element_type_of(write.op.results[0]))]


def logsumexp(write: OperatorWriter) -> Sequence[Value] | None:
    """Return the logarithm of the sum of exponentials."""
    value = write.tensor("self")
    dims = write.dims(len(shape_of(value)))
    if not write.is_cut(value, dims):
        return None
    value = write.widened(value)
    highest = write.reduced("amax.default", value, dims)
    size = write.pointwise("abs.default", self=highest)
    is_infinite = write.pointwise("eq.Scalar", "i1", self=size, other=_INFINITY)
    highest = write.pointwise("masked_fill.Scalar", self=highest, mask=is_infinite, value=0)
    shifted = write.pointwise("sub.Tensor", self=value, other=highest)
    total = write.total(write.pointwise("exp.default", self=shifted), dims)
    result = write.pointwise("add.Tensor", self=write.pointwise("log.default", self=total), other=highest)
    if not write.op.attributes.get("keepdim", False):
        result = write.squeezed(result, dims)
    return [write.cast(result, element_type_of(write.op.results[0]))]


def softmax_gradient(write: OperatorWriter) -> Sequence[Value] | None:
    """Return the gradient of a softmax, for which the products of each row are summed."""
    gradient, output = write.tensor("grad_output"), write.tensor("output")
    dims = write.dims(len(shape_of(output)))
    if not (write.is_cut(output, dims) or write.is_cut(gradient, dims)):
        return None
    gradient, output = write.widened(gradient), write.widened(output)
    product = write.pointwise("mul.Tensor", self=gradient, other=output)
    total = write.total(product, dims)
    share = write.pointwise("mul.Tensor", self=output, other=total)
    result = write.pointwise("sub.Tensor", self=product, other=share)
    return [write.cast(result, element_type_of(write.op.results[0]))]


def log_softmax_gradient(write: OperatorWriter) -> Sequence[Value] | None:
    """Return the gradient of the logarithm of a softmax, for which the gradients of each row are summed."""
    gradient, output = write.tensor("grad_output"), write.tensor("output")
    dims = write.dims(len(shape_of(output)))
    if not (write.is_cut(output, dims) or write.is_cut(gradient, dims)):
        return None
    gradient, output = write.widened(gradient), write.widened(output)
    total = write.total(gradient, dims)
    share = write.pointwise("mul.Tensor", self=write.pointwise("exp.default", self=output), other=total)
    result = write.pointwise("sub.Tensor", self=gradient, other=share)
    return [write.cast(result, element_type_of(write.op.results[0]))]


def _shifted(write: OperatorWriter) -> tuple[Value, Value, tuple[int, ...]] | None:
    """Return the operand minus the maxima of its rows, these, and the dimension of the rows, where it is sharded."""
    value = write.tensor("self")
    dims = write.dims(len(shape_of(value)), default=-1)
    if not write.is_cut(value, dims):
        return None
    value = write.widened(value)
    value = write.cast(value, "f64") if element_type_of(write.op.results[0]) == "f64" else value
    highest = write.reduced("amax.default", value, dims)
    return write.pointwise("sub.Tensor", self=value, other=highest), highest, dims

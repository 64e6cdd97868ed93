"""Norms, variances and normalizations: sums of each row are combined."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf

from shardy_py.ir.graph.program import Value
from shardy_py.torch.parallel.in_parts.writer import OperatorWriter, element_type_of, shape_of, size_of

_EPSILONS = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}


def vector_norm(write: OperatorWriter) -> Sequence[Value] | None:
    """Return the norm of the elements along some dimensions."""
    value = write.tensor("self")
    order = write.op.attributes.get("ord", write.op.attributes.get("p", 2.0))
    dims = write.dims(len(shape_of(value)))
    if not write.is_cut(value, dims) or element_type_of(value).startswith("complex") or not dims:
        return None
    keepdim, result_type = bool(write.op.attributes.get("keepdim", False)), element_type_of(write.op.results[0])
    value = write.widened(value)
    value = write.cast(value, "f64") if result_type == "f64" else value
    sizes = write.pointwise("abs.default", self=value)
    if order == 2:
        squares = write.pointwise("mul.Tensor", self=value, other=value)
        total = write.total(squares, dims, keepdim=keepdim)
        result = write.pointwise("sqrt.default", self=total)
    elif order == 1:
        result = write.total(sizes, dims, keepdim=keepdim)
    elif isinf(order):
        result = write.reduced("amax.default" if order > 0 else "amin.default", sizes, dims, keepdim=keepdim)
    elif order == 0:
        counted = write.cast(write.pointwise("ne.Scalar", "i1", self=value, other=0), element_type_of(value))
        result = write.total(counted, dims, keepdim=keepdim)
    else:
        powers = write.pointwise("pow.Tensor_Scalar", self=sizes, exponent=order)
        total = write.total(powers, dims, keepdim=keepdim)
        result = write.pointwise("pow.Tensor_Scalar", self=total, exponent=1 / order)
    return [write.cast(result, result_type)]


def variance(write: OperatorWriter) -> Sequence[Value] | None:
    """Return the variance or the deviation along some dimensions, and perhaps the mean."""
    value, attributes = write.tensor("self"), write.op.attributes
    dims = write.dims(len(shape_of(value)))
    if not write.is_cut(value, dims) or element_type_of(value).startswith("complex"):
        return None
    correction = attributes.get("correction", 1)
    correction = 1 if correction is None else correction
    if "unbiased" in attributes:
        correction = int(attributes["unbiased"])
    keepdim, result_type = bool(attributes.get("keepdim", False)), element_type_of(write.op.results[0])
    count = size_of(value, dims)
    mean, squares = _moments(write, write.widened(value), dims)
    # Fewer elements than the correction have no variance.
    result = _divided(write, squares, max(count - correction, 0))
    if ".std" in write.op.name:
        result = write.pointwise("sqrt.default", self=result)
    results = [result, mean] if len(write.op.results) > 1 else [result]
    if not keepdim:
        results = [write.squeezed(item, dims) for item in results]
    return [write.cast(item, result_type) for item in results]


def layer_norm(write: OperatorWriter) -> Sequence[Value] | None:
    """Return elements minus the mean of their row, divided by its deviation, times weights plus a bias."""
    value = write.operand("input") or write.operand("self")
    assert value is not None, "a normalization has an operand"
    dims = _last(value, write)
    if not write.is_cut(value, dims):
        return None
    wide = write.widened(value)
    is_centred = "layer_norm" in write.op.name
    if is_centred:
        mean, squares = _moments(write, wide, dims)
        centred = write.pointwise("sub.Tensor", self=wide, other=mean)
    else:
        centred = wide
        squares = write.total(write.pointwise("mul.Tensor", self=wide, other=wide), dims)
    variances = _divided(write, squares, size_of(value, dims))
    epsilon = write.op.attributes.get("eps")
    epsilon = _EPSILONS[element_type_of(value)] if epsilon is None else epsilon
    raised = write.pointwise("add.Scalar", self=variances, other=epsilon)
    factor = write.pointwise("rsqrt.default", self=raised)
    result = write.pointwise("mul.Tensor", self=centred, other=factor)
    weight, bias = write.operand("weight"), write.operand("bias")
    if weight is not None:
        result = write.pointwise("mul.Tensor", self=result, other=write.widened(weight))
    if bias is not None:
        result = write.pointwise("add.Tensor", self=result, other=write.widened(bias))
    outputs = [result, *([mean] if is_centred else []), factor]
    old = write.op.results
    return [write.cast(item, element_type_of(value)) for item, value in zip(outputs, old, strict=False)]


def layer_norm_gradient(write: OperatorWriter) -> Sequence[Value] | None:
    """Return the gradient of the operand of a normalization, for which two sums of each row are combined.

    Those of weight and bias are ops of their own, which the import makes, and need no row.
    """
    mask = tuple(write.op.attributes.get("output_mask", ()))
    value = write.tensor("input")
    dims = _last(value, write)
    gradient = write.tensor("grad_out")
    if not mask or not (write.is_cut(value, dims) or write.is_cut(gradient, dims)):
        return None
    value, gradient = write.widened(value), write.widened(gradient)
    mean, factor = write.widened(write.tensor("mean")), write.widened(write.tensor("rstd"))
    centred = write.pointwise("sub.Tensor", self=value, other=mean)
    normal = write.pointwise("mul.Tensor", self=centred, other=factor)
    results = []
    if mask[0]:
        results.append(_operand_gradient(write, gradient, normal, factor, dims))
    rows = [dim for dim in range(len(shape_of(value))) if dim not in dims]
    if mask[1]:
        product = write.pointwise("mul.Tensor", self=gradient, other=normal)
        results.append(write.total(product, rows, keepdim=False) if rows else product)
    if mask[2]:
        results.append(write.total(gradient, rows, keepdim=False) if rows else gradient)
    old = write.op.results
    return [write.cast(item, element_type_of(value)) for item, value in zip(results, old, strict=True)]


def _operand_gradient(
    write: OperatorWriter, gradient: Value, normal: Value, factor: Value, dims: Sequence[int]
) -> Value:
    weight = write.operand("weight")
    if weight is not None:
        gradient = write.pointwise("mul.Tensor", self=gradient, other=write.widened(weight))
    count = size_of(normal, dims)
    along = write.total(write.pointwise("mul.Tensor", self=gradient, other=normal), dims)
    along = write.pointwise("mul.Tensor", self=normal, other=_divided(write, along, count))
    across = _divided(write, write.total(gradient, dims), count)
    inner = write.pointwise("sub.Tensor", self=gradient, other=along)
    inner = write.pointwise("sub.Tensor", self=inner, other=across)
    return write.pointwise("mul.Tensor", self=inner, other=factor)


def _moments(write: OperatorWriter, value: Value, dims: Sequence[int]) -> tuple[Value, Value]:
    """Return the means of rows, and the sums of the squares of the differences to them."""
    mean = _divided(write, write.total(value, dims), size_of(value, dims))
    centred = write.pointwise("sub.Tensor", self=value, other=mean)
    return mean, write.total(write.pointwise("mul.Tensor", self=centred, other=centred), dims)


def _divided(write: OperatorWriter, value: Value, count: float) -> Value:
    return write.pointwise("div.Scalar", self=value, other=float(count))


def _last(value: Value, write: OperatorWriter) -> tuple[int, ...]:
    rank = len(shape_of(value))
    return tuple(range(rank - len(write.op.attributes["normalized_shape"]), rank))

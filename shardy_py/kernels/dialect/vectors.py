"""Vectors: accesses to neighbouring elements, and constants."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects import builtin, vector
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

VectorOf = builtin.VectorType[Attribute]

_INSIDE = builtin.ArrayAttr([builtin.BoolAttr.from_bool(True)])


def element_type(value: SSAValue) -> Attribute:
    """Return the type of the elements of a tensor or vector."""
    assert isinstance(value.type, builtin.TensorType | builtin.VectorType)
    return value.type.element_type


def zero(type_: Any) -> builtin.FloatAttr[Any] | builtin.IntegerAttr[Any]:
    """Return a zero."""
    if isinstance(type_, builtin.IntegerType | builtin.IndexType):
        return builtin.IntegerAttr(0, type_)
    return builtin.FloatAttr(0.0, type_)


def zeros(type_: VectorOf) -> builtin.DenseIntOrFPElementsAttr:
    """Return a vector of zeros."""
    element: Any = type_.element_type
    number: Any = 0 if isinstance(element, builtin.IntegerType) else 0.0
    whole: Any = type_
    return builtin.DenseIntOrFPElementsAttr.from_list(whole, [number] * prod(type_.get_shape()))


def minor_dimension(rank: int) -> builtin.AffineMapAttr:
    """Return the map of an access along the last dimension of a tensor, as ``permutation_map`` takes it."""
    return builtin.AffineMapAttr(AffineMap(rank, 0, AffineMap.identity(rank).results[-1:]))


def read_vector(source: SSAValue, place: Sequence[SSAValue], type_: VectorOf, padding: SSAValue) -> Operation:
    """Return an op that reads neighbouring elements from a place on."""
    return vector.TransferReadOp(source, list(place), padding, type_, _INSIDE, minor_dimension(len(place)))


def write_vector(value: SSAValue, target: SSAValue, place: Sequence[SSAValue]) -> Operation:
    """Return an op that writes neighbouring elements from a place on."""
    type_: Any = target.type
    map_ = minor_dimension(len(place))
    return vector.TransferWriteOp(value, target, list(place), _INSIDE, permutation_map=map_, result_type=type_)

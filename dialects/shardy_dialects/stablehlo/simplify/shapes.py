"""Simpler forms of ops that move elements."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from shardy_dialects.stablehlo.attributes import integer_of, integers_of
from shardy_dialects.stablehlo.constants import IOTA
from shardy_dialects.stablehlo.local.new_ops import create, create_splat
from shardy_dialects.stablehlo.shape import BROADCAST, RESHAPE
from shardy_dialects.stablehlo.simplify.forwarding import Simplification
from shardy_dialects.stablehlo.slicing import CONCATENATE, SLICE
from shardy_dialects.stablehlo.splats import splat_of
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.rule_attributes import RULE_ATTRIBUTE
from shardy_py.ir.graph.types import TensorType, static_shape

TRANSPOSE = "stablehlo.transpose"
_NUMBERS = ("i", "ui", "f", "bf")
_WITHOUT_ZERO = ("f8E8M0FNU",)


def _producer(value: Value, name: str) -> Op | None:
    """Return the op of a name that gives a value; None where it would take a sharding along when it goes."""
    op = value.defining_op
    if op is None or op.name != name or RULE_ATTRIBUTE in op.attributes:
        return None
    return None if value.id in op.program.shardings else op


def simplify_broadcast(op: Op) -> Value | None:
    """Merge a broadcast with one before it; one that repeats nothing is a reshape or a transpose."""
    operand, dims = op.operands[0], integers_of(op, "broadcast_dimensions")
    shape, target = static_shape(operand.type), static_shape(op.result.type)
    if shape is None or target is None:
        return None
    if prod(shape) == prod(target):
        if list(dims) == sorted(dims):
            return create(op, RESHAPE, [operand], {})
        if len(shape) == len(target):
            inverse = tuple(dims.index(dim) for dim in range(len(dims)))
            return create(op, TRANSPOSE, [operand], {"permutation": inverse})
    inner = _producer(operand, BROADCAST)
    if inner is None:
        return None
    merged = tuple(dims[dim] for dim in integers_of(inner, "broadcast_dimensions"))
    return create(op, BROADCAST, [inner.operands[0]], {"broadcast_dimensions": merged})


def simplify_reshape(op: Op) -> Value | None:
    """Merge a reshape with one before it."""
    inner = _producer(op.operands[0], RESHAPE)
    if inner is None:
        return None
    source = inner.operands[0]
    return source if source.type == op.result.type else create(op, RESHAPE, [source], {})


def simplify_transpose(op: Op) -> Value | None:
    """Merge a transpose with one before it; one that moves only dimensions of size 1 is a reshape."""
    operand, permutation = op.operands[0], integers_of(op, "permutation")
    shape = static_shape(operand.type)
    if shape is None:
        return None
    moved = [dim for dim in permutation if shape[dim] != 1]
    if moved == sorted(moved):
        return create(op, RESHAPE, [operand], {})
    inner = _producer(operand, TRANSPOSE)
    if inner is None:
        return None
    before = integers_of(inner, "permutation")
    return create(op, TRANSPOSE, [inner.operands[0]], {"permutation": tuple(before[dim] for dim in permutation)})


def simplify_iota(op: Op) -> Value | None:
    """Count along one dimension, and repeat that; along a dimension of size 1 all is zero."""
    type_, dim = op.result.type, integer_of(op, "iota_dimension")
    if not isinstance(type_, TensorType):
        return None
    if type_.shape[dim] == 1 and type_.element_type.startswith(_NUMBERS) and type_.element_type not in _WITHOUT_ZERO:
        zero = "0" if "i" in type_.element_type else "0.0"
        return create_splat(op, zero)
    if len(type_.shape) < 2:
        return None
    counted = TensorType((type_.shape[dim],), type_.element_type)
    line = create(op, IOTA, [], {"iota_dimension": 0}, counted)
    return create(op, BROADCAST, [line], {"broadcast_dimensions": (dim,)})


def simplify_concatenate(op: Op) -> Value | None:
    """Join the parts of parts that nothing else uses."""
    dim = integer_of(op, "dimension")
    parts: list[Value] = []
    for operand in op.operands:
        inner = _producer(operand, CONCATENATE)
        joins = inner is not None and len(operand.uses) == 1 and integer_of(inner, "dimension") == dim
        parts += inner.operands if inner is not None and joins else (operand,)
    return None if len(parts) == len(op.operands) else create(op, CONCATENATE, parts, {"dimension": dim})


def simplify_dynamic_slice(op: Op) -> Value | None:
    """Return a slice from constant indices, which are moved into the operand as the op itself does."""
    operand, indices = op.operands[0], op.operands[1:]
    shape, sizes = static_shape(operand.type), static_shape(op.result.type)
    starts = [splat_of(index) for index in indices]
    if shape is None or sizes is None or any(start is None for start in starts):
        return None
    first = [max(0, min(int(start or 0), most - size)) for start, most, size in zip(starts, shape, sizes, strict=True)]
    attributes = {
        "start_indices": tuple(first),
        "limit_indices": tuple(start + size for start, size in zip(first, sizes, strict=True)),
        "strides": (1,) * len(first),
    }
    return create(op, SLICE, [operand], attributes)


SHAPES: Mapping[str, Simplification] = {
    BROADCAST: simplify_broadcast,
    CONCATENATE: simplify_concatenate,
    "stablehlo.dynamic_slice": simplify_dynamic_slice,
    IOTA: simplify_iota,
    RESHAPE: simplify_reshape,
    TRANSPOSE: simplify_transpose,
}
"""Op name to what returns the simpler form, or None."""

"""Vectors: those of one thread are the last dimensions of an array."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import builtin, vector
from xdsl.ir import Operation

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.memory import Buffer, Value
from shardy_py.kernels.run.tensors import Places, load, places, store
from shardy_py.kernels.run.values import rank_of


def _shape(type_: Any) -> tuple[int, ...]:
    return tuple(type_.get_shape())


def _positions(frame: Frame, op: vector.ExtractOp | vector.InsertOp, shape: tuple[int, ...]) -> list[Any]:
    """Return the position along each leading dimension, a number or an array.

    Raises:
        VerificationError: an active thread's position is outside of the vector.
    """
    positions = []
    for number, (position, size) in enumerate(zip(op.get_mixed_position(), shape, strict=False)):
        index = np.int64(position) if isinstance(position, int) else frame.get(position)
        inside = (index >= 0) & (index < size)
        message = f"a position is outside of dimension {number} of a vector, which has size {size}"
        frame.require(inside, op, "out-of-bounds", message)
        positions.append(np.where(inside, index, 0))
    return positions


def extract(frame: Frame, op: vector.ExtractOp) -> list[Value]:
    """Return an element, or the vector at leading positions."""
    value = frame.get(op.vector)
    positions = _positions(frame, op, _shape(op.vector.type))
    if np.ndim(value) > rank_of(op.vector.type):
        return [value[(np.arange(frame.threads.count), *positions)]]
    return [value[tuple(positions)]]


def insert(frame: Frame, op: vector.InsertOp) -> list[Value]:
    """Return the vector with an element, or a vector, at leading positions."""
    source, dest = frame.get(op.source), frame.get(op.dest)
    positions = _positions(frame, op, _shape(op.dest.type))
    inner, outer = rank_of(op.source.type), rank_of(op.dest.type)
    is_uniform = np.ndim(source) == inner and np.ndim(dest) == outer and not any(map(np.ndim, positions))
    if is_uniform:
        updated = np.array(dest)
        updated[tuple(positions)] = source
        return [updated]
    updated = np.array(np.broadcast_to(dest, (frame.threads.count, *_shape(op.dest.type))))
    updated[(np.arange(frame.threads.count), *positions)] = source
    return [updated]


def broadcast(frame: Frame, op: vector.BroadcastOp) -> list[Value]:
    """Return a vector whose elements are a scalar, or whose rows are a vector."""
    value = frame.get(op.source)
    inner, shape = rank_of(op.source.type), _shape(op.vector.type)
    if np.ndim(value) == inner:
        return [np.broadcast_to(value, shape)]
    added = len(shape) - inner
    expanded = np.reshape(value, (value.shape[0], *(1,) * added, *value.shape[1:]))
    return [np.broadcast_to(expanded, (value.shape[0], *shape))]


def from_elements(frame: Frame, op: Operation) -> list[Value]:
    """Return a vector of its elements."""
    values = np.broadcast_arrays(*frame.gets(op.operands))
    shape = _shape(op.results[0].type)
    return [np.stack(values, axis=-1).reshape((*np.shape(values[0]), *shape))]


def _access(frame: Frame, op: Any, type_: Any, buffer: Buffer) -> tuple[Places, int]:
    """Return the addresses at which threads access a tensor by vectors, and the size of the vectors.

    Raises:
        UnsupportedError: the vector has several dimensions, or the op a mask.
        VerificationError: an active thread's address is outside of the tensor, or not a multiple of the size.
    """
    if len(_shape(type_)) != 1 or getattr(op, "mask", None) is not None:
        message = "vectors of several dimensions, or under a mask, are not moved to memory"
        raise UnsupportedError(Diagnostic("run-vector-access", message, frame.kernel.stage, op.name))
    (width,) = _shape(type_)
    at = places(frame, op, buffer, op.indices, extent=width)
    wrong = np.broadcast_to(at.words % width != 0, (len(at.stamps),))
    if wrong.any():
        position = int(np.argmax(wrong)) if at.threads is None else int(at.threads[np.argmax(wrong)])
        message = f"the place of a vector of {width} elements in {buffer.memory.name} is not a multiple of its size"
        frame.report(position, op, "misaligned-vector", message)
    return at, width


def transfer_read(frame: Frame, op: vector.TransferReadOp) -> list[Value]:
    """Read neighbouring elements as a vector."""
    buffer: Buffer = frame.get(op.source)
    at, width = _access(frame, op, op.result.type, buffer)
    return [load(frame, op, buffer, at, width=width)]


def transfer_write(frame: Frame, op: vector.TransferWriteOp) -> list[Value]:
    """Write a vector to neighbouring elements in place."""
    buffer: Buffer = frame.get(op.source)
    at, width = _access(frame, op, op.vector.type, buffer)
    store(frame, op, buffer, at, frame.get(op.vector), width=width)
    return [buffer] if isinstance(op.source.type, builtin.TensorType) else []


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "vector.broadcast": broadcast,
        "vector.extract": extract,
        "vector.from_elements": from_elements,
        "vector.insert": insert,
        "vector.transfer_read": transfer_read,
        "vector.transfer_write": transfer_write,
    }
)

"""Tiles that threads hold, bodies of all threads, tensors as values."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.indexing import compose
from shardy_py.kernels.dialect.forall import ForallOp
from shardy_py.kernels.dialect.tile_ops import IndexedVectorType, InsertOp, MaterializeOp, ReduceOp, ReindexOp
from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.memory import Buffer, Memory, Value
from shardy_py.kernels.run.tensors import flat_places, store
from shardy_py.kernels.run.threads import block_size
from shardy_py.kernels.run.values import array_dtype, from_words, to_words


def _symbols(type_: IndexedVectorType) -> list[tuple[int, ...]]:
    return list(product(*map(range, type_.thread_shape)))


def materialize(frame: Frame, op: MaterializeOp) -> list[Value]:
    """Return the elements of the tile that each thread holds; zeros outside of the map's domain."""
    type_, count = op.output.type, frame.threads.count
    elements = np.zeros((count, prod(type_.thread_shape)), array_dtype(type_.element_type))
    dims = frame.gets(op.indices)
    for place, numbers in enumerate(_symbols(type_)):
        symbols = [np.int64(number) for number in numbers]
        mask = frame.active(op.map.holds(dims, symbols))
        if not frame.is_any(mask):
            continue
        with frame.under(mask):
            index = map(np.int64, op.map.evaluate(dims, symbols))
            element: Any
            (element,) = frame.call(op.callee.string_value(), [*frame.gets(op.inputs), *index], op)
        active = slice(None) if mask is None else mask
        elements[active, place] = np.broadcast_to(element, (count,))[active]
    return [elements]


def insert(frame: Frame, op: InsertOp) -> list[Value]:
    """Write the elements of a tile, each thread its own."""
    type_ = op.source.type
    assert isinstance(type_, IndexedVectorType)
    map_ = compose(type_.encoding.data, op.map)
    buffer: Buffer = frame.get(op.dest)
    value, dims = frame.get(op.source), frame.gets(op.indices)
    for place, numbers in enumerate(_symbols(type_)):
        symbols = [np.int64(number) for number in numbers]
        mask = frame.active(map_.holds(dims, symbols))
        if not frame.is_any(mask):
            continue
        with frame.under(mask):
            at = flat_places(frame, op, buffer, list(map(np.int64, map_.evaluate(dims, symbols))))
            store(frame, op, buffer, at, value[..., place])
    return [buffer]


def forall(frame: Frame, op: ForallOp) -> list[Value]:
    """Run the body once, each thread with its number; threads that the loop does not have do nothing."""
    indices = [frame.threads.ids(kind, number) for kind, number in op.mapped]
    mask = frame.mask
    for index, size in zip(indices, op.sizes, strict=True):
        with frame.under(mask):
            mask = frame.active(index < size)
    if frame.is_any(mask):
        with frame.under(mask):
            frame.run_block(op.body.block, [*indices, *frame.gets(op.inits)])
    return frame.gets(op.inits)


def _elements(frame: Frame, value: SSAValue) -> Any:
    """Return all elements of a tensor, in its shape.

    Raises:
        UnsupportedError: each block has memory of its own.
    """
    buffer: Buffer = frame.get(value)
    if buffer.memory.is_shared:
        message = "tensors in shared memory are not reindexed or reduced as a whole"
        raise UnsupportedError(Diagnostic("run-tensor-value", message, frame.kernel.stage))
    places = sum(
        np.arange(size).reshape((-1,) + (1,) * (len(buffer.shape) - number - 1)) * stride
        for number, (size, stride) in enumerate(zip(buffer.shape, buffer.strides, strict=True))
    )
    return from_words(buffer.memory.words[np.broadcast_to(places, buffer.shape)], buffer.type_)


def _buffer(frame: Frame, elements: Any, type_: Any) -> Buffer:
    words = to_words(np.ascontiguousarray(elements).reshape(-1), type_.element_type)
    memory = Memory(words, "a tensor that is a value", block_size(frame.threads.launch))
    return Buffer(memory, type_.element_type, tuple(type_.get_shape()))


def reindex(frame: Frame, op: ReindexOp) -> list[Value]:
    """Return the tensor with the elements where the map says."""
    source, type_ = _elements(frame, op.source), op.output.type
    shape = tuple(type_.get_shape())
    dims = list(np.indices(shape))
    inside = np.broadcast_to(op.map.holds(dims), shape)
    index = [np.where(inside, part, 0) for part in op.map.evaluate(dims)]
    if op.default is None:
        frame.require(inside.all(), op, "out-of-bounds", "the map leaves its domain, and there is no default")
        return [_buffer(frame, source[tuple(index)], type_)]
    default = frame.get(op.default)
    if np.ndim(default):
        message = "the default of a tensor that is reindexed differs between threads"
        raise UnsupportedError(Diagnostic("run-tensor-value", message, frame.kernel.stage, op.name))
    return [_buffer(frame, np.where(inside, source[tuple(index)], default).astype(source.dtype), type_)]


def reduce(frame: Frame, op: ReduceOp) -> list[Value]:
    """Return the tensors with some dimensions reduced, the elements one after the other."""
    sources = [_elements(frame, value) for value in op.inputs]
    types: list[Any] = [value.type for value in op.outputs]
    rank, reduced = sources[0].ndim, sorted(op.reduced)
    order = [*reduced, *(number for number in range(rank) if number not in reduced)]
    rows = prod(sources[0].shape[number] for number in reduced)
    tables = [source.transpose(order).reshape(rows, -1) for source in sources]
    count = tables[0].shape[1]
    column_frame = Frame(frame.chunk, frame.threads.taken(np.zeros(count, np.int64)))
    values: list[Any] = [np.broadcast_to(init, (count,)) for init in frame.gets(op.inits)]
    for row in range(rows):
        values = column_frame.call(op.combiner.string_value(), [*values, *(table[row] for table in tables)], op)
    typed_values = zip(values, types, strict=True)
    return [_buffer(frame, np.broadcast_to(value, (count,)), type_) for value, type_ in typed_values]


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "scf.forall": forall,
        "xla_gpu.insert": insert,
        "xla_gpu.materialize": materialize,
        "xla_gpu.reduce": reduce,
        "xla_gpu.reindex": reindex,
    }
)

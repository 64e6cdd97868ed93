"""Ids of threads and blocks, indexing maps, constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import arith, builtin, llvm
from xdsl.dialects import complex as complex_dialect
from xdsl.ir import Attribute

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.dialect.gpu import DIMENSIONS, BlockDimOp, BlockIdOp, GridDimOp, LaneIdOp, ThreadIdOp
from shardy_py.kernels.dialect.nvvm import REGISTER_OPS, SpecialRegisterOp
from shardy_py.kernels.dialect.ops import ApplyIndexingOp
from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.memory import Buffer, Memory, Value
from shardy_py.kernels.run.threads import block_size
from shardy_py.kernels.run.values import Array, array_dtype, integer_bits, rounded, to_words


def thread_id(frame: Frame, op: ThreadIdOp) -> list[Value]:
    """Return the ids of the threads in their blocks."""
    return [frame.threads.ids("thread", DIMENSIONS.index(op.dimension.data.value))]


def block_id(frame: Frame, op: BlockIdOp) -> list[Value]:
    """Return the ids of the threads' blocks."""
    return [frame.threads.ids("block", DIMENSIONS.index(op.dimension.data.value))]


def block_dim(frame: Frame, op: BlockDimOp) -> list[Value]:
    """Return the number of threads of a block along a dimension."""
    return [np.int64(frame.threads.launch.threads[DIMENSIONS.index(op.dimension.data.value)])]


def grid_dim(frame: Frame, op: GridDimOp) -> list[Value]:
    """Return the number of blocks along a dimension."""
    return [np.int64(frame.threads.launch.blocks[DIMENSIONS.index(op.dimension.data.value)])]


def lane_id(frame: Frame, op: LaneIdOp) -> list[Value]:
    """Return the numbers of the threads in their warps."""
    return [frame.threads.in_block % frame.threads.warp]


def special_register(frame: Frame, op: SpecialRegisterOp) -> list[Value]:
    """Return the content of a special register, 32 bits of it."""
    launch, content = frame.threads.launch, np.int64(0)
    match op.register:
        case "tid":
            content = frame.threads.ids("thread", op.dimension)
        case "ctaid":
            content = frame.threads.ids("block", op.dimension)
        case "ntid":
            content = np.int64(launch.threads[op.dimension])
        case "nctaid":
            content = np.int64(launch.blocks[op.dimension])
        case "laneid":
            content = frame.threads.in_block % frame.threads.warp
        case "warpsize":
            content = np.int64(frame.threads.warp)
    return [content.astype(np.int32)]


def llvm_constant(frame: Frame, op: llvm.ConstantOp) -> list[Value]:
    """Return a number or a vector; its type is that of the result."""
    value = op.value
    if isinstance(value, builtin.IntegerAttr):
        return [_typed([value.value.data], op.result.type)[0]]
    return [number(value)]


def apply_indexing(frame: Frame, op: ApplyIndexingOp) -> list[Value]:
    """Return the results of the map."""
    map_ = op.map
    values = frame.gets(op.arguments)
    first, second = len(map_.dims), len(map_.dims) + len(map_.ranges)
    results = map_.evaluate(values[:first], values[first:second], values[second:])
    return [np.int64(value) if isinstance(value, int) else value for value in results]


def constant(frame: Frame, op: arith.ConstantOp) -> list[Value]:
    """Return a number, a vector, or a tensor that nothing writes."""
    known = frame.kernel.constants
    if op not in known:
        known[op] = _tensor(frame, op.value) if isinstance(op.result.type, builtin.TensorType) else number(op.value)
    return [known[op]]


def complex_constant(frame: Frame, op: complex_dialect.ConstantOp) -> list[Value]:
    """Return a complex number."""
    real, imaginary = (number(part) for part in op.value)
    return [array_dtype(op.complex.type)(complex(real, imaginary))]


def number(attribute: Attribute) -> Array:
    """Return the value of an attribute: of one number, or of a vector's elements.

    Raises:
        UnsupportedError: it holds no numbers.
    """
    if isinstance(attribute, builtin.IntegerAttr):
        return _typed([attribute.value.data], attribute.type)[0]
    if isinstance(attribute, builtin.FloatAttr):
        return _typed([attribute.value.data], attribute.type)[0]
    if isinstance(attribute, builtin.DenseIntOrFPElementsAttr):
        elements = _typed(list(attribute.get_values()), attribute.get_element_type())
        shape = tuple(attribute.get_shape())
        return np.broadcast_to(elements, shape) if len(elements) == 1 else elements.reshape(shape)
    raise UnsupportedError(Diagnostic("run-constant", f"the constant {attribute} holds no numbers"))


def _typed(elements: Sequence[Any], type_: Attribute) -> Array:
    dtype = np.dtype(array_dtype(type_))
    if dtype.kind == "b":
        return np.array([bool(element & 1) for element in elements])
    if isinstance(type_, builtin.IntegerType | builtin.IndexType):
        bits = integer_bits(dtype)
        mask, half = (1 << bits) - 1, 1 << (bits - 1)
        return np.array([((element & mask) ^ half) - half for element in elements], np.int64).astype(dtype)
    return rounded(np.array(elements, np.float64), type_)


def _tensor(frame: Frame, attribute: Attribute) -> Buffer:
    assert isinstance(attribute, builtin.DenseIntOrFPElementsAttr)
    type_ = attribute.get_element_type()
    elements = np.ascontiguousarray(number(attribute)).reshape(-1)
    memory = Memory(to_words(elements, type_), "a constant", block_size(frame.threads.launch))
    return Buffer(memory, type_, tuple(attribute.get_shape()))


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "arith.constant": constant,
        "complex.constant": complex_constant,
        "gpu.block_id": block_id,
        "gpu.block_dim": block_dim,
        "gpu.grid_dim": grid_dim,
        "gpu.lane_id": lane_id,
        "gpu.thread_id": thread_id,
        "llvm.mlir.constant": llvm_constant,
        **{op.name: special_register for op in REGISTER_OPS},
        "xla_gpu.apply_indexing": apply_indexing,
    }
)

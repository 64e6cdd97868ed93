"""Access to memory through pointers, after tensors are lowered."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from xdsl.dialects import builtin, llvm
from xdsl.ir import Attribute, Operation

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.kernels.dialect.llvm_more import is_atomic
from shardy_py.kernels.passes.pointers import is_shared
from shardy_py.kernels.run.blocks import shared_buffer
from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.indices import number as number_of
from shardy_py.kernels.run.memory import Buffer, Memory, Pointer, Value
from shardy_py.kernels.run.tensors import Places, load, store
from shardy_py.kernels.run.threads import block_size
from shardy_py.kernels.run.values import element_type, to_words, word_dtype


def pointer_of(value: Buffer | Pointer) -> Pointer:
    """Return memory as the pointer to its begin; a pointer stays."""
    return value if isinstance(value, Pointer) else Pointer(value, np.int64(0))


def gep(frame: Frame, op: llvm.GEPOp) -> list[Value]:
    """Return the pointer some elements further on.

    Raises:
        VerificationError: memory holds elements of another size.
    """
    start = pointer_of(frame.get(op.ptr))
    held, wanted = start.buffer.memory.words.itemsize, np.dtype(word_dtype(op.elem_type)).itemsize
    if held != wanted:
        message = f"steps of {wanted} bytes in {start.buffer.memory.name}, whose elements have {held}"
        raise VerificationError(Diagnostic("run-element-size", message, frame.kernel.stage, op.name))
    indices = iter(op.ssa_indices)
    (first,) = op.rawConstantIndices.iter_values()
    step = frame.get(next(indices)) if first == llvm.GEP_USE_SSA_VAL else np.int64(first)
    return [Pointer(start.buffer, start.offset + step)]


def address_of(frame: Frame, op: llvm.AddressOfOp) -> list[Value]:
    """Return the pointer to a constant, or to memory of each block."""
    known = frame.kernel.constants
    held = frame.kernel.globals[op.global_name.string_value()]
    if is_shared(op.result.type):
        array = held.global_type
        assert isinstance(array, llvm.LLVMArrayType)
        return [shared_buffer(frame, held, array.type, (array.size.data,))]
    if held not in known:
        value = held.value
        assert isinstance(value, builtin.DenseIntOrFPElementsAttr)
        type_ = value.get_element_type()
        elements = np.ascontiguousarray(number_of(value)).reshape(-1)
        memory = Memory(to_words(elements, type_), f"constant {held.sym_name.data}", block_size(frame.threads.launch))
        known[held] = Buffer(memory, type_, (len(elements),))
    return [known[held]]


def pointer_places(frame: Frame, op: Operation, pointer: Pointer, width: int) -> Places:
    """Return where active threads access memory.

    Raises:
        VerificationError: an active thread's place is outside of the buffer, or no multiple of a vector's size.
    """
    buffer, offset = pointer.buffer, pointer.offset

    def outside(position: int) -> str:
        found = int(np.broadcast_to(offset, (frame.threads.count,))[position])
        return f"element {found} is outside of {buffer.memory.name}, which has {buffer.size}"

    frame.require((offset >= 0) & (offset + max(1, width) <= buffer.size), op, "out-of-bounds", outside)
    if width:
        message = f"the place of a vector of {width} elements in {buffer.memory.name} is no multiple of its size"
        frame.require(offset % width == 0, op, "misaligned-vector", message)
    flat = offset + frame.threads.rows * buffer.size if buffer.memory.is_shared else offset
    if frame.mask is None:
        return Places(None, flat, frame.threads.stamps)
    active = np.flatnonzero(frame.mask)
    return Places(active, flat[active] if np.ndim(flat) else flat, frame.threads.stamps[active])


def typed_buffer(pointer: Pointer, type_: Attribute) -> tuple[Buffer, int]:
    """Return memory as elements of a type, and how many an access moves."""
    buffer = pointer.buffer
    width = type_.get_shape()[0] if isinstance(type_, builtin.VectorType) else 0
    return Buffer(buffer.memory, element_type(type_), buffer.shape), width


def read(frame: Frame, op: llvm.LoadOp) -> list[Value]:
    """Read a number or a vector."""
    pointer = pointer_of(frame.get(op.ptr))
    buffer, width = typed_buffer(pointer, op.dereferenced_value.type)
    at = pointer_places(frame, op, pointer, width)
    return [load(frame, op, buffer, at, width=width, is_atomic=is_atomic(op))]


def write(frame: Frame, op: llvm.StoreOp) -> list[Value]:
    """Write a number or a vector."""
    pointer = pointer_of(frame.get(op.ptr))
    buffer, width = typed_buffer(pointer, op.value.type)
    at = pointer_places(frame, op, pointer, width)
    store(frame, op, buffer, at, frame.get(op.value), width=width, is_atomic=is_atomic(op))
    return []


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "llvm.getelementptr": gep,
        "llvm.load": read,
        "llvm.mlir.addressof": address_of,
        "llvm.store": write,
    }
)

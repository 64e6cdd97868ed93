"""Access to memory through pointers, after tensors are lowered, and atomic updates through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import builtin, llvm
from xdsl.ir import Attribute, Operation

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.dialect.arith_and_llvm import CompareExchangeOp, LLVMAtomicRMWOp, is_atomic
from shardy_py.kernels.passes.packed_elements import is_shared
from shardy_py.kernels.run.atomics import note, record, record_vector
from shardy_py.kernels.run.blocks import shared_buffer
from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.indices import number as number_of
from shardy_py.kernels.run.integers import unsigned
from shardy_py.kernels.run.memory import Buffer, Memory, Pointer, Value
from shardy_py.kernels.run.tensors import Places, load, store
from shardy_py.kernels.run.threads import block_size
from shardy_py.kernels.run.values import Array, element_type, from_words, is_float, rounded, to_words, word_dtype


def pointer_of(value: Buffer | Pointer) -> Pointer:
    """Return memory as the pointer to its begin; a pointer stays."""
    return value if isinstance(value, Pointer) else Pointer(value, np.int64(0))


def bytes_of(type_: Attribute) -> int:
    """Return the bytes of a number, of a vector, or of an array."""
    if isinstance(type_, llvm.LLVMArrayType):
        return type_.size.data * bytes_of(type_.type)
    count = prod(type_.get_shape()) if isinstance(type_, builtin.VectorType) else 1
    return count * np.dtype(word_dtype(type_)).itemsize


def gep(frame: Frame, op: llvm.GEPOp) -> list[Value]:
    """Return the pointer some elements further on; behind the first index follow those into arrays."""
    start = pointer_of(frame.get(op.ptr))
    indices, type_, offset = iter(op.ssa_indices), op.elem_type, start.offset
    for number, constant in enumerate(op.rawConstantIndices.iter_values()):
        step = frame.get(next(indices)) if constant == llvm.GEP_USE_SSA_VAL else np.int64(constant)
        if number:
            if not isinstance(type_, llvm.LLVMArrayType):
                message = f"an index into {type_}, which is not an array"
                raise UnsupportedError(Diagnostic("run-pointer", message, frame.kernel.stage, op.name))
            type_ = type_.type
        offset = offset + np.asarray(step).astype(np.int64) * bytes_of(type_)
    return [Pointer(start.buffer, offset)]


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


def pointer_places(frame: Frame, op: Operation, pointer: Pointer, type_: Attribute) -> Places:
    """Return where active threads access memory by numbers or vectors of a type.

    Raises:
        VerificationError: an active thread's bytes are not all in the buffer, or the address is not a multiple of their
            number.
        UnsupportedError: the elements of the memory are larger.
    """
    buffer, offset = pointer.buffer, pointer.offset
    word, count = buffer.memory.words.itemsize, bytes_of(type_)
    if word > np.dtype(word_dtype(type_)).itemsize:
        message = f"{type_} is accessed in {buffer.memory.name}, whose elements have {word} bytes"
        raise UnsupportedError(Diagnostic("run-element-size", message, frame.kernel.stage, op.name))

    def at_thread(position: int) -> int:
        return int(np.broadcast_to(offset, (frame.threads.count,))[position])

    def outside(position: int) -> str:
        place = at_thread(position)
        if place % word == 0 and count == word:
            return f"element {place // word} is outside of {buffer.memory.name}, which has {buffer.size}"
        bytes_ = f"bytes {place} to {place + count - 1} are not all inside of {buffer.memory.name}"
        return f"{bytes_}, which has {buffer.size * word}"

    def misaligned(position: int) -> str:
        return f"byte {at_thread(position)} of {buffer.memory.name} is not a multiple of the {count} bytes of {type_}"

    inside = (offset >= 0) & (offset + count <= buffer.size * word)
    frame.require(inside, op, "out-of-bounds", outside)
    is_vector = isinstance(type_, builtin.VectorType)
    is_aligned = offset % count == 0
    frame.require(is_aligned | ~inside, op, "misaligned-vector" if is_vector else "misaligned", misaligned)
    # Where faults are recorded, threads that are outside or between elements go on at the first element.
    flat: Any = (np.where(inside & is_aligned, offset, 0) if frame.kernel.findings else offset) // word
    flat = flat + frame.threads.rows * buffer.size if buffer.memory.is_shared else flat
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
    at = pointer_places(frame, op, pointer, op.dereferenced_value.type)
    return [load(frame, op, buffer, at, width=width, is_atomic=is_atomic(op))]


def write(frame: Frame, op: llvm.StoreOp) -> list[Value]:
    """Write a number or a vector."""
    pointer = pointer_of(frame.get(op.ptr))
    buffer, width = typed_buffer(pointer, op.value.type)
    at = pointer_places(frame, op, pointer, op.value.type)
    store(frame, op, buffer, at, frame.get(op.value), width=width, is_atomic=is_atomic(op))
    return []


def _of_unsigned(compute: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def run(left: Array, right: Array) -> Array:
        return compute(unsigned(left), unsigned(right)).view(left.dtype)

    return run


_COMBINE: Mapping[str, Callable[[Array, Array], Array]] = MappingProxyType(
    {
        **{"add": np.add, "fadd": np.add, "max": np.maximum, "min": np.minimum},
        **{"_and": np.bitwise_and, "_or": np.bitwise_or, "_xor": np.bitwise_xor},
        **{"umax": _of_unsigned(np.maximum), "umin": _of_unsigned(np.minimum)},
    }
)


def atomic_rmw(frame: Frame, op: LLVMAtomicRMWOp) -> list[Value]:
    """Record that active threads update an element.

    Raises:
        UnsupportedError: something uses what the element was before.
    """
    combine = _COMBINE.get(op.kind)
    if combine is None or op.result.uses.get_length():
        message = f"atomic updates by {op.kind} are not run, nor those whose result is used"
        raise UnsupportedError(Diagnostic("run-atomic", message, frame.kernel.stage, op.name))
    pointer = pointer_of(frame.get(op.ptr))
    buffer, width = typed_buffer(pointer, op.value.type)
    at = pointer_places(frame, op, pointer, op.value.type)
    type_ = op.value.type

    if width:
        record_vector(frame, op, buffer, at, frame.get(op.value))
        return [np.zeros((), np.int64)]

    def combined(inner_frame: Frame, current: Array, _: Any) -> Array:
        result = combine(current, inner_frame.get(op.value))
        return rounded(result, type_) if is_float(type_) else result

    record(frame, op, buffer, at, [op.value], combined)
    return [np.zeros((), np.int64)]


def compare_exchange(frame: Frame, op: CompareExchangeOp) -> list[Value]:
    """Compare and exchange elements; threads that access the same element do so one after the other.

    The value is a pair: the element before, and whether it was the expected one.
    """
    pointer = pointer_of(frame.get(op.ptr))
    type_ = op.value.type
    buffer, _ = typed_buffer(pointer, type_)
    active, places = note(frame, op, buffer, pointer_places(frame, op, pointer, type_))
    count, words = frame.threads.count, buffer.memory.words
    expected, new = (
        to_words(np.ascontiguousarray(np.broadcast_to(frame.get(value), (count,))[active]), type_)
        for value in (op.expected, op.value)
    )
    before = np.empty_like(expected)
    done = np.zeros(len(active), bool)
    # Threads of one element come one after the other: in each round the next one of every element.
    remaining = np.arange(len(active))
    while len(remaining):
        _, first = np.unique(places[remaining], return_index=True)
        chosen = remaining[first]
        before[chosen] = words[places[chosen]]
        done[chosen] = before[chosen] == expected[chosen]
        written = chosen[done[chosen]]
        words[places[written]] = new[written]
        remaining = np.delete(remaining, first)
    previous, success = np.zeros(count, expected.dtype), np.zeros(count, bool)
    previous[active], success[active] = before, done
    return [(from_words(previous, type_), success)]


def extract_value(frame: Frame, op: llvm.ExtractValueOp) -> list[Value]:
    """Return a field of a pair."""
    (number,) = op.position.get_values()
    return [frame.get(op.container)[int(number)]]


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "llvm.getelementptr": gep,
        "llvm.load": read,
        "llvm.mlir.addressof": address_of,
        "llvm.store": write,
        "llvm.atomicrmw": atomic_rmw,
        "llvm.cmpxchg": compare_exchange,
        "llvm.extractvalue": extract_value,
    }
)

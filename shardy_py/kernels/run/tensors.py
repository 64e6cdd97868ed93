"""Access to tensors: elements and vectors are read from memory and written in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import builtin, tensor
from xdsl.ir import Operation, SSAValue

from shardy_py.kernels.dialect.memory_ops import PredicatedExtractOp, PredicatedInsertOp
from shardy_py.kernels.fusion.fusion import bits_of
from shardy_py.kernels.passes.packed_elements import BYTE, is_narrow
from shardy_py.kernels.run.frame import Access, Frame, Handler
from shardy_py.kernels.run.memory import Buffer, Value
from shardy_py.kernels.run.values import Array, array_dtype, chosen, from_words, to_words, word_dtype
from shardy_py.values import frozen


@frozen(eq=False)
class Places:
    """Addresses that active threads access.

    Args:
        threads: The positions of the active threads, or None for all.
        words: The places of the words, one per active thread, or one for all.
        stamps: The stamps of the active threads.
    """

    threads: Any
    words: Any
    stamps: Any


def places(frame: Frame, op: Operation, buffer: Buffer, indices: Sequence[SSAValue], *, extent: int = 1) -> Places:
    """Return where active threads access a tensor.

    Args:
        frame: The activation.
        op: The op.
        buffer: The tensor.
        indices: The index of each dimension.
        extent: The elements along the last dimension.

    Raises:
        VerificationError: an active thread's index is outside of the tensor.
    """
    return flat_places(frame, op, buffer, frame.gets(indices), extent=extent)


def flat_places(frame: Frame, op: Operation, buffer: Buffer, indices: Sequence[Any], *, extent: int = 1) -> Places:
    """Return where active threads access a tensor, from the numbers of the index.

    Raises:
        VerificationError: an active thread's index is outside of the tensor.
    """
    flat: Any = np.int64(0)
    last = len(buffer.shape) - 1
    for number, (index, size, stride) in enumerate(zip(indices, buffer.shape, buffer.strides, strict=True)):
        end = size - (extent - 1 if number == last else 0)

        def message(position: int, index: Any = index, size: int = size, number: int = number) -> str:
            actual_index = int(np.broadcast_to(index, (frame.threads.count,))[position])
            return (
                f"index {actual_index} is outside of dimension {number} of {buffer.memory.name}, which has size {size}"
            )

        inside = (index >= 0) & (index < end)
        frame.require(inside, op, "out-of-bounds", message)
        # Where faults are recorded, threads that are outside go on at the first element.
        flat = flat + (np.where(inside, index, 0) if frame.kernel.findings else index) * stride
    if buffer.memory.is_shared:
        flat = flat + frame.threads.rows * buffer.size
    if frame.mask is None:
        return Places(None, flat, frame.threads.stamps)
    active = np.flatnonzero(frame.mask)
    return Places(active, flat[active] if np.ndim(flat) else flat, frame.threads.stamps[active])


def _each(at: Places) -> Any:
    """Return a place per active thread."""
    return at.words if np.ndim(at.words) else np.broadcast_to(at.words, (len(at.stamps),))


def _position(at: Places, wrong: Any) -> int:
    number = int(np.argmax(wrong))
    return number if at.threads is None else int(at.threads[number])


def _record(frame: Frame, op: Operation, buffer: Buffer, at: Places, width: int, *, is_write: bool) -> None:
    """Record an access if accesses are traced."""
    if frame.kernel.accesses is None:
        return
    active = slice(None) if at.threads is None else at.threads
    memory, words = buffer.memory, _each(at)
    if memory.is_shared:
        words = words - frame.threads.rows[active] * buffer.size
    threads, bits = frame.threads.in_block[active], BYTE * memory.words.dtype.itemsize
    if is_narrow(buffer.type_) and not memory.is_shared:
        bits = bits_of(str(buffer.type_))
    first, size = words * bits // BYTE, max(1, width * bits // BYTE)
    access = Access(op.name, memory.name, memory.is_shared, is_write, threads, first, size)
    frame.kernel.accesses.append(access)


def _parts(buffer: Buffer) -> int:
    """Return how many words of the memory an element takes: several where it holds elements of other sizes, too."""
    return max(1, np.dtype(word_dtype(buffer.type_)).itemsize // buffer.memory.words.itemsize)


def load(frame: Frame, op: Operation, buffer: Buffer, at: Places, *, width: int = 0, is_atomic: bool = False) -> Array:
    """Return the elements at places, or vectors of elements that begin there; inactive threads get zeros.

    Raises:
        VerificationError: another thread writes an element at the same time; atomic reads may meet atomic updates.
    """
    memory = buffer.memory
    parts = _parts(buffer)
    count = max(1, width) * parts
    _record(frame, op, buffer, at, count, is_write=False)
    note = memory.races_of_atomic_read if is_atomic else memory.note_read
    for step in range(count):
        if memory.is_writable:
            races = note(_each(at) + step, at.stamps)
            if races.any():
                message = f"reads what another thread writes to {memory.name} with no barrier between"
                frame.report(_position(at, races), op, "race", message)
            # Kernels may read more of a tile than is written, and drop it: no fault ends a run for that.
            missing = None if frame.kernel.findings is None else memory.unwritten(_each(at) + step)
            if missing is not None and missing.any():
                message = f"reads an element of {memory.name} that no thread has written"
                frame.report(_position(at, missing), op, "uninitialized-read", message)
    places = at.words[..., np.newaxis] + np.arange(count) if width or parts > 1 else at.words
    words = memory.words[places]
    if parts > 1:
        words = np.ascontiguousarray(words).view(word_dtype(buffer.type_))
        words = words if width else words[..., 0]
    elements = from_words(words, buffer.type_)
    if at.threads is None or np.ndim(at.words) == 0:
        return elements
    spread = np.zeros((frame.threads.count, *elements.shape[1:]), elements.dtype)
    spread[at.threads] = elements
    return spread


def store(
    frame: Frame,
    op: Operation,
    buffer: Buffer,
    at: Places,
    value: Array,
    *,
    width: int = 0,
    is_atomic: bool = False,
) -> None:
    """Write elements, or vectors of elements, to places.

    Raises:
        VerificationError: the tensor is constant, or threads race.
    """
    memory = buffer.memory
    if not memory.is_writable:
        frame.report(_position(at, at.stamps != 0), op, "read-only", f"writes to {memory.name}")
        return
    parts = _parts(buffer)
    _record(frame, op, buffer, at, max(1, width) * parts, is_write=True)
    rank = 1 if width else 0
    if at.threads is not None and np.ndim(value) > rank:
        value = value[at.threads]
    words = to_words(np.asarray(value, array_dtype(buffer.type_)), buffer.type_)
    words = np.broadcast_to(words, (len(at.stamps), *words.shape[words.ndim - rank :]))
    if parts > 1:
        words = np.ascontiguousarray(words).reshape(len(at.stamps), -1).view(memory.words.dtype)
    for step in range(max(1, width) * parts):
        part = words[:, step] if width or parts > 1 else words
        write = memory.overwrite if is_atomic else memory.write
        races = write(_each(at) + step, part, at.stamps)
        if races.any():
            message = f"writes to an element of {memory.name} that another thread accesses with no barrier between"
            frame.report(_position(at, races), op, "race", message)


def extract(frame: Frame, op: tensor.ExtractOp) -> list[Value]:
    """Read an element."""
    buffer: Buffer = frame.get(op.tensor)
    return [load(frame, op, buffer, places(frame, op, buffer, op.indices))]


def insert(frame: Frame, op: tensor.InsertOp) -> list[Value]:
    """Write an element in place."""
    buffer: Buffer = frame.get(op.dest)
    store(frame, op, buffer, places(frame, op, buffer, op.indices), frame.get(op.scalar))
    return [buffer]


def predicated_extract(frame: Frame, op: PredicatedExtractOp) -> list[Value]:
    """Read an element where the condition holds."""
    buffer: Buffer = frame.get(op.source)
    condition = frame.get(op.condition)
    otherwise = frame.get(op.fallback)
    mask = frame.active(condition)
    if not frame.is_any(mask):
        return [otherwise]
    with frame.under(mask):
        elements = load(frame, op, buffer, places(frame, op, buffer, op.indices))
    return [chosen(condition, elements, otherwise)]


def predicated_insert(frame: Frame, op: PredicatedInsertOp) -> list[Value]:
    """Write an element in place where the condition holds."""
    buffer: Buffer = frame.get(op.dest)
    mask = frame.active(frame.get(op.condition))
    if frame.is_any(mask):
        with frame.under(mask):
            store(frame, op, buffer, places(frame, op, buffer, op.indices), frame.get(op.value))
    return [buffer]


def cast(frame: Frame, op: Operation) -> list[Value]:
    """Give the same memory, or the same numbers, as another type."""
    values: list[Value] = []
    for operand, result in zip(op.operands, op.results, strict=True):
        value = frame.get(operand)
        is_tensor = isinstance(value, Buffer) and isinstance(result.type, builtin.TensorType)
        values.append(value.viewed(result.type) if is_tensor else value)
    return values


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "builtin.unrealized_conversion_cast": cast,
        "tensor.cast": cast,
        "tensor.extract": extract,
        "tensor.insert": insert,
        "xla_gpu.predicated_extract": predicated_extract,
        "xla_gpu.predicated_insert": predicated_insert,
    }
)

"""State shared by the threads of a block: shared memory, barriers, values of other lanes of a warp."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation

from shardy_py.kernels.dialect import nvvm
from shardy_py.kernels.dialect.gpu import ShuffleMode, ShuffleOp, mode_of
from shardy_py.kernels.dialect.memory_ops import AllocateSharedOp, ShuffleReduceOp, SyncThreadsOp
from shardy_py.kernels.run.atomics import run_atomics
from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.memory import Buffer, Memory, Value
from shardy_py.kernels.run.threads import block_size
from shardy_py.kernels.run.values import Array, rank_of


def shared_buffer(frame: Frame, op: Operation, element: Attribute, shape: tuple[int, ...]) -> Buffer:
    """Return memory of each block; its elements are undefined until they are written.

    Args:
        frame: The activation.
        op: The op that allocates it: whoever asks for it again gets the same memory.
        element: The type of an element.
        shape: The shape of a block's own.
    """
    known = frame.chunk.shared
    if op not in known:
        count = int(np.prod(shape, dtype=np.int64)) * frame.chunk.blocks
        threads = block_size(frame.threads.launch)
        memory = Memory.undefined(element, count, "shared memory", threads, is_shared=True)
        known[op] = Buffer(memory, element, shape)
    return known[op]


def allocate_shared(frame: Frame, op: AllocateSharedOp) -> list[Value]:
    """Return memory of each block."""
    type_ = op.output.type
    return [shared_buffer(frame, op, type_.element_type, tuple(type_.get_shape()))]


def _at_barrier(frame: Frame, op: Operation) -> None:
    """Let all threads of each block that gets here meet.

    Raises:
        VerificationError: a block has threads that get here and threads that do not.
    """
    present: Any = np.ones(frame.threads.count, bool) if frame.mask is None else frame.mask
    rows = frame.threads.rows
    counts = np.bincount(rows[present], minlength=frame.chunk.blocks)
    partial = (counts != 0) & (counts != block_size(frame.threads.launch))
    if partial.any():
        absent = ~present & partial[rows]
        message = "does not get to a barrier that other threads of its block wait at"
        raise frame.error(int(np.argmax(absent)), op, "non-uniform-barrier", message)
    frame.threads.phases[counts != 0] += 1
    run_atomics(frame.chunk, shared=True)


def sync_threads(frame: Frame, op: SyncThreadsOp) -> list[Value]:
    """Wait for the threads of the block; the tensors are those that all have written."""
    _at_barrier(frame, op)
    return frame.gets(op.tensors)


def barrier(frame: Frame, op: Operation) -> list[Value]:
    """Wait for the threads of the block."""
    _at_barrier(frame, op)
    return []


def lanes_here(frame: Frame, op: Operation) -> Any:
    """Return the lane of each thread.

    Raises:
        VerificationError: a warp has threads that get here and threads that do not.
    """
    in_block, size = frame.threads.in_block, frame.threads.warp
    if frame.mask is not None:
        warps = frame.threads.rows * -(-block_size(frame.threads.launch) // size) + in_block // size
        present, everyone = np.bincount(warps, frame.mask), np.bincount(warps)
        absent = ~frame.mask & ((present != 0) & (present != everyone))[warps]
        if absent.any():
            message = "does not get to an exchange that other threads of its warp take part in"
            raise frame.error(int(np.argmax(absent)), op, "non-uniform-shuffle", message)
    return in_block % size


def other_lane(mode: ShuffleMode, lane: Any, offset: Any) -> Any:
    """Return the lane from which a lane takes a value, whether or not there is one.

    >>> [int(other_lane(mode, 5, 1)) for mode in ShuffleMode]
    [4, 4, 6, 1]
    """
    match mode:
        case ShuffleMode.XOR:
            return lane ^ offset
        case ShuffleMode.UP:
            return lane - offset
        case ShuffleMode.DOWN:
            return lane + offset
    return offset + 0 * lane


def positions_of(frame: Frame, lane: Any, other: Any, exists: Any) -> tuple[Any, Any]:
    """Return the position of the thread at another lane of the warp, or its own position, and whether there is one."""
    in_block = frame.threads.in_block
    exists = exists & (other >= 0) & (in_block + other - lane < block_size(frame.threads.launch))
    positions = np.arange(frame.threads.count, dtype=np.int64)
    return np.where(exists, positions + other - lane, positions), exists


def _lanes(frame: Frame, op: Operation, mode: ShuffleMode, offset: Any, width: Any) -> tuple[Any, Any]:
    """Return the position of the thread from which each takes a value, and whether there is one in its group."""
    lane = lanes_here(frame, op)
    place = lane % width
    other = other_lane(mode, place, np.asarray(offset).astype(np.int64))
    exists = (other >= 0) & (other < width)
    return positions_of(frame, lane, other + lane - place, exists)


def from_lanes(value: Array, positions: Any, rank: int) -> Array:
    """Return the value of each thread that another one has."""
    return value if np.ndim(value) == rank else value[positions]


def shuffle(frame: Frame, op: ShuffleOp) -> list[Value]:
    """Return the value of another lane; the own one where there is none."""
    value, offset, width = frame.gets(op.operands)
    positions, exists = _lanes(frame, op, mode_of(op), offset, width)
    return [from_lanes(value, positions, rank_of(op.value.type)), exists]


def shuffle_sync(frame: Frame, op: nvvm.NvvmShuffleOp) -> list[Value]:
    """Return the value of another lane, as PTX defines it by a clamp and a mask of segments."""
    _, value, offset, clamp = (np.asarray(item) for item in frame.gets(op.operands))
    lane, clamp = lanes_here(frame, op), clamp.astype(np.int64)
    last, segment = frame.threads.warp - 1, (clamp >> 8) & 31
    bound = (lane & segment) | (clamp & last & ~segment)
    mode = nvvm.KINDS[op.kind.data]
    other = other_lane(mode, lane, offset.astype(np.int64))
    if mode is ShuffleMode.IDX:
        other = (lane & segment) | (other & ~segment & last)
    exists = other >= bound if mode is ShuffleMode.UP else other <= bound
    positions, _ = positions_of(frame, lane, other, exists)
    return [from_lanes(value, positions, rank_of(op.value.type))]


def shuffle_reduce(frame: Frame, op: ShuffleReduceOp) -> list[Value]:
    """Combine with the values of lanes further down: at the largest distance, then at half of it, down to 1."""
    values = frame.gets(op.arguments)
    distance = op.max_distance.value.data
    while distance:
        positions, _ = _lanes(frame, op, ShuffleMode.DOWN, distance, frame.threads.warp)
        others = [
            from_lanes(value, positions, rank_of(typed.type)) for value, typed in zip(values, op.arguments, strict=True)
        ]
        values = frame.call(op.combiner.string_value(), [*values, *others], op)
        distance //= 2
    return values


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "gpu.barrier": barrier,
        "gpu.shuffle": shuffle,
        "nvvm.barrier": barrier,
        "nvvm.barrier0": barrier,
        "nvvm.shfl.sync": shuffle_sync,
        "xla_gpu.allocate_shared": allocate_shared,
        "xla_gpu.shuffle_reduce": shuffle_reduce,
        "xla_gpu.sync_threads": sync_threads,
    }
)

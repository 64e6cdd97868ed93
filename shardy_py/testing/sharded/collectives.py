"""Collectives of virtual devices, and their other ops, on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from shardy_py.ir.graph.program import Op
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.shard_moves import Windows
from shardy_py.testing.numeric.operands import combine_arrays
from shardy_py.testing.numeric.pieces import Array
from shardy_py.testing.sharded.virtual_ops import SPACE, poison

COLLECTIVES = frozenset(
    f"{SPACE}.{kind}"
    for kind in ("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute", "windows")
)


def collective(op: Op, device: int, operands: Sequence[Array]) -> Array:
    """Return the result of a collective on one device.

    Args:
        op: The collective.
        device: The number of the device.
        operands: The operand of each device.
    """
    kind = op.name.removeprefix(f"{SPACE}.")
    attributes: Any = op.attributes
    if kind == "collective_permute":
        source = next((sender for sender, receiver in attributes["pairs"] if receiver == device), None)
        return np.zeros_like(operands[device]) if source is None else operands[source]
    group = next(group for group in attributes["groups"] if device in group)
    values, place = [operands[member] for member in group], group.index(device)
    if kind == "windows":
        return _window(values, place, attributes)
    if kind == "all_gather":
        return np.concatenate(values, axis=attributes["dim"])
    if kind == "all_to_all":
        parts = [np.split(value, len(group), axis=attributes["split_dim"])[place] for value in values]
        return np.concatenate(parts, axis=attributes["concat_dim"])
    combiner: Combiner = attributes["combiner"]
    combined = reduce(lambda left, right: combine_arrays(combiner, left, right), values)
    if kind == "all_reduce":
        return combined
    return np.split(combined, len(group), axis=attributes["dim"])[place]


def own_op(op: Op, device: int, operands: Sequence[Array]) -> Array:
    """Return the result of an op of virtual devices that needs no other device.

    Args:
        op: The op.
        device: The number of the device.
        operands: Its operands.
    """
    kind = op.name.removeprefix(f"{SPACE}.")
    attributes: Any = op.attributes
    if kind == "offset":
        return np.int64(0 if attributes["table"] is None else attributes["table"][device])
    if kind == "scalar":
        return attributes["number"]
    value = operands[0]
    if kind == "resize":
        return _resized(value, attributes["shape"])
    if kind == "own_window":
        group = next(group for group in attributes["groups"] if device in group)
        return _window([value] * len(group), group.index(device), attributes)
    if kind == "mask":
        return _masked(value, attributes, operands[1:])
    if kind == "outside":
        low, high = attributes["table"][device]
        inside = _inside(value, attributes["dim"], low, high)
        return np.where(inside, value, operands[1].astype(value.dtype))
    if kind == "reshape":
        return np.reshape(value, attributes["shape"])
    if kind == "transpose":
        return np.transpose(value, attributes["permutation"])
    sizes = attributes["sizes"]
    starts = [
        min(max(int(start), 0), dim_size - size)
        for start, dim_size, size in zip(operands[1:], value.shape, sizes, strict=True)
    ]
    return value[tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))]


def _window(values: Sequence[Array], place: int, attributes: Mapping[str, Any]) -> Array:
    """Return the window of a part of a dimension; elements outside of every part are poison.

    Args:
        values: What each part has.
        place: The number of the part.
        attributes: The dimension and the windows.
    """
    windows: Windows = attributes["windows"]
    parts = [np.moveaxis(value, attributes["dim"], 0) for value in values]
    result = np.full((windows.size, *parts[place].shape[1:]), poison(parts[place].dtype), parts[place].dtype)
    start = windows.starts[place]
    for value, runs in zip(parts, windows.held, strict=True):
        for run in runs:
            low, high = max(run.start, start), min(run.start + run.size, start + windows.size)
            if low < high:
                begin = run.place + low - run.start
                result[low - start : high - start] = value[begin : begin + high - low]
    return np.moveaxis(result, 0, attributes["dim"])


def _resized(value: Array, shape: Sequence[int]) -> Array:
    """Return an array cut or extended at its high ends; new elements are poison."""
    result = np.full(shape, poison(value.dtype), value.dtype)
    common = tuple(slice(min(old, new)) for old, new in zip(value.shape, shape, strict=True))
    result[common] = value[common]
    return result


def _masked(value: Array, attributes: Mapping[str, Any], operands: Sequence[Array]) -> Array:
    """Return an array with a scalar in the place of all but the first elements along a dimension."""
    dim, fill = attributes["dim"], operands[0]
    count = attributes["count"] if "count" in attributes else int(operands[1])
    return np.where(_inside(value, dim, 0, count), value, fill.astype(value.dtype))


def _inside(value: Array, dim: int, low: int, high: int) -> Array:
    """Return which places along a dimension lie between two, in a shape that broadcasts."""
    places = np.arange(value.shape[dim])
    shape = [1] * value.ndim
    shape[dim] = -1
    return ((low <= places) & (places < high)).reshape(shape)

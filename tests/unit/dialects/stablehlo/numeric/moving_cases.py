"""Ops that put elements elsewhere: broadcasts, reshapes, transposes, slices, concatenations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.unit.dialects.stablehlo.numeric.case import Case


def broadcast(dims: tuple[int, ...]) -> Any:
    """A broadcast to some dimensions of what the device has to make."""

    def function(x: Any, *, local: Any) -> Any:
        shape = local.results[0].shape
        placed = [1] * len(shape)
        for dim, size in zip(dims, x.shape, strict=True):
            placed[dim] = size
        return np.broadcast_to(x.transpose(np.argsort(dims)).reshape(placed), shape)

    return function


def reshape(x: Any, *, local: Any) -> Any:
    """A reshape to what the device has to make."""
    return x.reshape(local.results[0].shape)


def count_along_rows(shape: Any, *, local: Any) -> Any:
    """The place of each element in its row, for the elements that the device has to make."""
    (rows, columns), result = shape, local.results[0]
    if (rows, columns) != result.whole:
        raise ValueError(f"{shape} is not the whole shape")
    return np.broadcast_to(result.positions[1].astype(np.float64), result.shape)


def with_shape(function: Any) -> Any:
    """An op with another operand that holds the whole shape, of which each device needs all."""

    def dynamic(x: Any, shape: Any, *, local: Any) -> Any:
        if tuple(shape) != local.results[0].whole:
            raise ValueError(f"{shape} is not the whole shape")
        return function(x, local=local)

    return dynamic


def concatenate(*arrays: Any) -> Any:
    """Join columns."""
    return np.concatenate(arrays, 1)


def pad(x: Any, value: Any) -> Any:
    """Add a column before and two after."""
    return np.pad(x, ((0, 0), (1, 2)), constant_values=value)


def whole(values: Any, size: int) -> None:
    """Check that a device has all of a vector of numbers."""
    if len(values) != size:
        raise ValueError("the numbers are needed whole")


def dynamic_pad(x: Any, value: Any, low: Any, high: Any, interior: Any) -> Any:
    """Pad by operands."""
    for numbers in (low, high, interior):
        whole(numbers, 2)
    return np.pad(x, list(zip(low, high, strict=True)), constant_values=value)


def dynamic_slice(x: Any, row: Any, column: Any) -> Any:
    """Two columns; where they begin is clamped."""
    column = min(max(int(column), 0), x.shape[1] - 2)
    return x[:, column : column + 2]


def real_dynamic_slice(x: Any, start: Any, limit: Any, strides: Any) -> Any:
    """A slice whose bounds are operands."""
    for numbers in (start, limit, strides):
        whole(numbers, 2)
    return x[:, start[1] : limit[1] : strides[1]]


def update(x: Any, part: Any, row: Any, column: Any, *, local: Any) -> Any:
    """Write columns into those that the device has."""
    held = local.operands[0]
    result = x.copy()
    for source, position in zip(local.operands[1].positions[1], range(part.shape[1]), strict=True):
        target = int(column) + source - held.offset(1)
        if 0 <= target < x.shape[1]:
            result[:, target] = part[:, position]
    return result


CASES = [
    Case("broadcast_in_dim", [()], broadcast(()), [(2, 4)], {"broadcast_dimensions": ()}),
    Case("broadcast_in_dim", [(4, 6)], broadcast((2, 0)), [(6, 2, 4)], {"broadcast_dimensions": (2, 0)}),
    Case("broadcast_in_dim", [(4, 1)], broadcast((0, 1)), [(4, 6)], {"broadcast_dimensions": (0, 1)}),
    Case("broadcast", [(4, 6)], broadcast((1, 2)), [(2, 4, 6)]),
    Case(
        "dynamic_broadcast_in_dim",
        [(4, 6), np.array([4, 2, 6])],
        with_shape(broadcast((0, 2))),
        [(4, 2, 6)],
        {"broadcast_dimensions": (0, 2)},
    ),
    Case("dynamic_iota", [np.array([4, 6])], count_along_rows, [(4, 6)], {"iota_dimension": 1}),
    Case("reshape", [(8, 6)], reshape, [(48,)]),
    Case("mhlo.bitcast", [(8, 4, 6)], reshape, [(2, 16, 6)]),
    Case("mhlo.copy", [(8, 6)], lambda x: x),
    Case("reshape", [(8, 4, 6)], reshape, [(2, 16, 6)]),
    Case("reshape", [(4, 6, 2)], reshape, [(4, 2, 3, 1, 2)]),
    Case("reshape", [(6, 4)], reshape, [(2, 12)]),
    Case("dynamic_reshape", [(8, 6), np.array([16, 3])], with_shape(reshape), [(16, 3)]),
    Case("transpose", [(4, 6, 2)], lambda x: x.transpose(2, 0, 1), attributes={"permutation": (2, 0, 1)}),
    Case("reverse", [(4, 6)], lambda x: x[:, ::-1], attributes={"dimensions": (1,)}),
    Case("concatenate", [(4, 2), (4, 6)], concatenate, attributes={"dimension": 1}),
    Case("slice", [(4, 6)], lambda x: x[:, 1:5:2]),
    Case("pad", [(4, 6), ()], pad),
    Case("dynamic_pad", [(4, 6), (), np.array([0, 1]), np.array([0, 2]), np.array([0, 0])], dynamic_pad),
    Case("dynamic_slice", [(4, 6), np.array(0), np.array(3)], dynamic_slice),
    Case("real_dynamic_slice", [(4, 6), *map(np.array, ([0, 1], [4, 4], [1, 1]))], real_dynamic_slice),
    Case("dynamic_update_slice", [(4, 6), (4, 2), np.array(0), np.array(3)], update, [(4, 6)]),
    Case(
        "set_dimension_size",
        [(4, 6), np.array(4)],
        lambda x, size: x[:, :size],
        attributes={"dimension": 1},
        missing={
            "operand 0 dim 0, result 0 dim 0": "no collective of XLA takes a result whose size is known at run time"
        },
    ),
    Case("get_dimension_size", [(4, 6)], lambda x, local: np.array(local.operands[0].whole[1]), [()], {"dimension": 1}),
]

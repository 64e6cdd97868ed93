"""Indexing maps of kinds of ops, against what numpy computes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

import numpy
import pytest

from shardy_py.errors import VerificationError
from shardy_py.indexing import IndexingMap, op_maps


def values(shape: Sequence[int]) -> numpy.ndarray:
    """A tensor with a different number everywhere."""
    return numpy.arange(prod(shape)).reshape(shape)


def read(map_: IndexingMap, operand: numpy.ndarray, shape: Sequence[int], missing: int = -1) -> numpy.ndarray:
    """The elements that a map reads for every element of a result, where it is defined."""
    actual = numpy.full(shape, missing)
    for index in itertools.product(*map(range, shape)):
        if map_.holds(index):
            actual[index] = operand[tuple(map_.evaluate(index))]
    return actual


def test_broadcast() -> None:
    """A broadcast reads the operand at the dimensions that it keeps; the other way there is a symbol per new one."""
    x = values((3, 4))
    result = numpy.broadcast_to(x[:, None, :], (3, 5, 4))
    assert (read(op_maps.broadcast((3, 5, 4), [0, 2]), x, (3, 5, 4)) == result).all()
    back = op_maps.broadcast_to_output((3, 4), (3, 5, 4), [0, 2])
    assert str(back) == "(d0, d1)[s0] -> (d0, s0, d1), domain: d0 in [0, 2], d1 in [0, 3], s0 in [0, 4]"


@pytest.mark.parametrize("permutation", list(itertools.permutations(range(3))))
def test_transpose(permutation: tuple[int, ...]) -> None:
    """A transpose reads the transposed index, and its two maps are each other's inverse."""
    x = values((2, 3, 4))
    result = x.transpose(permutation)
    map_ = op_maps.transpose(result.shape, permutation)
    assert (read(map_, x, result.shape) == result).all()
    back = op_maps.transpose_to_output(x.shape, permutation)
    assert map_.evaluate(back.evaluate((1, 2, 3))) == [1, 2, 3]


@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((4, 6), (6, 4)),
        ((1, 30, 1), (30,)),
        ((30,), (1, 30, 1)),
        ((2, 3, 4), (24,)),
        ((5, 1, 6), (5, 2, 3)),
        ((), (1, 1)),
    ],
)
def test_reshape(shape: tuple[int, ...], other: tuple[int, ...]) -> None:
    """A reshape reads the element at the same place in order."""
    x = values(other)
    assert (read(op_maps.reshape(shape, other), x, shape) == x.reshape(shape)).all()


def test_reshape_of_other_sizes_is_refused() -> None:
    """Shapes with different numbers of elements have no map."""
    with pytest.raises(VerificationError, match="different numbers of elements"):
        op_maps.reshape((4,), (5,))


def test_bitcast() -> None:
    """A bitcast reads the element at the same place in memory."""
    map_ = op_maps.bitcast((6, 4), (0, 1), (4, 6), (1, 0))
    x = values((4, 6))
    assert (read(map_, x, (6, 4)) == x.T).all()


def test_slice_and_back() -> None:
    """A slice reads with steps; the other way only what it takes has a place."""
    x = values((10, 7))
    result = x[2:9:3, 1:6:2]
    assert (read(op_maps.slice_(result.shape, (2, 1), (3, 2)), x, result.shape) == result).all()
    back = op_maps.slice_to_output(x.shape, result.shape, (2, 1), (3, 2))
    expected = numpy.full(x.shape, -1)
    expected[2:9:3, 1:6:2] = result
    assert (read(back, result, x.shape) == expected).all()


def test_reverse() -> None:
    """A reverse reads from the end."""
    x = values((3, 4))
    assert (read(op_maps.reverse((3, 4), [1]), x, (3, 4)) == x[:, ::-1]).all()


@pytest.mark.parametrize(("low", "high", "interior"), [(1, 2, 1), (-1, 2, 0), (0, -3, 2), (2, 0, 0)])
def test_pad(low: int, high: int, interior: int) -> None:
    """A pad reads the operand where the result takes an element of it, and is undefined elsewhere."""
    x = values((6,))
    spread = numpy.full(5 * (interior + 1) + 1, -1)
    spread[:: interior + 1] = x
    padded = numpy.concatenate([numpy.full(max(low, 0), -1), spread, numpy.full(max(high, 0), -1)])
    result = padded[max(-low, 0) : len(padded) - max(-high, 0)]
    assert (read(op_maps.pad(result.shape, (low,), (high,), (interior,)), x, result.shape) == result).all()


def test_concatenate() -> None:
    """Each operand is read in its own part of the result."""
    left, right = values((2, 3)), values((2, 4)) + 100
    result = numpy.concatenate([left, right], 1)
    first = read(op_maps.concatenate((2, 7), 1, 0, 3), left, (2, 7))
    second = read(op_maps.concatenate((2, 7), 1, 3, 4), right, (2, 7))
    assert (numpy.maximum(first, second) == result).all()
    assert op_maps.concatenate_to_output((2, 4), 1, 3).evaluate((1, 2)) == [1, 5]


def test_reduce() -> None:
    """A reduction has a symbol per reduced dimension; the other way these dimensions are dropped."""
    x = values((2, 3, 4))
    map_ = op_maps.reduce((3,), x.shape, [2, 0])
    sums = [sum(int(x[tuple(map_.evaluate((i,), (s0, s1)))]) for s0 in range(2) for s1 in range(4)) for i in range(3)]
    assert sums == x.sum((0, 2)).tolist()
    assert op_maps.reduce_to_output(x.shape, [2, 0]).evaluate((1, 2, 3)) == [2]


def test_dot() -> None:
    """A dot product reads both operands along the batch, free and contracted dimensions."""
    x, y = values((2, 3, 4)), values((4, 2, 5))
    numbers = op_maps.DotDimensions(lhs_batch=(0,), rhs_batch=(1,), lhs_contracting=(2,), rhs_contracting=(0,))
    left, right = op_maps.dot((2, 3, 5), x.shape, y.shape, numbers)
    expected = numpy.einsum("bik,kbj->bij", x, y)
    for index in itertools.product(range(2), range(3), range(5)):
        pairs = [(left.evaluate(index, (k,)), right.evaluate(index, (k,))) for k in range(4)]
        assert sum(int(x[tuple(a)] * y[tuple(b)]) for a, b in pairs) == expected[index]


def test_reduce_window() -> None:
    """A windowed reduction has a symbol per window dimension, defined where it does not look at padding."""
    window = op_maps.SlidingWindow(
        size=(3, 1), strides=(2, 1), window_dilations=(1, 1), base_dilations=(2, 1), low=(1, 0), high=(1, 0)
    )
    map_ = op_maps.reduce_window((4, 2), (4, 2), window)
    x = values((4, 2)) + 1
    padded = numpy.zeros((9, 2), dtype=int)
    padded[1:8:2] = x
    for index in itertools.product(range(4), range(2)):
        cost = [x[tuple(map_.evaluate(index, (s,)))] for s in range(3) if map_.holds(index, (s,))]
        assert sum(cost) == padded[index[0] * 2 : index[0] * 2 + 3, index[1]].sum()


def test_dynamic_slice_update_and_gather() -> None:
    """Starts are run-time variables within the bounds to which they are clamped."""
    assert str(op_maps.dynamic_slice((4,), (10,))) == "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 6]"
    update = op_maps.dynamic_update((10,), (4,))
    assert str(update) == "(d0){rt0} -> (d0 - rt0), domain: d0 in [0, 9], rt0 in [0, 6]"
    operand, indices = op_maps.gather((7, 20, 3), (20, 30), (20, 3), [1])
    assert operand.evaluate((5, 6, 2), (), (9,)) == [6, 11]
    assert indices.evaluate((5, 6, 2), (0,)) == [5, 0]

"""Indexing maps of linalg's ops, against arithmetic of whole tensors."""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("numpy")

import numpy as np

from shardy_py.ir.graph.attributes import RawAttribute
from tests.unit.dialects.linalg.test_linalg import REGISTRY
from tests.unit.dialects.linalg.test_windows import steps
from tests.unit.dialects.stablehlo.ops import make_op


def indexing_of(name, operands, result, **attributes):
    """Return the maps of one op."""
    found = REGISTRY.get_indexing(make_op(f"linalg.{name}", operands, [result], **attributes))
    assert found is not None
    return found


def computed(name, operands, result, **attributes):
    """Return arrays for the inputs, and the sums of their products that the maps of the op read."""
    inputs = [np.random.default_rng(number).integers(-5, 6, shape) for number, shape in enumerate(operands[:-1])]
    maps = indexing_of(name, operands, result, **attributes).output_to_input
    found = np.zeros(result, int)
    ranges = [range(bound.interval.upper + 1) for bound in maps[0].ranges]
    for index in np.ndindex(*result):
        for inner in product(*ranges):
            pairs = zip(inputs, maps, strict=False)
            found[index] += np.prod([array[tuple(map_.evaluate(index, inner))] for array, map_ in pairs])
    return inputs, found


def test_contractions() -> None:
    """Summed loops are range variables."""
    (x, y), found = computed("batch_matmul", [(2, 3, 4), (2, 4, 5), (2, 3, 5)], (2, 3, 5))
    assert (found == x @ y).all()
    maps = indexing_of("quantized_matmul", [(2, 3), (3, 4), (), (), (2, 4)], (2, 4)).output_to_input
    assert [len(map_.ranges) for map_ in maps] == [1, 1, 0, 0, 0]


def test_convolutions() -> None:
    """Strides and dilations are factors of the window's place and of its elements."""
    shapes = [(1, 9, 8, 2), (2, 3, 2, 3), (1, 4, 2, 3)]
    (x, w), found = computed("conv_2d_nhwc_hwcf", shapes, shapes[2], strides=steps(2, 3), dilations=steps(1, 2))
    patches = np.stack([[x[:, i : i + 8 : 2, 2 * j : 2 * j + 6 : 3][:, :4, :2] for j in range(3)] for i in range(2)])
    assert (found == np.einsum("ijnhwc,ijcf->nhwf", patches, w)).all()


def test_maps_that_are_given() -> None:
    """A generic op reads what its maps say, whatever the order of the result's loops."""
    maps = tuple(RawAttribute(f"affine_map<(a, b) -> {text}>") for text in ("(a * 3 + b)", "(b, a)"))
    (x,), found = computed("generic", [(12,), (3, 4)], (3, 4), indexing_maps=maps)
    assert (found == x.reshape(4, 3).T).all()


def test_maps_back() -> None:
    """Operands that are read by variables alone have a map back; others have none."""
    maps = indexing_of("matmul", [(3, 4), (4, 5), (3, 5)], (3, 5)).input_to_output
    assert [str(map_).partition(", domain")[0] for map_ in maps] == [
        "(d0, d1)[s0] -> (d0, s0)",
        "(d0, d1)[s0] -> (s0, d1)",
        "(d0, d1) -> (d0, d1)",
    ]
    pooled = indexing_of("pooling_ncw_sum", [(2, 4, 8), (3,), (2, 4, 6)], (2, 4, 6)).input_to_output
    assert [map_ is None for map_ in pooled] == [True, False, False]


def test_a_softmax_reads_a_whole_row() -> None:
    """The symbol of a map runs over the dimension that it indexes."""
    read = indexing_of("softmax", [(3, 4), (3, 4)], (3, 4), dimension=1).output_to_input[0]
    assert str(read) == "(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 2], d1 in [0, 3], s0 in [0, 3]"


@pytest.mark.parametrize("text", ["(a, a)", "(a, 0)", "(a + b, b)"])
def test_results_that_are_no_loops_have_no_maps(text) -> None:
    """Where a dimension of the result is not a loop of its own, nothing says which loops an element needs."""
    maps = tuple(RawAttribute(f"affine_map<(a, b) -> {item}>") for item in ("(a, b)", text))
    op = make_op("linalg.generic", [(4, 4), (4, 4)], [(4, 4)], indexing_maps=maps)
    assert REGISTRY.get_indexing(op) is None

"""Inputs that are made up for a program."""

from __future__ import annotations

from typing import Any

import pytest

numpy = pytest.importorskip("numpy")

from shardy_py.errors import UnsupportedError  # noqa: E402
from shardy_py.frontends.mlir import import_module, parse_module  # noqa: E402
from shardy_py.jax.inputs import SMALL_INTEGER, random_inputs  # noqa: E402
from shardy_py.layout.numpy_arrays import numpy_dtype  # noqa: E402


def _inputs(text: str, seed: int = 0) -> list[Any]:
    program = import_module(parse_module(text))
    return random_inputs(program, program.functions["main"], seed=seed)


GATHER = """
func.func @main(%table: tensor<7x4xf32>, %tokens: tensor<300xi32>) -> tensor<300x4xf32> {
  %0 = call @wrap(%tokens) : (tensor<300xi32>) -> tensor<300xi32>
  %1 = stablehlo.reshape %0 : (tensor<300xi32>) -> tensor<300x1xi32>
  %2 = "stablehlo.gather"(%table, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}>
    : (tensor<7x4xf32>, tensor<300x1xi32>) -> tensor<300x4xf32>
  return %2 : tensor<300x4xf32>
}
func.func private @wrap(%arg0: tensor<300xi32>) -> tensor<300xi32> {
  %zero = stablehlo.constant dense<0> : tensor<300xi32>
  %size = stablehlo.constant dense<7> : tensor<300xi32>
  %0 = stablehlo.compare LT, %arg0, %zero : (tensor<300xi32>, tensor<300xi32>) -> tensor<300xi1>
  %1 = stablehlo.add %arg0, %size : tensor<300xi32>
  %2 = stablehlo.select %0, %1, %arg0 : tensor<300xi1>, tensor<300xi32>
  return %2 : tensor<300xi32>
}
"""


def test_indices_of_a_gather_reach_all_rows_and_no_others() -> None:
    """An index is in range, behind reshapes, calls and the wrapping of negative indices."""
    tokens = _inputs(GATHER)[1]
    assert tokens.dtype == numpy.int32
    assert set(tokens.tolist()) == set(range(7))


def test_each_column_of_an_index_vector_has_its_own_range() -> None:
    """Index vectors that are put together of columns demand of each what its dimension allows."""
    text = """
func.func @main(%x: tensor<3x100xf32>, %rows: tensor<500x1xi32>, %columns: tensor<500x1xi32>) -> tensor<500xf32> {
  %0 = stablehlo.concatenate %rows, %columns, dim = 1 : (tensor<500x1xi32>, tensor<500x1xi32>) -> tensor<500x2xi32>
  %1 = "stablehlo.gather"(%x, %0) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1],
    start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}>
    : (tensor<3x100xf32>, tensor<500x2xi32>) -> tensor<500xf32>
  return %1 : tensor<500xf32>
}
"""
    _, rows, columns = _inputs(text)
    assert (rows.min(), rows.max()) == (0, 2)
    assert columns.min() >= 0
    assert 50 < columns.max() < 100


def test_start_indices_leave_room_for_the_slice() -> None:
    """The start of a slice in a loop, moved by an iota or not, leaves room for the slice."""
    text = """
func.func @main(%x: tensor<40x8xf32>, %start: tensor<i32>, %n: tensor<i32>) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %at = %start) : tensor<i32>, tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %1, %at : tensor<i32>, tensor<i32>
  }
  %c = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.dynamic_slice %x, %0#1, %c, sizes = [8, 8]
    : (tensor<40x8xf32>, tensor<i32>, tensor<i32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
"""
    starts = {int(_inputs(text, seed)[1]) for seed in range(60)}
    assert min(starts) >= 0
    assert 16 < max(starts) <= 32
    assert all(0 <= int(_inputs(text, seed)[2]) <= SMALL_INTEGER for seed in range(10))


def test_labels_meet_a_column_of_a_one_hot() -> None:
    """What is compared with an iota meets one of its numbers."""
    text = """
func.func @main(%labels: tensor<200x1xi32>) -> tensor<200x5xi1> {
  %0 = stablehlo.iota dim = 1 : tensor<200x5xi32>
  %1 = stablehlo.broadcast_in_dim %labels, dims = [0, 1] : (tensor<200x1xi32>) -> tensor<200x5xi32>
  %2 = stablehlo.compare EQ, %1, %0 : (tensor<200x5xi32>, tensor<200x5xi32>) -> tensor<200x5xi1>
  return %2 : tensor<200x5xi1>
}
"""
    assert set(_inputs(text)[0].ravel().tolist()) == set(range(5))


def test_indices_of_a_scatter_are_distinct_and_in_order_where_the_op_says_so() -> None:
    """No two updates meet, as the order in which they would is not the same on several devices."""
    text = """
func.func @main(%x: tensor<64xf32>, %at: tensor<16x1xi32>, %new: tensor<16xf32>) -> tensor<64xf32> {
  %0 = "stablehlo.scatter"(%x, %at, %new) <{indices_are_sorted = true, scatter_dimension_numbers =
    #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<64xf32>, tensor<16x1xi32>, tensor<16xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
"""
    indices = _inputs(text)[1].ravel().tolist()
    assert indices == sorted(set(indices))
    assert indices[0] >= 0
    assert indices[-1] < 64


def test_what_goes_into_a_logarithm_or_a_root_is_positive() -> None:
    """Second moments of an optimizer are positive, gradients beside them have both signs."""
    text = """
func.func @main(%v: tensor<50xf32>, %g: tensor<50xf32>, %count: tensor<i32>, %p: tensor<50xf32>)
    -> (tensor<50xf32>, tensor<50xf32>) {
  %decay = stablehlo.constant dense<0.9> : tensor<50xf32>
  %0 = stablehlo.multiply %v, %decay : tensor<50xf32>
  %1 = stablehlo.multiply %g, %g : tensor<50xf32>
  %2 = stablehlo.add %0, %1 : tensor<50xf32>
  %3 = stablehlo.sqrt %2 : tensor<50xf32>
  %one = stablehlo.constant dense<1.0> : tensor<50xf32>
  %4 = stablehlo.subtract %one, %p : tensor<50xf32>
  %5 = stablehlo.log %4 : tensor<50xf32>
  return %3, %5 : tensor<50xf32>, tensor<50xf32>
}
"""
    moments, gradients, count, probabilities = _inputs(text)
    assert moments.min() > 0
    assert gradients.min() < 0 < gradients.max()
    assert 0 <= count <= SMALL_INTEGER
    assert probabilities.min() > 0
    assert probabilities.max() < 1


def test_a_factored_matrix_is_positive_definite() -> None:
    """A Cholesky factorization, also one behind a symmetrization, gets a matrix that has one."""
    text = """
func.func @main(%a: tensor<3x6x6xf32>) -> tensor<3x6x6xf32> {
  %0 = stablehlo.transpose %a, dims = [0, 2, 1] : (tensor<3x6x6xf32>) -> tensor<3x6x6xf32>
  %1 = stablehlo.add %a, %0 : tensor<3x6x6xf32>
  %2 = stablehlo.cholesky %1, lower = true : tensor<3x6x6xf32>
  return %2 : tensor<3x6x6xf32>
}
"""
    (matrices,) = _inputs(text)
    assert numpy.linalg.eigvalsh(matrices + matrices.swapaxes(-1, -2)).min() > 0.5


def test_keys_have_all_their_bits() -> None:
    """Unsigned integers of 32 bits are as random as keys are."""
    (keys,) = _inputs("func.func @main(%k: tensor<64xui32>) -> tensor<64xui32> { return %k : tensor<64xui32> }")
    assert keys.dtype == numpy.uint32
    assert keys.max() > 2**31


DTYPES = ["i1", "i4", "ui4", "i8", "ui8", "i16", "i32", "i64", "ui64", "f16", "bf16", "f32", "f64", "complex<f32>"]
DTYPES += ["f8E4M3FN", "f8E5M2", "f8E8M0FNU", "f4E2M1FN"]


@pytest.mark.parametrize("element", DTYPES)
def test_every_element_type_has_finite_numbers(element: str) -> None:
    """An array has the dtype of its argument, and neither infinities nor NaNs; several values occur."""
    text = (
        f"func.func @main(%x: tensor<9x5x{element}>) -> tensor<9x5x{element}> {{ return %x : tensor<9x5x{element}> }}"
    )
    (array,) = _inputs(text)
    assert array.dtype == numpy_dtype(element)
    assert array.shape == (9, 5)
    wide = array.astype(numpy.complex128)
    assert numpy.isfinite(wide).all()
    assert len(set(wide.ravel().tolist())) > 1


def test_the_seed_decides() -> None:
    """The same seed gives the same arrays, another one others."""
    first, again, other = (_inputs(GATHER, seed) for seed in (5, 5, 6))
    assert all((left == two).all() for left, two in zip(first, again, strict=True))
    assert not (first[0] == other[0]).all()


def test_no_array_for_a_token() -> None:
    """An argument that is no tensor is refused by its number and type."""
    with pytest.raises(UnsupportedError, match=r"argument 0 .* !stablehlo.token"):
        _inputs("func.func @main(%t: !stablehlo.token) -> !stablehlo.token { return %t : !stablehlo.token }")

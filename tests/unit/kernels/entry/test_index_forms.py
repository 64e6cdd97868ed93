"""Gathers, scatters and select-and-scatters in every form."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.errors import UnsupportedError
from shardy_py.kernels import emit
from tests.properties.random_index_forms import IndexForm, random_form
from tests.properties.random_kernels import type_of
from tests.unit.kernels.fusions import fusion_of


def start_of(form: IndexForm, indices: np.ndarray, place: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The start of the slice that an element of the result belongs to, and the index inside of the slice."""
    batch = [index for dim, index in enumerate(place) if dim not in form.offset_dims]
    start = [0] * len(form.sizes)
    is_implicit = form.vector_dim == indices.ndim
    for component, target in enumerate(form.start_index_map):
        at = list(batch)
        if not is_implicit:
            at.insert(form.vector_dim, component)
        start[target] = int(indices[tuple(at)])
    for target, dim in zip(form.batching, form.indices_batching, strict=True):
        start[target] = batch[dim if is_implicit or dim < form.vector_dim else dim - 1]
    inside = [0] * len(form.sizes)
    window_dims = [number for number in range(len(form.sizes)) if number not in (*form.collapsed, *form.batching)]
    for target, dim in zip(window_dims, form.offset_dims, strict=True):
        inside[target] = place[dim]
    return start, inside


@pytest.mark.parametrize("seed", range(12))
def test_gathers_of_any_form_read_clamped_slices(seed: int) -> None:
    """Dimensions may be collapsed, batched and indexed in any order, and the indices stand anywhere."""
    shape = [(7,), (4, 5), (3, 4, 5)][seed % 3]
    form = random_form(random.Random(seed), shape, (2, 3))
    numbers = np.random.default_rng(seed)
    x = numbers.normal(size=shape).astype(np.float32)
    indices = numbers.integers(-3, max(shape) + 3, form.indices_shape).astype(np.int32)
    want = np.empty(form.result_shape, np.float32)
    for place in np.ndindex(*form.result_shape):
        start, inside = start_of(form, indices, place)
        bounds = zip(start, shape, form.sizes, strict=True)
        clamped = [min(max(number, 0), size - width) for number, size, width in bounds]
        want[place] = x[tuple(np.add(clamped, inside))]
    types = f"{type_of(shape, 'f32')}, {type_of(form.indices_shape, 'i32')}"
    result = type_of(form.result_shape, "f32")
    text = f"""
func.func @main(%x: {type_of(shape, "f32")}, %i: {type_of(form.indices_shape, "i32")}) -> {result} {{
  %0 = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<{form.gather}>,
      slice_sizes = array<i64: {", ".join(map(str, form.sizes))}>}}> : ({types}) -> {result}
  return %0 : {result}
}}"""
    kernel = emit(fusion_of(text))
    for on in ("host", "interpreter"):
        np.testing.assert_array_equal(kernel.run(x, indices, on=on)[0], want)


@pytest.mark.parametrize("seed", range(12))
def test_scatters_of_any_form_leave_out_windows_that_do_not_fit(seed: int) -> None:
    """Windows are added where all of them is inside of the operand."""
    shape = [(7,), (4, 5), (3, 4, 5)][seed % 3]
    form = random_form(random.Random(seed), shape, (2, 3))
    numbers = np.random.default_rng(seed)
    x = numbers.integers(-9, 9, shape).astype(np.int32)
    indices = numbers.integers(-1, max(shape) + 1, form.indices_shape).astype(np.int32)
    updates = numbers.integers(-9, 9, form.result_shape).astype(np.int32)
    want = x.copy()
    for place in np.ndindex(*form.result_shape):
        start, inside = start_of(form, indices, place)
        bounds = zip(start, shape, form.sizes, strict=True)
        if all(0 <= number <= size - width for number, size, width in bounds):
            want[tuple(np.add(start, inside))] += updates[place]
    types = [type_of(shape, "i32"), type_of(form.indices_shape, "i32"), type_of(form.result_shape, "i32")]
    text = f"""
func.func @main(%x: {types[0]}, %i: {types[1]}, %u: {types[2]}) -> {types[0]} {{
  %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{form.scatter}>}}> ({{
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %c = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %c : tensor<i32>
  }}) : ({", ".join(types)}) -> {types[0]}
  return %0 : {types[0]}
}}"""
    kernel = emit(fusion_of(text))
    assert kernel.choice.kind.value == "scatter"
    for on in ("host", "interpreter"):
        np.testing.assert_array_equal(kernel.run(x, indices, updates, on=on)[0], want)


PAIRS = """
func.func @main(%x: tensor<9xf32>, %y: tensor<9xi32>, %i: tensor<20xi32>, %u: tensor<20xf32>, %v: tensor<20xi32>)
    -> (tensor<9xf32>, tensor<9xi32>) {{
  %0:2 = "stablehlo.scatter"(%x, %y, %i, %u, %v) <{{unique_indices = {unique}, scatter_dimension_numbers =
      #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
      %e = stablehlo.add %a, %c : tensor<f32>
      %f = stablehlo.maximum %b, %{second} : tensor<i32>
      stablehlo.return %e, %f : tensor<f32>, tensor<i32>
  }}) : (tensor<9xf32>, tensor<9xi32>, tensor<20xi32>, tensor<20xf32>, tensor<20xi32>)
      -> (tensor<9xf32>, tensor<9xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xi32>
}}"""


def test_several_operands_are_updated_at_once() -> None:
    """Each operand is combined with its own updates, by an atomic update of its own."""
    numbers = np.random.default_rng(8)
    x, y = np.zeros(9, np.float32), numbers.integers(0, 50, 9).astype(np.int32)
    at = numbers.integers(-2, 11, 20).astype(np.int32)
    u, v = numbers.integers(0, 9, 20).astype(np.float32), numbers.integers(0, 99, 20).astype(np.int32)
    sums, largest = x.copy(), y.copy()
    for index, left, right in zip(at, u, v, strict=True):
        if 0 <= index < 9:
            sums[index] += left
            largest[index] = max(largest[index], right)
    kernel = emit(fusion_of(PAIRS.format(unique="false", second="d")))
    for on in ("host", "interpreter"):
        actual = kernel.run(x, y, at, u, v, on=on)
        np.testing.assert_array_equal(actual[0], sums)
        np.testing.assert_array_equal(actual[1], largest)


def test_operands_that_depend_on_each_other_are_refused() -> None:
    """No atomic update has two elements of memory: the region may not mix operands unless no windows overlap."""
    text = PAIRS.format(unique="false", second="g").replace(
        "      %f =", "      %g = stablehlo.convert %c : (tensor<f32>) -> tensor<i32>\n      %f ="
    )
    with pytest.raises(UnsupportedError, match="each by itself"):
        assert emit(fusion_of(text)).stages


SELECT_AND_SCATTER = """
func.func @main(%x: tensor<9x4xf32>, %s: tensor<{count}xf32>, %n: tensor<f32>) -> tensor<9x4xf32> {{
  %0 = "stablehlo.select_and_scatter"(%x, %s, %n) <{{window_dimensions = array<i64: {sizes}>,
      window_strides = array<i64: {strides}>, padding = dense<{padding}> : tensor<2x2xi64>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare {direction}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }}, {{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
  }}) : (tensor<9x4xf32>, tensor<{count}xf32>, tensor<f32>) -> tensor<9x4xf32>
  return %0 : tensor<9x4xf32>
}}"""


def selected_place(x: np.ndarray, places: list[tuple[int, int]], direction: str) -> tuple[int, int]:
    """The element of a window that is selected, of equal ones by the order in which the window is gone through."""
    if direction == "GT":
        return max(reversed(places), key=lambda place: x[place])
    return (max if direction == "GE" else min)(places, key=lambda place: x[place])


@pytest.mark.parametrize(
    ("sizes", "strides", "padding", "direction"),
    [
        ((2, 1), (2, 1), [[0, 0], [0, 0]], "GE"),
        ((3, 1), (2, 1), [[1, 1], [0, 0]], "GE"),
        ((3, 1), (1, 1), [[1, 2], [0, 0]], "GE"),
        ((2, 1), (3, 1), [[1, 0], [0, 0]], "GE"),
        ((3, 2), (2, 1), [[1, 1], [0, 1]], "GE"),
        pytest.param((3, 2), (2, 1), [[1, 1], [0, 1]], "GT", marks=pytest.mark.slow),
        pytest.param((2, 3), (1, 2), [[0, 1], [1, 0]], "LE", marks=pytest.mark.slow),
    ],
)
def test_windows_give_their_source_to_the_element_they_select(
    sizes: tuple[int, int], strides: tuple[int, int], padding: list[list[int]], direction: str
) -> None:
    """The first of equal elements is selected where the left one of two is, else the last; padding never is.

    StableHLO reduces a window in the lexicographic order of its indices, row by row. XLA:CPU goes through some windows
    by columns, and is no reference for ties.
    """
    x = np.random.default_rng(sizes[0]).integers(0, 2, (9, 4)).astype(np.float32)
    count = tuple(
        (size + sum(pad) - window) // stride + 1
        for size, window, stride, pad in zip(x.shape, sizes, strides, padding, strict=True)
    )
    source = np.random.default_rng(1).integers(1, 9, count).astype(np.float32)
    want = np.full_like(x, 5)
    for window in np.ndindex(count):
        starts = [index * stride - pad[0] for index, stride, pad in zip(window, strides, padding, strict=True)]
        rows, columns = (
            range(max(start, 0), min(start + size, bound))
            for start, size, bound in zip(starts, sizes, x.shape, strict=True)
        )
        want[selected_place(x, [(row, column) for row in rows for column in columns], direction)] += source[window]
    text = SELECT_AND_SCATTER.format(
        count="x".join(map(str, count)),
        sizes=str(sizes)[1:-1],
        strides=str(strides)[1:-1],
        padding=padding,
        direction=direction,
    )
    kernel = emit(fusion_of(text))
    for on in ("host", "interpreter"):
        np.testing.assert_array_equal(kernel.run(x, source, np.float32(5), on=on)[0], want)

"""Updates, lookups and scatters along sharded dimensions, on host devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="programs run through XLA")

from attrs import evolve

import shardy_py as sdy
from tests.unit.dialects.stablehlo.local.on_devices import UNEVEN, Case, program_of, run_cases, run_padded, type_of
from tests.unit.local.host_devices import compare_padded

pytestmark = pytest.mark.slow

WHOLE = (8, 16)
COLUMNS = '[{"x"}, {"y"}]'
"""The columns are in four parts, the rows in two."""
INDICES = """
  %scale = stablehlo.constant dense<9.0> : tensor<6xf32>
  %large = stablehlo.multiply %b0, %scale : tensor<6xf32>
  %i = stablehlo.convert %large : (tensor<6xf32>) -> tensor<6xi32>
  %pairs = stablehlo.reshape %i : (tensor<6xi32>) -> tensor<3x2xi32>
  %first = stablehlo.slice %i [0:1] : (tensor<6xi32>) -> tensor<1xi32>
  %start = stablehlo.reshape %first : (tensor<1xi32>) -> tensor<i32>
  %second = stablehlo.slice %i [1:2] : (tensor<6xi32>) -> tensor<1xi32>
  %other = stablehlo.reshape %second : (tensor<1xi32>) -> tensor<i32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %late = stablehlo.constant dense<99> : tensor<i32>
"""
"""Indices of both signs, many of them out of range, that are known at run time only."""
USED = Case("stablehlo.negate {0} : tensor<6xf32>", "tensor<6xf32>", [(6,)])


def updated(size: tuple[int, int], starts: str) -> Case:
    """Return an update of a part of the argument."""
    types = f"({type_of(WHOLE)}, {type_of(size)}, tensor<i32>, tensor<i32>) -> {type_of(WHOLE)}"
    return Case(f"stablehlo.dynamic_update_slice %a, {{0}}, {starts} : {types}", type_of(WHOLE), [size])


def looked_up(indices: str, sizes: tuple[int, int], result: tuple[int, ...], numbers: str) -> Case:
    """Return a lookup in the argument."""
    kind = {"%i": "tensor<6xi32>", "%pairs": "tensor<3x2xi32>"}[indices]
    attributes = f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = array<i64: {sizes[0]}, {sizes[1]}>"
    text = f'"stablehlo.gather"(%a, {indices}) <{{{{{attributes}}}}}> : ({type_of(WHOLE)}, {kind}) -> {type_of(result)}'
    return Case(text, type_of(result))


def scattered(indices: str, updates: tuple[int, ...], numbers: str, op: str = "add") -> Case:
    """Return a scatter into the argument; an op named "" overwrites."""
    kind = {"%i": "tensor<6xi32>", "%pairs": "tensor<3x2xi32>"}[indices]
    body = f"%q = stablehlo.{op} %x, %y : tensor<f32>" if op else "%q = stablehlo.negate %y : tensor<f32>"
    text = f"""\"stablehlo.scatter"(%a, {indices}, {{0}}) <{{{{
        scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}}}> ({{{{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        {body}
        stablehlo.return %q : tensor<f32>
      }}}}) : ({type_of(WHOLE)}, {kind}, {type_of(updates)}) -> {type_of(WHOLE)}"""
    return Case(text, type_of(WHOLE), [updates])


ROW = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
COLUMN = "offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1"
KEPT = "offset_dims = [0, 1], start_index_map = [1], index_vector_dim = 1"
ELEMENT = "collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1"
LOOKUPS = [
    looked_up("%i", (1, 16), (6, 16), ROW),
    looked_up("%i", (8, 1), (8, 6), COLUMN),
    looked_up("%i", (8, 1), (8, 1, 6), KEPT),
    looked_up("%pairs", (1, 1), (3,), ELEMENT),
]
INTO_ROW = (
    "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
)
INTO_COLUMN = (
    "update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1"
)
INTO_ELEMENT = "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1"


@pytest.mark.parametrize("sharding", [COLUMNS, '[{}, {"y", "x"}]'])
def test_updates_clamp_against_the_whole_and_may_straddle_shards(sharding: str) -> None:
    """Starts that are known or not, out of range, and updates larger than a shard give what one device gives."""
    cases = [
        USED,
        updated((8, 1), "%none, %start"),
        updated((8, 3), "%none, %start"),
        updated((8, 9), "%none, %other"),
        updated((5, 7), "%start, %other"),
        updated((8, 7), "%none, %five"),
        updated((8, 7), "%none, %late"),
    ]
    text, gathered = run_cases(cases, WHOLE, sharding, prelude=INDICES)
    assert gathered == []
    assert "all_gather" not in text


def test_slices_as_large_as_a_shard_begin_where_they_should() -> None:
    """A slice at any place is looked up among shards, also where it has as many elements as a shard."""
    types = f"({type_of(WHOLE)}, tensor<i32>, tensor<i32>)"
    sizes = ((4, 16), (8, 4), (3, 4))
    cases = [
        Case(
            f"stablehlo.dynamic_slice %a, %start, %other, sizes = {list(size)} : {types} -> {type_of(size)}",
            type_of(size),
        )
        for size in sizes
    ]
    _, gathered = run_cases([USED, *cases], WHOLE, COLUMNS, prelude=INDICES.replace("dense<9.0>", "dense<-9.0>"))
    assert gathered == []


@pytest.mark.parametrize("sharding", [COLUMNS, '[{"y", "x"}, {}]'])
def test_lookups_sum_what_each_device_has(sharding: str) -> None:
    """Lookups of rows, columns and elements clamp against the whole, and nothing is gathered."""
    text, gathered = run_cases([USED, *LOOKUPS], WHOLE, sharding, prelude=INDICES)
    assert gathered == []
    assert "all_gather" not in text


@pytest.mark.parametrize("sharding", [COLUMNS, '[{"y", "x"}, {}]'])
@pytest.mark.parametrize("updates", ["", '[{"y"}]'])
def test_scatters_write_on_the_device_that_has_the_element(sharding: str, updates: str) -> None:
    """Sums, maxima and overwriting of rows, columns and elements drop the same updates as one device does."""
    rank_two = [scattered("%i", (6, 16), INTO_ROW), scattered("%i", (8, 6), INTO_COLUMN, "maximum")]
    rank_two += [scattered("%i", (6, 16), INTO_ROW, ""), scattered("%i", (8, 6), INTO_COLUMN, "multiply")]
    cases = [scattered("%pairs", (3,), INTO_ELEMENT)] if updates else rank_two
    _, gathered = run_cases([USED, *cases], WHOLE, sharding, prelude=INDICES)
    assert gathered == []


def test_indices_into_slices_of_whole_tensors_stay_inside() -> None:
    """Where shards are slices of what all devices have, an index outside of a shard reads and writes nothing."""
    cut = '%s = sdy.sharding_constraint %a <@mesh, [{"x"}, {"y"}]> : tensor<8x16xf32>'
    numbers = "update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]"
    types = f"({type_of(WHOLE)}, tensor<i32>, tensor<i32>) -> {type_of((3, 16))}"
    cases = [
        USED,
        on_slice(scattered("%i", (8,), numbers, "")),
        on_slice(updated((3, 16), "%start, %late")),
        Case(f"stablehlo.dynamic_slice %s, %start, %late, sizes = [3, 16] : {types}", type_of((3, 16))),
    ]
    _, gathered = run_cases(cases, WHOLE, "[{}, {}]", prelude=INDICES + cut)
    assert gathered == []


def on_slice(case: Case) -> Case:
    """Return a case on ``%s`` in place of ``%a``, and with one index only."""
    text = case.text.replace("%a", "%s").replace("%i", "%first").replace("tensor<6xi32>", "tensor<1xi32>")
    return evolve(case, text=text)


def test_the_operand_of_sharded_updates_counts_once() -> None:
    """Where the updates are sharded, and not the operand, partial results add up to one operand."""
    cases = [scattered("%i", (6, 16), INTO_ROW), scattered("%i", (6, 16), INTO_ROW, "multiply")]
    cases += [scattered("%i", (6, 16), INTO_ROW, "maximum")]
    text, gathered = run_cases([*cases], WHOLE, "[{}, {}]", others='[{"y"}, {}]', prelude=PRELUDE, mesh=UNEVEN)
    assert gathered == []
    assert text.count('"stablehlo.all_reduce"') == len(cases)


PRELUDE = """
  %column = stablehlo.slice %b0 [0:6, 0:1] : (tensor<6x16xf32>) -> tensor<6x1xf32>
  %values = stablehlo.reshape %column : (tensor<6x1xf32>) -> tensor<6xf32>
  %scale = stablehlo.constant dense<9.0> : tensor<6xf32>
  %large = stablehlo.multiply %values, %scale : tensor<6xf32>
  %i = stablehlo.convert %large : (tensor<6xf32>) -> tensor<6xi32>
"""
"""Indices that are sharded as the updates are."""


def test_indices_clamp_against_the_real_size() -> None:
    """Where shards have padding, indices clamp and drop out at the end of the whole, and not of the shards."""
    cases = [USED, *LOOKUPS, updated((8, 3), "%none, %start"), updated((5, 7), "%start, %other")]
    cases += [updated((8, 7), "%none, %five"), scattered("%i", (6, 16), INTO_ROW)]
    cases += [scattered("%i", (8, 6), INTO_COLUMN, "maximum"), scattered("%i", (6, 16), INTO_ROW, "")]
    assert run_padded(cases, (8, 16), '[{"x"}, {"y"}]', prelude=INDICES) == []


def test_padding_of_updates_is_dropped() -> None:
    """Where the updates are sharded and have padding, that scatters nothing."""
    cases = [scattered("%i", (6, 16), INTO_ROW), scattered("%i", (6, 16), INTO_ROW, "multiply")]
    assert compare_padded(*flat(program_of(cases, WHOLE, "[{}, {}]", others='[{"y"}, {}]', prelude=PRELUDE))) == []


def flat(program: tuple[str, list[Any]]) -> list[Any]:
    """Return the text of a program and its arrays in one list."""
    return [program[0], *program[1]]


def test_lookups_behind_the_last_row_find_it() -> None:
    """The old op for lookups clamps its indices against the whole, as a gather does."""
    text = f"""{UNEVEN}
    func.func @main(%a: tensor<6x2xi32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{}}]>}}, %i: tensor<5xi32>)
        -> tensor<5x2xi32> {{
      %0 = "stablehlo.torch_index_select"(%a, %i) <{{dim = 0 : i64, batch_dims = 0 : i64}}>
          : (tensor<6x2xi32>, tensor<5xi32>) -> tensor<5x2xi32>
      return %0 : tensor<5x2xi32>
    }}"""
    rows, indices = np.arange(1, 13, dtype=np.int32).reshape(6, 2), np.array([0, 5, 6, 99, -2], np.int32)
    (actual,) = sdy.propagate(text, explicit_collectives=True, extended_rules=True).local().run(rows, indices)
    np.testing.assert_array_equal(actual, rows[[0, 5, 5, 5, 0]])


def test_an_index_that_a_device_has_alone_is_clamped() -> None:
    """XLA adds the start of a gather with one index to that of a slice before, and forgets to clamp in between."""
    text = """sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<3x2xf32>, %s: tensor<i32>,
                %i: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x1xf32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %a, %s, %z, sizes = [2, 1]
      : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<2x1xf32>
  %1 = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>,
      indices_are_sorted = false}> : (tensor<2x1xf32>, tensor<4x1xi32>) -> tensor<4x1xf32>
  return %1 : tensor<4x1xf32>
}
"""
    a, index = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([[-2], [0], [1], [5]], np.int32)
    (rows,) = sdy.propagate(text, explicit_collectives=True).local().run(a, np.int32(1), index)
    np.testing.assert_array_equal(rows, a[1:3, :1][np.clip(index[:, 0], 0, 1)])

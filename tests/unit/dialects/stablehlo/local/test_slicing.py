"""Slices, reversals, joining and padding of sharded dimensions, on host devices."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("jax", reason="programs run through XLA")

import shardy_py as sdy
from tests.unit.dialects.stablehlo.local.on_devices import MESH, Case, run_cases, run_padded, type_of

SHARDINGS = ['[{"x"}, {"y"}]', '[{}, {"y", "x"}]']
BOTH = [SHARDINGS[0], pytest.param(SHARDINGS[1], marks=pytest.mark.slow)]


def sliced(start: int, limit: int, stride: int = 1) -> Case:
    """Return a slice of the second dimension."""
    size = -(-(limit - start) // stride)
    result = type_of((8, size))
    return Case(f"stablehlo.slice %a [0:8, {start}:{limit}:{stride}] : ({type_of((8, 16))}) -> {result}", result)


def padded(low: int, high: int, interior: int = 0) -> Case:
    """Return a pad of the second dimension."""
    result = type_of((8, 16 + 15 * interior + low + high))
    pads = f"low = [0, {low}], high = [0, {high}], interior = [0, {interior}]"
    return Case(f"stablehlo.pad %a, %c, {pads} : ({type_of((8, 16))}, tensor<f32>) -> {result}", result)


@pytest.mark.parametrize("sharding", BOTH)
def test_slices_move_elements_to_the_devices_of_the_result(sharding: str) -> None:
    """A slice with any start and stride is that of one device, and nothing is gathered."""
    cases = [sliced(0, 8), sliced(1, 9), sliced(8, 16), sliced(3, 11), sliced(0, 16, 2), sliced(1, 16, 2)]
    if sharding != SHARDINGS[1]:
        cases += [sliced(2, 14, 3), sliced(1, 13, 3), sliced(3, 16, 4)]
    text, gathered = run_cases(cases, (8, 16), sharding)
    assert gathered == []
    assert "all_gather" not in text


def test_strides_of_whole_shards_need_no_communication() -> None:
    """Every second element of an even shard is taken on its device."""
    text, _ = run_cases([sliced(0, 16, 2), sliced(1, 16, 2), sliced(3, 16, 4)], (8, 16), SHARDINGS[0])
    assert "collective_permute" not in text


def test_a_shift_sends_the_elements_that_change_devices() -> None:
    """A pad that shifts by two sends two elements and not the shard."""
    text, _ = run_cases([padded(2, -2)], (8, 16), SHARDINGS[0])
    assert re.findall(r"collective_permute.*-> (tensor<\w+>)", text) == ["tensor<4x2xf32>"]


@pytest.mark.parametrize("sharding", BOTH)
def test_reversals_take_the_mirrored_part(sharding: str) -> None:
    """The reversal of sharded dimensions is that of one device."""
    second_dim, all_ = (f"stablehlo.reverse %a, dims = [{dims}] : {type_of((8, 16))}" for dims in ("1", "0, 1"))
    _, gathered = run_cases([Case(second_dim, type_of((8, 16))), Case(all_, type_of((8, 16)))], (8, 16), sharding)
    assert gathered == []


@pytest.mark.parametrize("sharding", BOTH)
def test_pads_move_elements_as_far_as_they_are_shifted(sharding: str) -> None:
    """Padding at the edges, between elements, and less than none gives what one device gives."""
    cases = [padded(2, 6), padded(8, 0), padded(0, 8), padded(-2, 2), padded(-3, -5), padded(-8, 0), padded(8, 8)]
    cases += [padded(0, 1, 1), padded(1, 0, 1), padded(5, 4, 1), padded(3, -1, 2), padded(-4, 5, 1), padded(-5, 7, 2)]
    _, gathered = run_cases(cases, (8, 16), sharding)
    assert gathered == []


def test_pads_of_no_elements_have_no_gaps() -> None:
    """What is padded around no elements is as long as its edges, whatever stands between elements."""
    pads = "low = [0, 1], high = [0, 1], interior = [0, 2]"
    pad = Case(f"stablehlo.pad %a, %c, {pads} : ({type_of((8, 0))}, tensor<f32>) -> {type_of((8, 2))}", type_of((8, 2)))
    _, gathered = run_cases([pad], (8, 0), '[{}, {"x"}]')
    assert gathered == []


def test_joined_slices_are_those_of_one_device() -> None:
    """Joining of halves that changed their order is a rotation."""
    half, full_type = type_of((8, 8)), type_of((8, 16))
    cases = [
        Case(f"stablehlo.slice %a [0:8, 0:8] : ({full_type}) -> {half}", half),
        Case(f"stablehlo.slice %a [0:8, 8:16] : ({full_type}) -> {half}", half),
        Case(f"stablehlo.concatenate %r1, %r0, dim = 1 : ({half}, {half}) -> {full_type}", full_type),
    ]
    _, gathered = run_cases(cases, (8, 16), SHARDINGS[0])
    assert gathered == []


def test_a_rotation_sends_what_changes_devices_once() -> None:
    """Joined slices of one tensor fetch its elements, without the slices in between."""
    long, short, full_type = type_of((8, 12)), type_of((8, 4)), type_of((8, 16))
    wide = type_of((8, 20))
    head = f"""
      %tail = stablehlo.slice %a [0:8, 4:16] : ({full_type}) -> {long}
      %head = stablehlo.slice %a [0:8, 0:4] : ({full_type}) -> {short}
    """
    rotated = Case(f"stablehlo.concatenate %tail, %head, dim = 1 : ({long}, {short}) -> {full_type}", full_type)
    text, gathered = run_cases([rotated], (8, 16), SHARDINGS[0], prelude=head)
    assert gathered == []
    assert re.findall(r"collective_permute.*-> (tensor<\w+>)", text) == ["tensor<4x4xf32>"]
    extended = Case(f"stablehlo.concatenate %head, %a, dim = 1 : ({short}, {full_type}) -> {wide}", wide)
    _, gathered = run_cases([rotated, extended], (8, 16), SHARDINGS[0], prelude=head)
    assert gathered == []


@pytest.mark.slow
def test_shards_that_do_not_divide_move_real_elements_only() -> None:
    """Padding, whatever it holds, gets into no result."""
    full_type, long, short = type_of((8, 16)), type_of((8, 11)), type_of((8, 5))
    cases = [
        Case(f"stablehlo.slice %a [0:8, 0:5] : ({full_type}) -> {short}", short),
        Case(f"stablehlo.slice %a [0:8, 5:16] : ({full_type}) -> {long}", long),
        Case(f"stablehlo.concatenate %r1, %r0, dim = 1 : ({long}, {short}) -> {full_type}", full_type),
        Case(f"stablehlo.reverse %a, dims = [0, 1] : {full_type}", full_type),
    ]
    cases += [sliced(3, 11), sliced(1, 16, 2), sliced(2, 14, 3), sliced(15, 16)]
    cases += [padded(2, 6), padded(-3, -5), padded(8, 8), padded(5, 4, 1), padded(-5, 7, 2), padded(0, 1)]
    assert run_padded(cases, (8, 16), '[{"x"}, {"y"}]') == []


@pytest.mark.parametrize("sharding", ['[{"y"}, {"x"}]', '[{}, {"x"}]'])
def test_slices_of_dynamic_slices_begin_where_these_are_clamped_to(sharding: str) -> None:
    """A device takes its part of a slice that begins behind the last place, not of one further behind."""
    text = f"""{MESH}
    func.func @main(%a: tensor<4x12xi32> {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}, %i: tensor<i32>)
        -> (tensor<4x10xi32> {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}) {{
      %0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [4, 10] : (tensor<4x12xi32>, tensor<i32>, tensor<i32>)
          -> tensor<4x10xi32>
      return %0 : tensor<4x10xi32>
    }}"""
    rows = np.arange(48, dtype=np.int32).reshape(4, 12)
    (actual,) = sdy.propagate(text, explicit_collectives=True).local().run(rows, np.int32(9))
    np.testing.assert_array_equal(actual, rows[:, 2:])

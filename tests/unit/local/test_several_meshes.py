"""Ops whose tensors are on several meshes: on host devices they give what one device gives."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="running programs needs jax")

import shardy_py as sdy
from tests.unit.local.host_devices import compare, compare_padded

pytestmark = pytest.mark.slow

TWO_MESHES = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\nsdy.mesh @turned = <["y"=4, "x"=2]>\n'


def numbers(*shape: int) -> np.ndarray:
    """Return numbers of a shape, none of them like another."""
    return np.random.default_rng(0).normal(size=shape).astype("float32")


@pytest.mark.parametrize("combine", ["maximum", "add"])
def test_a_reduction_between_meshes_is_complete(combine: str) -> None:
    """A reduction of shards to a result on another mesh is combined along the axes of its operand, on its mesh."""
    text = (
        TWO_MESHES
        + f"""func.func @main(%a: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"y"}}]>}})
        -> (tensor<8xf32> {{sdy.sharding = #sdy.sharding<@turned, [{{"y"}}]>}}) {{
      %i = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%a init: %i) applies stablehlo.{combine} across dimensions = [1]
          {{sdy.sharding = #sdy.sharding_per_value<[<@turned, [{{"y"}}]>]>}}
          : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }}"""
    )
    assert compare(text, numbers(8, 16)) == []
    kinds = [item.kind for item in sdy.propagate(text, explicit_collectives=True).local().collectives]
    assert kinds == ["all_reduce"]


def test_what_goes_to_another_mesh_is_the_smaller_side() -> None:
    """A product goes to the other mesh where it is smaller than its operands; else these are gathered."""
    text = (
        TWO_MESHES
        + """func.func @main(%a: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
          %b: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
          -> (tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@turned, [{}, {"y"}]>},
              tensor<6x8x5xf32> {sdy.sharding = #sdy.sharding<@turned, [{"x"}, {}, {"y"}]>}) {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
          {sdy.sharding = #sdy.sharding_per_value<[<@turned, [{}, {"y"}]>]>}
          : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
      %1 = stablehlo.broadcast_in_dim %a, dims = [0, 1]
          {sdy.sharding = #sdy.sharding_per_value<[<@turned, [{"x"}, {}, {"y"}]>]>}
          : (tensor<6x8xf32>) -> tensor<6x8x5xf32>
      return %0, %1 : tensor<6x4xf32>, tensor<6x8x5xf32>
    }"""
    )
    assert compare(text, numbers(6, 8), numbers(8, 4)) == ["stablehlo.dot_general", "stablehlo.broadcast_in_dim"]
    actual = sdy.propagate(text, explicit_collectives=True).local().collectives
    assert [(item.kind, str(item.type)) for item in actual if item.kind == "all_reduce"] == [
        ("all_reduce", "tensor<3x4xf32>")
    ]


def test_axes_of_one_name_differ_between_meshes() -> None:
    """An axis cuts a tensor as its own mesh says, though an axis of the other mesh has its name and its size."""
    text = (
        TWO_MESHES
        + """func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>},
          %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@turned, [{"y"}]>})
          -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
      %0 = stablehlo.add %a, %b : tensor<8xf32>
      return %0 : tensor<8xf32>
    }"""
    )
    assert compare(text, numbers(8), numbers(8)[::-1].copy()) == ["stablehlo.add"]


def test_values_move_between_meshes() -> None:
    """A value that goes on to another mesh is gathered, and each device takes its part by the order of that mesh."""
    text = (
        TWO_MESHES
        + 'sdy.mesh @moved = <["x"=4, "y"=2], device_ids=[7, 1, 5, 4, 3, 2, 6, 0]>\n'
        + """func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
        -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@moved, [{"x"}, {"y"}]>}) {
      %0 = stablehlo.sine %a : tensor<8x16xf32>
      %1 = sdy.sharding_constraint %0 <@turned, [{"y"}, {"x"}]> : tensor<8x16xf32>
      return %1 : tensor<8x16xf32>
    }"""
    )
    assert "sdy.reshard" in compare(text, numbers(8, 16))


def moved(text: str) -> list[tuple[str, str]]:
    """Return the kinds and the types of the collectives of a text."""
    return [(item.kind, str(item.type)) for item in sdy.propagate(text, explicit_collectives=True).local().collectives]


def test_operands_go_to_the_mesh_of_the_largest() -> None:
    """A small operand on another mesh is gathered; the large one stays as it is, and partial products are summed."""
    text = (
        TWO_MESHES
        + """func.func @main(%a: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
          %b: tensor<16x2xf32> {sdy.sharding = #sdy.sharding<@turned, [{"x"}, {}]>})
          -> (tensor<32x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
          {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
          : (tensor<32x16xf32>, tensor<16x2xf32>) -> tensor<32x2xf32>
      return %0 : tensor<32x2xf32>
    }"""
    )
    assert compare(text, numbers(32, 16), numbers(16, 2)) == ["stablehlo.dot_general"]
    assert moved(text) == [("all_gather", "tensor<16x2xf32>"), ("all_reduce", "tensor<16x2xf32>")]


@pytest.mark.parametrize("order", ["", ", device_ids=[3, 1, 0, 7, 4, 2, 6, 5]"])
def test_parts_that_agree_are_not_moved(order: str) -> None:
    """Rows that are looked up on another mesh stay where they are if devices have the same parts of them there."""
    text = (
        f'sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]{order}>\nsdy.mesh @joined = <["w"=4, "z"=2]{order}>\n'
        + """func.func @main(%a: tensor<8x12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"z"}, {}]>},
          %b: tensor<8x2x1xi32> {sdy.sharding = #sdy.sharding<@joined, [{"w"}, {}, {}]>})
          -> (tensor<8x2x6xf32> {sdy.sharding = #sdy.sharding<@joined, [{"w"}, {}, {}]>}) {
      %0 = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [2],
          collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0],
          start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 6>}>
          {sdy.sharding = #sdy.sharding_per_value<[<@joined, [{"w"}, {}, {}]>]>}
          : (tensor<8x12x6xf32>, tensor<8x2x1xi32>) -> tensor<8x2x6xf32>
      return %0 : tensor<8x2x6xf32>
    }"""
    )
    indices = np.random.default_rng(1).integers(0, 12, (8, 2, 1)).astype("int32")
    assert compare(text, numbers(8, 12, 6), indices) == []
    assert moved(text) == [("all_reduce", "tensor<2x2x6xf32>")]


def test_parts_of_an_axis_that_do_not_fit_together_are_not_combined() -> None:
    """Halves of an axis of six do not cut further what its second half of three cuts, though they do not overlap."""
    text = """sdy.mesh @mesh = <["x"=6, "y"=2]>
    sdy.mesh @other = <["b"=2, "c"=6]>
    func.func @main(%a: tensor<8x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(3)2, "y"}, {}]>},
        %b: tensor<8x7xf32> {sdy.sharding = #sdy.sharding<@other, [{}, {"b"}]>})
        -> (tensor<8x7xf32> {sdy.sharding = #sdy.sharding<@other, [{}, {}]>}) {
      %0 = stablehlo.subtract %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@other, [{}, {}]>]>} : tensor<8x7xf32>
      return %0 : tensor<8x7xf32>
    }"""
    assert compare_padded(text, numbers(8, 7), numbers(7, 8).T) == ["stablehlo.subtract"]


PAIRS = [(("x", ""), ("y", "x")), (("", "y"), ("", "y")), (("y", "x"), ("x", "")), (("x", "y"), ("y", ""))]
"""The axes of the two operands of a product."""


@pytest.mark.parametrize(
    ("order", "mesh", "pairs"), [("", "turned", PAIRS[:2]), (", device_ids=[5, 2, 1, 0, 3, 4]", "mesh", PAIRS[2:])]
)
def test_operands_on_two_meshes_give_the_same(
    order: str, mesh: str, pairs: list[tuple[tuple[str, str], tuple[str, str]]]
) -> None:
    """Sums, products and the largest elements of operands on two meshes are those of one device, divisible or not."""
    meshes = f'sdy.mesh @mesh = <["x"=2, "y"=3]>\nsdy.mesh @turned = <["y"=3, "x"=2]{order}>\n'
    arguments, names, lines, results = [], [], [], []
    for place, (first, second) in enumerate(pairs):
        arguments += [f"%a{place}: tensor<5x7xf32> {_sharding('mesh', first)}"]
        arguments += [f"%b{place}: tensor<7x4xf32> {_sharding('turned', second)}"]
        names += [f"%m{place}", f"%s{place}"]
        lines.append(
            f"""%m{place} = stablehlo.dot_general %a{place}, %b{place}, contracting_dims = [1] x [0]
            {{sdy.sharding = #sdy.sharding_per_value<[<@{mesh}, [{{"y"}}, {{}}]>]>}}
            : (tensor<5x7xf32>, tensor<7x4xf32>) -> tensor<5x4xf32>
        %t{place} = stablehlo.slice %b{place} [0:5, 0:4] : (tensor<7x4xf32>) -> tensor<5x4xf32>
        %s{place} = stablehlo.add %m{place}, %t{place}
            {{sdy.sharding = #sdy.sharding_per_value<[<@{mesh}, [{{}}, {{"x"}}]>]>}} : tensor<5x4xf32>"""
        )
        results += ["tensor<5x4xf32>"] * 2
    text = f"""{meshes}func.func @main({", ".join(arguments)}) -> ({", ".join(results)}) {{
      {chr(10).join(lines)}
      return {", ".join(names)} : {", ".join(results)}
    }}"""
    arrays = [numbers(5, 7) if number % 2 == 0 else numbers(7, 4) for number in range(len(arguments))]
    assert "stablehlo.dot_general" in compare_padded(text, *arrays)


def _sharding(mesh: str, axes: tuple[str, str]) -> str:
    dims = ", ".join(f'{{"{name}"}}' if name else "{}" for name in axes)
    return f"{{sdy.sharding = #sdy.sharding<@{mesh}, [{dims}]>}}"

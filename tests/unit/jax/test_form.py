"""The form for XLA: closed constraints on every tensor, and nothing that XLA's importer does not know."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("jaxlib")

import shardy_py as sdy
from shardy_py.errors import UnsupportedError

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\n'
LOOP = (
    MESH
    + """
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %w: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:4 = stablehlo.while(%i = %zero, %y = %x, %v = %w, %u = %w)
      : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  cond {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.negate %y : tensor<8x8xf32>
    %3 = stablehlo.custom_call @without_rule(%u, %w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %1, %2, %v, %3 : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
  %4 = sdy.sharding_constraint %0#1 <@mesh, [{"a"}, {"b"}]> : tensor<8x8xf32>
  return %4, %0#2 : tensor<8x8xf32>, tensor<8x8xf32>
}"""
)


def form(text: str, **options: bool) -> list[str]:
    """Return the lines of the form for XLA of a propagated program, after checking that the result stays as it is."""
    result = sdy.propagate(text)
    before = result.text
    lines = [line.strip() for line in str(result.for_xla(**options)).splitlines()]
    assert str(result.module) == before
    return lines


def constrained(lines: list[str], name: str) -> list[str]:
    """Return the shardings that a value is constrained to."""
    return [line.split(" ", 4)[4] for line in lines if f"= sdy.sharding_constraint {name} " in line]


def test_every_tensor_is_constrained() -> None:
    """Results, arguments of loops and values captured there are constrained, scalars are not; no op has a sharding."""
    lines = form(LOOP)
    closed = '<@mesh, [{"a"}, {"b"}]> : tensor<8x8xf32>'
    replicated = "<@mesh, [{}, {}]> : tensor<8x8xf32>"
    assert constrained(lines, "%iterArg_0") == [closed]
    assert constrained(lines, "%iterArg_1") == [replicated]
    assert constrained(lines, "%arg1") == [replicated], "captured by the loop"
    assert not any("reshard" in line for line in lines)
    ops = [line for line in lines if " = " in line and "sdy" not in line]
    assert len(ops) > 5
    assert all("sdy.sharding = " not in line for line in lines if "func.func" not in line)
    assert not any("tensor<i32>" in line or "tensor<i1>" in line for line in lines if "sharding_constraint" in line)


def test_the_interface_is_closed() -> None:
    """Arguments and results of the main function without a sharding are said to be replicated."""
    (header,) = [line for line in form(LOOP) if "@main" in line]
    assert header.count("[{}, {}]>}") == 2
    assert "?" not in header


def test_the_interface_is_reduced() -> None:
    """Results come out whole: what is unreduced inside is added up."""
    text = """
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"a"}>}) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"a"}>]>}
      : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
    lines = form(MESH + text)
    assert any("sharding_constraint" in line and 'unreduced={"a"}' in line for line in lines)
    (header,) = [line for line in lines if "@main" in line]
    assert "unreduced" not in header


def test_pass_through_operands_are_hidden() -> None:
    """A loop yields no argument as it is: XLA would drop the operand."""
    (returned,) = [line for line in form(LOOP) if line.startswith("stablehlo.return") and line.count("tensor") == 4]
    assert "%iterArg" not in returned


def test_open_values_may_stay() -> None:
    """Where the caller asks for it, values without a sharding are left to XLA."""
    lines = form(LOOP, leave_open=True)
    assert constrained(lines, "%iterArg_1") == []
    assert constrained(lines, "%iterArg_0") != []
    (header,) = [line for line in lines if "@main" in line]
    assert "%arg1: tensor<8x8xf32>)" in header


def test_one_device_needs_no_shardings() -> None:
    """On one device nothing is constrained, and manual computations stand inline."""
    lines = form(
        """
sdy.mesh @mesh = <["a"=1]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"}
      (%y: tensor<8xf32>) {
    %1 = stablehlo.negate %y : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
    )
    assert [line.split("(")[0] for line in lines if "sdy." in line] == [
        'sdy.mesh @mesh = <["a"=1]> {stablehlo.mesh = {axes = [{name = "a", size = 1 : i64}]}}'
    ]
    assert "%0 = stablehlo.negate %arg0 : tensor<8xf32>" in lines


def test_device_numbers_of_the_global_program() -> None:
    """Outside manual computations there is one partition, number 0; inside the number is the device's."""
    lines = form(
        MESH
        + """
func.func @main(%x: tensor<8xui32>) -> (tensor<ui32>, tensor<8xui32>) {
  %0 = stablehlo.partition_id : tensor<ui32>
  %1 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a", "b"}]>] out_shardings=[<@mesh, [{"a", "b"}]>]
      manual_axes={"a", "b"} (%y: tensor<2xui32>) {
    %2 = stablehlo.partition_id : tensor<ui32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %4 = stablehlo.add %y, %3 : tensor<2xui32>
    sdy.return %4 : tensor<2xui32>
  } : (tensor<8xui32>) -> tensor<8xui32>
  return %0, %1 : tensor<ui32>, tensor<8xui32>
}"""
    )
    assert sum("stablehlo.partition_id" in line for line in lines) == 1
    assert any("stablehlo.constant dense<0> : tensor<ui32>" in line for line in lines)


def test_smaller_meshes_get_an_axis() -> None:
    """All meshes are over the same devices; those that cannot be are refused."""
    text = """
sdy.mesh @small = <["x"=2], device_ids=[1, 0]>
sdy.mesh @large = <["a"=4]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@small, [{"x"}]>},
                %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@large, [{"a"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  return %x, %y : tensor<8xf32>, tensor<8xf32>
}"""
    assert any('@small = <["x"=2, "rest"=2], device_ids=[1, 2, 0, 3]>' in line for line in form(text))
    with pytest.raises(UnsupportedError, match="cannot be repeated"):
        form(text.replace('"a"=4', '"a"=5').replace('[{"a"}]', "[{}]"))


def test_uneven_arrays_go_in_and_out_by_the_axes_that_divide() -> None:
    """JAX has no arrays of uneven shards; inside, the values have the shardings of the program."""
    text = """sdy.mesh @mesh = <["a"=2, "b"=2]>
    func.func @main(%x: tensor<10x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>})
        -> (tensor<10x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "a"}, {}]>}) {
      %0 = stablehlo.negate %x : tensor<10x8xf32>
      return %0 : tensor<10x8xf32>
    }"""
    result = sdy.propagate(text, keep_uneven_shardings=True)
    assert [str(item) for item in (*result.arguments, *result.results)] == [
        '<@mesh, [{"a", "b"}, {}]>',
        '<@mesh, [{"b", "a"}, {}]>',
    ]
    lines = [line.strip() for line in str(result.for_xla()).splitlines()]
    (function,) = (line for line in lines if line.startswith("func.func"))
    assert re.findall(r"@mesh, (\[.*?\])>", function) == ['[{"a"}, {}]', '[{"b"}, {}]']
    assert constrained(lines, "%arg0") == ['<@mesh, [{"a", "b"}, {}]> : tensor<10x8xf32>']

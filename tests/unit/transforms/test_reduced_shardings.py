"""Warnings of given shardings that finishing reduces: they say what the result will have."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

import shardy_py as sdy
from shardy_py.transforms.reduced_shardings import CODE


def _module(size: int, dims: str, rest: str = "") -> str:
    attribute = f"{{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}"
    return f"""sdy.mesh @mesh = <["one"=1, "x"=4, "y"=6]>
func.func @main(%arg0: tensor<{size}xf32> {attribute}, %arg1: tensor<24xf32>) -> (tensor<{size}xf32>{rest}) {{
  %0 = stablehlo.negate %arg0 : tensor<{size}xf32>
  return %0 : tensor<{size}xf32>
}}
"""


def _reduced(result: sdy.Result | sdy.Session) -> list[sdy.Diagnostic]:
    return [item for item in result.warnings if item.code == CODE]


@pytest.mark.parametrize(
    ("size", "dims"),
    [
        (size, dims)
        for size in (12, 125)
        for dims in (
            '{"x"}',
            '{"x", "y"}',
            '{"y", "x"}',
            '{"one", "x"}',
            '{"x", ?}',
            '{"y", ?}p1',
            '{"x":(1)2, ?}',
            "{}",
        )
    ],
)
def test_the_warning_says_what_becomes_of_a_sharding(size: int, dims: str) -> None:
    """There is one exactly where the result has other axes, with these, in a run as in a session."""
    text = _module(size, dims)
    result = sdy.propagate(text)
    final = result.sharding("arg0")
    assert final is not None
    operands = [
        str(axis) for axis in sdy.propagate(text, keep_uneven_shardings=True).sharding("arg0").dim_shardings[0].axes
    ]
    left = [str(axis) for axis in final.dim_shardings[0].axes]
    actual = _reduced(result)
    assert bool(actual) == (operands != left)
    assert result.summary.shardings_reduced == len(actual)
    for warning in actual:
        assert "argument arg0 of type" in warning.message
        (becomes,) = re.findall(r"becomes \[{(.*?)(?:, )?\??}", warning.message)
        assert becomes == ", ".join(left)
        assert "keep_uneven_shardings=True" in warning.hint
    assert _reduced(sdy.Session.open(text)) == actual


def test_all_that_a_user_gives_is_looked_at() -> None:
    """Arguments and results, by text or by keyword, functions that are called, calls and manual computations."""
    text = """sdy.mesh @mesh = <["x"=4, "y"=2]>
    func.func @main(%arg0: tensor<5x8xf32> {jax.arg_info = "w"}) -> (tensor<5x8xf32> {jax.result_info = "['loss']"}) {
      %0 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
          : (tensor<5x8xf32>) -> tensor<5x8xf32>
      %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>]
          manual_axes={"y"} (%arg1: tensor<5x4xf32>) {
        %2 = stablehlo.negate %arg1 : tensor<5x4xf32>
        sdy.return %2 : tensor<5x4xf32>
      } : (tensor<5x8xf32>) -> tensor<5x8xf32>
      return %1 : tensor<5x8xf32>
    }
    func.func private @f(%arg0: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<5x8xf32> {
      %0 = stablehlo.sine %arg0 : tensor<5x8xf32>
      return %0 : tensor<5x8xf32>
    }
    func.func private @unused(%arg0: tensor<5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<5xf32> {
      return %arg0 : tensor<5xf32>
    }
    """
    shardings = {"in_shardings": {0: ("x", None)}, "out_shardings": {0: ("x", None)}}
    actual = _reduced(sdy.propagate(text, **shardings))
    subjects = [re.findall(r"given for (.*?) of type", item.message)[0] for item in actual]
    assert sorted(subjects) == [
        "argument arg0",
        "argument arg0 of @f",
        "region argument 0",
        "result 0",
        "result 0",
        "result result0 (['loss'])",
    ]
    assert all(item.location for item in actual)
    inlined = _reduced(sdy.propagate(text, inline_calls=True, **shardings))
    assert len(inlined) == len(actual) - 2
    assert _reduced(sdy.propagate(text, keep_uneven_shardings=True, **shardings)) == []


def test_what_propagates_to_an_argument_was_not_given() -> None:
    """Only shardings of the user are spoken of."""
    text = """sdy.mesh @mesh = <["x"=4]>
    func.func @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
      %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> : tensor<5xf32>
      return %0 : tensor<5xf32>
    }"""
    assert _reduced(sdy.propagate(text)) == []


def test_a_built_program_is_warned_of_too() -> None:
    """Shardings of a builder are those of a user."""
    b = sdy.Builder(mesh=sdy.Mesh.of(x=4))
    with b.function("main", [sdy.tensor(5)]) as (x,):
        b.shard(x, '[{"x"}]')
        b.return_(b.op("stablehlo.negate", [x], [sdy.tensor(5)]))
    (warning,) = _reduced(sdy.propagate(b.program))
    assert "argument arg0" in warning.message


def test_an_uneven_program_runs_on_padded_shards() -> None:
    """The local program pads what goes in and cuts what comes out."""
    numpy = pytest.importorskip("numpy")
    text = _module(10, '{"x"}')
    result = sdy.propagate(text, keep_uneven_shardings=True, local=True)
    assert result.local().arguments[0].shard_shape == (3,)
    values = numpy.arange(10, dtype="float32")
    (actual,) = result.local().run(values, numpy.zeros(24, "float32"))
    numpy.testing.assert_array_equal(actual, -values)

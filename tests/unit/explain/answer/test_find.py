"""Look-up of values and ops, and the text of what is found."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py import OptionError, Result, propagate
from tests.unit.explain.explained import MESH, NAMED, sharded, traced


@pytest.fixture(scope="module")
def result() -> Result:
    """A traced run."""
    return traced(NAMED)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("%0", "%0"),
        ("0", "%0"),
        ("%arg1", "%arg1"),
        ("arg1", "%arg1"),
        (1, "%arg1"),
        ("result0", "result['y']"),
        ("params['w']", "params['w']"),
        ("result['y']", "result['y']"),
        ("stablehlo.dot_general", "%0"),
        ("stablehlo.negate#1", "%2"),
        ("model.py:12", "%0"),
        ("model.py:120", "%2"),
    ],
)
def test_a_value_is_found_by_what_users_know_it_by(result: Result, key: int | str, name: str) -> None:
    """Its printed name, a number, its op, its place, or the name that the user's program gives it."""
    for names in ("input", "result"):
        assert result.explain(key, names=names).value == name


def test_a_native_value_and_a_value_of_the_program_are_found(result: Result) -> None:
    """As for shardings."""
    value = result.value("%0")
    assert result.explain(value).value == "%0"


@pytest.mark.parametrize(
    ("key", "dim", "code"),
    [
        ("%77", None, "unknown-value"),
        ("stablehlo.negate", None, "ambiguous-op"),
        ("stablehlo.negate#2", None, "unknown-value"),
        ("%0", 2, "unknown-dimension"),
        ("%0", -1, "unknown-dimension"),
    ],
)
def test_what_is_not_there_is_an_error_with_a_hint(result: Result, key: str, dim: int | None, code: str) -> None:
    """Unknown and ambiguous names, and dimensions out of range."""
    with pytest.raises(OptionError) as error:
        result.explain(key, dim)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == code
    assert diagnostic.hint


def test_hints_name_ops_as_they_can_be_asked_for(result: Result) -> None:
    """Every name in the hint of an ambiguous name is taken, and finds another op."""
    with pytest.raises(OptionError) as error:
        result.explain("stablehlo.negate")
    names = error.value.diagnostics[0].hint.removeprefix("take one of ").split(", ")
    assert len(names) == 2
    assert [result.explain(name).value for name in names] == [name.split(" ")[1] for name in names]


def test_only_a_traced_run_can_be_explained() -> None:
    """The error says how to trace."""
    result = propagate(MESH + NAMED)
    assert result.trace is None
    with pytest.raises(OptionError, match="trace=True"):
        result.explain("%0")


def test_names_of_the_result_are_those_of_its_text() -> None:
    """A constant that was copied moves the numbers on; the names of the input stay those of the input."""
    body = f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}, %arg1: tensor<8xf32> {sharded('[{"b"}]')})
        -> (tensor<8xf32>, tensor<8xf32>) {{
      %cst = stablehlo.constant dense<1.0> : tensor<8xf32>
      %0 = stablehlo.add %arg0, %cst : tensor<8xf32>
      %1 = stablehlo.add %arg1, %cst : tensor<8xf32>
      return %0, %1 : tensor<8xf32>, tensor<8xf32>
    }}"""
    result = traced(body)
    for name in ("%0", "%1", "%2", "%3"):
        sharding = result.sharding(name)
        assert sharding is not None
        assert result.explain(name).final == str(sharding)
    assert result.explain("%cst for %1", names="input").final == str(result.sharding("%1"))
    with pytest.raises(OptionError, match="take one of %cst for %0, %cst for %1"):
        result.explain("%cst", names="input")


@pytest.mark.parametrize("names", ["input", "result"])
def test_a_value_that_cannot_be_sharded_is_an_error_of_its_own(names: str) -> None:
    """Such as an argument of the body of a reduction."""
    result = traced(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{"a"}, {?}]')}) -> tensor<8xf32> {{
          %cst = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.reduce(%arg0 init: %cst) across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>)
              -> tensor<8xf32> reducer(%arg1: tensor<f32>, %arg2: tensor<f32>) {{
            %1 = stablehlo.add %arg1, %arg1 : tensor<f32>
            stablehlo.return %1 : tensor<f32>
          }}
          return %0 : tensor<8xf32>
        }}"""
    )
    assert "%arg1: tensor<f32>" in result.text
    with pytest.raises(OptionError) as error:
        result.explain("%arg1", names=names)
    assert error.value.diagnostics[0].code == "unsharded-value"


def test_a_result_of_another_function_is_what_it_returns() -> None:
    """By the name that the function gives it."""
    result = traced(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}) -> tensor<8xf32> {{
          %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }}
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
          %0 = stablehlo.negate %arg0 : tensor<8xf32>
          return %0 : tensor<8xf32>
        }}"""
    )
    assert result.explain("@f:result0").sharding == result.explain("@f:%0").sharding != ""
    assert result.explain("%0").dimensions[0].present[0].origin.annotation == "function argument %arg0"

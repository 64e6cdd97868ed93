"""What no kernel can have inside is refused, all of it at once; missing libraries are named."""

from __future__ import annotations

import importlib.metadata

import pytest

import shardy_py as sdy
from shardy_py.errors import OptionError, UnsupportedError
from shardy_py.kernels import Fusion, emit
from shardy_py.kernels.requirements import require_xdsl
from shardy_py.testing import make_op
from tests.unit.kernels.fusions import fusion_of

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")

SORT = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.negate %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}"""

ALL_REDUCE = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""

RNG = """
func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<8xf32> {
  %shape = stablehlo.constant dense<8> : tensor<1xi64>
  %0 = stablehlo.rng %a, %b, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""

WHILE = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.while(%a = %x) : tensor<8xf32> cond {
    %c = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    stablehlo.return %a : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}"""

CASE = """
func.func @main(%i: tensor<i32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""

ONE_OP = """
func.func @main({arguments}) -> {result} {{
  %0 = "stablehlo.{op}"({operands}) {attributes} : ({types}) -> {result}
  return %0 : {result}
}}"""

FFT = ONE_OP.format(
    op="fft",
    arguments="%x: tensor<8xcomplex<f32>>",
    operands="%x",
    attributes="<{fft_length = array<i64: 8>, fft_type = #stablehlo<fft_type FFT>}>",
    types="tensor<8xcomplex<f32>>",
    result="tensor<8xcomplex<f32>>",
)
CHOLESKY = ONE_OP.format(
    op="cholesky",
    arguments="%x: tensor<4x4xf32>",
    operands="%x",
    attributes="<{lower = true}>",
    types="tensor<4x4xf32>",
    result="tensor<4x4xf32>",
)
CUSTOM_CALL = ONE_OP.format(
    op="custom_call",
    arguments="%x: tensor<4xf32>",
    operands="%x",
    attributes='<{call_target_name = "foo"}>',
    types="tensor<4xf32>",
    result="tensor<4xf32>",
)

NIBBLES = """
func.func @main(%x: tensor<8xi32>) -> tensor<8x8xi4> {
  %0 = stablehlo.bitcast_convert %x : (tensor<8xi32>) -> tensor<8x8xi4>
  return %0 : tensor<8x8xi4>
}"""

TUPLES = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tuple %x, %x : tuple<tensor<8xf32>, tensor<8xf32>>
  %1 = stablehlo.tuple %0, %x : tuple<tuple<tensor<8xf32>, tensor<8xf32>>, tensor<8xf32>>
  %2 = stablehlo.get_tuple_element %1[1] : (tuple<tuple<tensor<8xf32>, tensor<8xf32>>, tensor<8xf32>>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}"""

NEGATE_OF = """
func.func @main(%x: {type}) -> {type} {{
  %0 = stablehlo.negate %x : {type}
  return %0 : {type}
}}"""


def codes(text: str) -> set[tuple[str, str]]:
    """The ops that are refused, and the codes of the errors."""
    with pytest.raises(UnsupportedError) as caught:
        fusion_of(text)
    for item in caught.value.diagnostics:
        assert item.location or not item.op
        assert item.hint or item.code == "no-elements"
    return {(item.op.removeprefix("stablehlo."), item.code) for item in caught.value.diagnostics}


@pytest.mark.parametrize(
    ("text", "op"),
    [
        (SORT, "sort"),
        (ALL_REDUCE, "all_reduce"),
        (RNG, "rng"),
        (WHILE, "while"),
        (CASE, "case"),
        (FFT, "fft"),
        (CHOLESKY, "cholesky"),
        (CUSTOM_CALL, "custom_call"),
    ],
)
def test_ops_that_are_not_elemental(text: str, op: str) -> None:
    """Sorts, collectives, random numbers, loops, branches and calls of libraries are in no kernel with other ops."""
    assert codes(text) == {(op, "no-emission")}


def test_forms_without_indexing_maps() -> None:
    """Bitcasts to parts of bytes are refused."""
    assert codes(NIBBLES) == {("bitcast_convert", "no-indexing-map")}


def test_tuples() -> None:
    """Tuples inside, nested ones too, are refused, each of them."""
    assert codes(TUPLES) >= {("tuple", "internal-tuple")}


def test_dynamic_shapes() -> None:
    """Dimensions of unknown size are refused, for parameters and ops."""
    text = NEGATE_OF.format(type="tensor<?xf32>")
    assert codes(text) == {("", "no-static-shape"), ("negate", "no-static-shape")}


def test_element_types() -> None:
    """Elements that are no numbers of a known width are refused."""
    type_ = "tensor<8x!quant.uniform<i8:f32, 0.5>>"
    assert codes(f"func.func @main(%x: {type_}) -> {type_} {{ return %x : {type_} }}") == {("", "element-type")}


def test_no_elements() -> None:
    """A tensor without elements needs no kernel."""
    assert codes(NEGATE_OF.format(type="tensor<0x4xf32>")) == {("", "no-elements"), ("negate", "no-elements")}


def test_no_elements_in_a_fusion_made_by_hand() -> None:
    """Such a fusion was not checked when it was made, and has no launch."""
    dialect = sdy.Dialect("odd")
    dialect.op("odd.inc", indexing=["(i) -> (i)"], emission="x -> x + 1")
    op = make_op("odd.inc", [sdy.tensor(0)], [sdy.tensor(0)])
    fusion = Fusion("none", tuple(op.operands), tuple(op.results), sdy.Registry.of([dialect]))
    with pytest.raises(UnsupportedError, match="nothing to do for tensor<0xf32>"):
        emit(fusion)


pytest.importorskip("xdsl", reason="kernels are written in dialects of xDSL")


@pytest.mark.parametrize("version", ["0.62.0", "0.73.9.dev0+g1"])
def test_older_versions_are_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Other parts of the package do with an xDSL that lacks types of kernels."""
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    require_xdsl.cache_clear()
    with pytest.raises(OptionError) as caught:
        require_xdsl()
    (problem,) = caught.value.diagnostics
    assert problem.code == "old-xdsl"
    assert problem.message == f"kernels need xdsl 0.74 or later, and {version} is installed"
    assert problem.hint == "pip install 'shardy_py[codegen]'"


@pytest.mark.parametrize("version", ["0.74.0", "0.74.0rc1", "0.100", "1"])
def test_others_will_do(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Versions are compared as numbers."""
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    require_xdsl()

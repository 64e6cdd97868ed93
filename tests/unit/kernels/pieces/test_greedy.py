"""Pieces of a program that can be kernels: the rule by which ops join each other."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="programs are read through the extra 'stablehlo'")

from shardy_py.frontends.mlir import import_module, parse_module
from shardy_py.kernels import Fusion, emit, piece_of, read_fusions
from shardy_py.plugins import Registry

SOFTMAX = """
func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<64xf32>) -> tensor<64x128xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<64x128xf32>
  %3 = stablehlo.exponential %2 : tensor<64x128xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  %5 = stablehlo.sqrt %4 : tensor<64xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<64xf32>) -> tensor<64x128xf32>
  %7 = stablehlo.divide %3, %6 : tensor<64x128xf32>
  return %7 : tensor<64x128xf32>
}"""

TWO_RESULTS = """
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.negate %x : tensor<8xf32>
  %1 = stablehlo.sine %0 : tensor<8xf32>
  %unused = stablehlo.abs %0 : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}"""

AROUND_DOT = """
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %all = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %0 = stablehlo.multiply %x, %all : tensor<8x8xf32>
  %1 = stablehlo.dot %0, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = func.call @twice(%1, %all) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
func.func private @twice(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.multiply %x, %y : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""


def ops(fusion: Fusion) -> list[str]:
    """The names of the ops of a fusion, without the dialect."""
    return sorted(op.name.partition(".")[2] for op in fusion.ops)


def test_a_softmax() -> None:
    """A value with users in two pieces is a root, and so is a reduction whose results are read several times."""
    fusions = {fusion.name: ops(fusion) for fusion in read_fusions(SOFTMAX)}
    assert fusions == {
        "reduce_0": ["constant", "reduce"],
        "exponential_1": ["broadcast_in_dim", "exponential", "subtract"],
        "reduce_2": ["constant", "reduce"],
        "divide_3": ["broadcast_in_dim", "divide", "sqrt"],
    }


def test_one_reduction_in_a_piece() -> None:
    """What follows a reduction element by element is in its piece; a second reduction before it is not."""
    text = SOFTMAX.replace("return %7 : tensor<64x128xf32>", "return %5 : tensor<64xf32>")
    fusions = [
        ops(fusion) for fusion in read_fusions(text.replace("-> tensor<64x128xf32> {", "-> tensor<64xf32> {", 1))
    ]
    assert fusions == [
        ["constant", "reduce"],
        ["broadcast_in_dim", "constant", "exponential", "reduce", "sqrt", "subtract"],
    ]


MEAN = """
func.func @main(%x: tensor<{rows}x{columns}xf32>) -> tensor<{columns}xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<{rows}x{columns}xf32>, tensor<f32>) -> tensor<{columns}xf32>
  %count = stablehlo.constant dense<{rows}.0> : tensor<{columns}xf32>
  %1 = stablehlo.divide %0, %count : tensor<{columns}xf32>
  return %1 : tensor<{columns}xf32>
}}"""


@pytest.mark.parametrize(("rows", "emitters"), [(2048, ["reduction", "loop"]), (2, ["loop"])])
def test_a_reduction_keeps_its_emitter(rows: int, emitters: list[str]) -> None:
    """A mean is two kernels where threads share its sums; where each thread adds its own, it is one."""
    fusions = read_fusions(MEAN.format(rows=rows, columns=512))
    assert [emit(fusion).choice.kind.value for fusion in fusions] == emitters


def test_parameters_are_what_others_compute() -> None:
    """A piece reads arguments of the function and roots of other pieces, in the order of the program."""
    first, second, *_ = read_fusions(SOFTMAX)
    assert [value.is_block_argument for value in second.parameters] == [True, False]
    assert second.parameters[1] is first.roots[0]


def test_returned_values_are_roots() -> None:
    """A value that is returned is the root of a piece although it has a user; what nobody uses is in none."""
    assert [ops(fusion) for fusion in read_fusions(TWO_RESULTS)] == [["negate"], ["sine"]]


def test_contractions_are_in_no_piece() -> None:
    """A contraction parts pieces, constants are in all pieces that use them, calls are inlined."""
    fusions = read_fusions(AROUND_DOT)
    assert [ops(fusion) for fusion in fusions] == [["broadcast_in_dim", "constant", "multiply"]] * 2
    assert [len(fusion.parameters) for fusion in fusions] == [1, 1]


def test_a_piece_by_its_roots() -> None:
    """A piece by its roots has all that these are computed from, several times if need be."""
    registry = Registry.from_entry_points()
    program = import_module(parse_module(SOFTMAX))
    (block,) = program.functions["main"].regions[0].blocks
    division = next(op for op in block.ops if op.name == "stablehlo.divide")
    fusion = piece_of([division], registry)
    assert fusion.name == "divide"
    assert fusion.parameters == (block.arguments[0],)
    assert len(fusion.ops) == len(list(block.ops)) - 1

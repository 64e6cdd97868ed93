"""Kernels at the level of tiles compute what those at the level of elements compute."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")

from jaxlib.mlir import ir
from xdsl.dialects import builtin

from shardy_py.errors import OptionError, ParseError, UnsupportedError, VerificationError
from shardy_py.frontends.mlir.context import make_context
from shardy_py.kernels import emit, emit_tiles, read_fusion
from shardy_py.kernels.dialect.text import print_kernel_module
from shardy_py.kernels.run.arrays import random_arrays
from shardy_py.kernels.tiles.interpreter import run_tiles
from shardy_py.kernels.tiles.text import parse_tile_module
from tests.unit.kernels.fusions import LOG_TRANSPOSE_ADD, NEGATE, SUM, TRANSPOSE, fusion_of

LOOPS = {
    "iota, compare, select, convert": """
func.func @main(%x: tensor<5x70xi32>, %p: tensor<5x70xi1>) -> tensor<5x70xbf16> {
  %i = stablehlo.iota dim = 1 : tensor<5x70xi32>
  %c = stablehlo.compare LT, %i, %x : (tensor<5x70xi32>, tensor<5x70xi32>) -> tensor<5x70xi1>
  %b = stablehlo.and %c, %p : tensor<5x70xi1>
  %f = stablehlo.convert %i : (tensor<5x70xi32>) -> tensor<5x70xbf16>
  %g = stablehlo.convert %x : (tensor<5x70xi32>) -> tensor<5x70xbf16>
  %s = stablehlo.select %b, %f, %g : tensor<5x70xi1>, tensor<5x70xbf16>
  return %s : tensor<5x70xbf16>
}""",
    "broadcasts of a column, a row and a scalar": """
func.func @main(%x: tensor<6xf32>, %y: tensor<37xf32>, %z: tensor<f32>) -> tensor<6x37xf32> {
  %a = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<6xf32>) -> tensor<6x37xf32>
  %b = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<37xf32>) -> tensor<6x37xf32>
  %c = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<6x37xf32>
  %d = stablehlo.multiply %a, %b : tensor<6x37xf32>
  %e = stablehlo.subtract %d, %c : tensor<6x37xf32>
  return %e : tensor<6x37xf32>
}""",
    "a slice with strides, of a negative iota": """
func.func @main(%x: tensor<20x9xf32>) -> tensor<6x4xf32> {
  %i = stablehlo.iota dim = 0 : tensor<20x9xf32>
  %a = stablehlo.subtract %x, %i : tensor<20x9xf32>
  %b = stablehlo.slice %a [2:20:3, 1:9:2] : (tensor<20x9xf32>) -> tensor<6x4xf32>
  return %b : tensor<6x4xf32>
}""",
    "reshapes that join and split dimensions": """
func.func @main(%x: tensor<6x8x4xf32>, %y: tensor<192xf32>) -> tensor<6x32xf32> {
  %a = stablehlo.reshape %x : (tensor<6x8x4xf32>) -> tensor<6x32xf32>
  %b = stablehlo.reshape %y : (tensor<192xf32>) -> tensor<6x32xf32>
  %c = stablehlo.add %a, %b : tensor<6x32xf32>
  return %c : tensor<6x32xf32>
}""",
    "division of integers, whose overhanging elements are any": """
func.func @main(%x: tensor<21xi32>, %y: tensor<21xui8>) -> tensor<21xi32> {
  %a = stablehlo.convert %y : (tensor<21xui8>) -> tensor<21xi32>
  %b = stablehlo.divide %x, %a : tensor<21xi32>
  %c = stablehlo.power %b, %a : tensor<21xi32>
  return %c : tensor<21xi32>
}""",
    "scalars": """
func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %a = stablehlo.atan2 %x, %y : tensor<f32>
  return %a : tensor<f32>
}""",
}


def inputs_of(fusion: Any) -> list[Any]:
    """Random arrays, those of floats below zero, so that a missing mask of a sum or a maximum shows."""
    arrays = random_arrays(fusion, 3)
    return [-np.abs(array) - array.dtype.type(1) if array.dtype.kind == "f" else array for array in arrays]


def check(text: str, sizes: Sequence[int] | None = None, *, exact: bool = False) -> Any:
    """Check that a fusion computes the same in both levels, also after its text is read back."""
    fusion = fusion_of(text)
    arrays = inputs_of(fusion)
    kernel = emit_tiles(fusion, tile_sizes=sizes)
    assert print_kernel_module(parse_tile_module(kernel.text)) == kernel.text
    for actual, want in zip(kernel.run(*arrays), emit(fusion).run(*arrays), strict=True):
        assert (actual.shape, actual.dtype) == (want.shape, want.dtype)
        if exact or want.dtype.kind != "f":
            np.testing.assert_array_equal(actual, want)
        else:
            np.testing.assert_allclose(actual, want, rtol=2e-6)
    return kernel


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    """Elements are computed by their scalar bodies on tensors, in tiles of one and of several."""
    kernel = check(LOOPS[name], exact=True)
    if name != "reshapes that join and split dimensions":
        sizes = [min(size, 2) for size in kernel.tile_sizes[0]]
        assert check(LOOPS[name], sizes, exact=True).tile_count >= kernel.tile_count


@pytest.mark.parametrize("text", [*LOOPS.values(), SUM.format(shape="7x100", result="7", dim=1)])
def test_mlir_takes_the_ops(text: str) -> None:
    """MLIR verifies the ops of arith, math, tensor and StableHLO on tiles; it has neither xtile nor its layouts."""
    module = emit_tiles(fusion_of(text), spelling="xla").module
    generic = print_kernel_module(module, spelling="xla", generic=True)
    with make_context():
        assert ir.Module.parse(re.sub(r", #xtile\.layout<[^>]*>", "", generic)).operation.verify()
        with pytest.raises(ir.MLIRError):
            ir.Module.parse(re.sub(r", #xtile\.layout<[^>]*>", "", generic).replace("tensor<", "tensor<3x", 1))


@pytest.mark.parametrize("sizes", [(8, 128), (4, 32), (1, 64)])
def test_tiles_that_overhang(sizes: tuple[int, int]) -> None:
    """Tiles beyond the end of a dimension write nothing there."""
    kernel = check(NEGATE.format(shape="6x100"), sizes, exact=True)
    assert kernel.tile_count == -(-6 // sizes[0]) * -(-100 // sizes[1])
    assert f"xtile.extract %0[%3, %4] [{sizes[0]}, {sizes[1]}] [1, 1]" in kernel.text or kernel.tile_count == 1


@pytest.mark.parametrize(("shape", "dims", "result"), [("50x70", "1, 0", "70x50"), ("5x33x40", "2, 0, 1", "40x5x33")])
def test_transposes(shape: str, dims: str, result: str) -> None:
    """A tile is read in the order of the operand, then transposed."""
    kernel = check(TRANSPOSE.format(shape=shape, dims=dims, result=result, dtype="f32"), exact=True)
    assert f"dims = [{dims}]" in kernel.text


def test_a_transpose_beside_its_operand() -> None:
    """Tiles of one parameter are read at two places."""
    kernel = check(LOG_TRANSPOSE_ADD.format(n=100))
    assert kernel.text.count("xtile.extract") == 2
    assert kernel.tile_sizes == ((32, 128),)


REDUCE = """
func.func @main(%x: tensor<{shape}x{type}>, %i: tensor<{type}>) -> tensor<{result}{type}> {{
  {init}
  %0 = stablehlo.reduce(%x init: %cst) applies stablehlo.{op} across dimensions = [{dims}]
      : (tensor<{shape}x{type}>, tensor<{type}>) -> tensor<{result}{type}>
  return %0 : tensor<{result}{type}>
}}"""


@pytest.mark.parametrize(
    ("op", "type_", "init"),
    [
        ("add", "f32", "5.0"),
        ("add", "bf16", "0.0"),
        ("maximum", "f32", "0xFF800000"),
        ("minimum", "f32", "0x7F800000"),
        ("multiply", "i32", "3"),
        ("and", "i1", "true"),
        ("or", "i32", "4"),
    ],
)
@pytest.mark.parametrize(
    ("shape", "dims", "result"), [("7x100", "1", "7x"), ("100x7", "0", "7x"), ("5x6x70", "0, 2", "6x"), ("90", "0", "")]
)
def test_reductions(op: str, type_: str, init: str, shape: str, dims: str, result: str) -> None:
    """Rows and columns are reduced whole; what overhangs is masked by what changes nothing."""
    constant = f"%cst = stablehlo.constant dense<{init}> : tensor<{type_}>"
    fields = {"op": op, "type": type_, "shape": shape, "dims": dims, "result": result}
    fusion = fusion_of(REDUCE.format(init=constant, **fields))
    arrays = inputs_of(fusion)
    kernel = emit_tiles(fusion)
    (actual,), (want,) = kernel.run(*arrays), emit(fusion).run(*arrays)
    tolerance = {"f32": 1e-6, "bf16": 0.1}.get(type_, 0)
    np.testing.assert_allclose(actual.astype(np.float64), want.astype(np.float64), rtol=tolerance)
    assert kernel.text.count("xtile.mask") == 1


def test_a_mask_is_needed() -> None:
    """Without its mask a sum has what the tile reads behind the end of the row: a NaN."""
    text = emit_tiles(fusion_of(SUM.format(shape="4x100", result="4", dim=1))).text
    x = np.ones((4, 100), np.float32)
    output = ((4,), np.dtype(np.float32))
    (whole,) = run_tiles(parse_tile_module(text), [x], [output])
    masked = next(line for line in text.splitlines() if "xtile.mask" in line)
    result, _, rest = masked.strip().partition(" = xtile.mask ")
    source = rest.split(" ")[0]
    without = text.replace(masked + "\n", "").replace(result + ",", source + ",")
    (broken,) = run_tiles(parse_tile_module(without), [x], [output])
    assert whole.tolist() == [100] * 4
    assert np.isnan(broken).all()


def test_the_place_of_the_maximum() -> None:
    """A reduction of two tensors by one region is one op on tiles."""
    text = """
func.func @main(%x: tensor<9x50xf32>) -> (tensor<9xf32>, tensor<9xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<9x50xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.reduce(%x init: %least), (%i init: %zero) across dimensions = [1]
      : (tensor<9x50xf32>, tensor<9x50xi32>, tensor<f32>, tensor<i32>) -> (tensor<9xf32>, tensor<9xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%m: tensor<i32>, %n: tensor<i32>) {
    %g = stablehlo.maximum %a, %b : tensor<f32>
    %h = stablehlo.minimum %m, %n : tensor<i32>
    stablehlo.return %g, %h : tensor<f32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xi32>
}"""
    assert check(text).text.count("xtile.mask") == 2


def test_a_softmax() -> None:
    """A tile of whole rows is reduced twice and spread over the rows again."""
    text = """
func.func @main(%x: tensor<9x50xf32>) -> tensor<9x50xf32> {
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
      : (tensor<9x50xf32>, tensor<f32>) -> tensor<9xf32>
  %n = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<9xf32>) -> tensor<9x50xf32>
  %d = stablehlo.subtract %x, %n : tensor<9x50xf32>
  %e = stablehlo.exponential %d : tensor<9x50xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<9x50xf32>, tensor<f32>) -> tensor<9xf32>
  %t = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<9xf32>) -> tensor<9x50xf32>
  %q = stablehlo.divide %e, %t : tensor<9x50xf32>
  return %q : tensor<9x50xf32>
}"""
    kernel = check(text)
    assert (kernel.text.count("xtile.extract"), kernel.tile_sizes) == (1, ((1, 64),))


def test_a_root_beside_a_reduction() -> None:
    """A root that is reduced by another one is written in the tiles that are reduced."""
    text = """
func.func @main(%x: tensor<9x64xf32>) -> (tensor<9xf32>, tensor<9x64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.negate %x : tensor<9x64xf32>
  %s = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<9x64xf32>, tensor<f32>) -> tensor<9xf32>
  return %s, %n : tensor<9xf32>, tensor<9x64xf32>
}"""
    kernel = check(text, [2])
    assert kernel.tile_sizes == ((2,), (2, 64))


def test_an_element_that_no_tile_writes() -> None:
    """Elements that no tile writes, or several do, are an error."""
    text = emit_tiles(fusion_of(NEGATE.format(shape="4x100")), tile_sizes=[4, 32]).text
    x, output = np.ones((4, 100), np.float32), ((4, 100), np.dtype(np.float32))
    with pytest.raises(VerificationError, match=r"0 tiles write the element \[0, 96\] of result 0"):
        run_tiles(parse_tile_module(text.replace("tile_count:4", "tile_count:3")), [x], [output])
    with pytest.raises(VerificationError, match=r"2 tiles write the element \[0, 16\] of result 0"):
        run_tiles(parse_tile_module(text.replace("d0 * 32", "d0 * 16").replace("* 32", "* 16")), [x], [output])


@pytest.mark.parametrize(
    ("shape", "sizes", "hint"),
    [("9x64", None, "tiles that divide [9, 64] would be"), ("9x60", [1], "reduced dimensions are padded")],
)
def test_a_root_in_another_shape(shape: str, sizes: Sequence[int] | None, hint: str) -> None:
    """A root that is no tile where the first one overhangs says which tiles would be one, and why others are not."""
    rows, columns = map(int, shape.split("x"))
    fusion = fusion_of(f"""
func.func @main(%x: tensor<{shape}xf32>) -> (tensor<{rows}xf32>, tensor<{rows * columns}xf32>) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.negate %x : tensor<{shape}xf32>
  %s = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<{shape}xf32>, tensor<f32>) -> tensor<{rows}xf32>
  %r = stablehlo.reshape %n : (tensor<{shape}xf32>) -> tensor<{rows * columns}xf32>
  return %s, %r : tensor<{rows}xf32>, tensor<{rows * columns}xf32>
}}""")
    with pytest.raises(UnsupportedError) as caught:
        emit_tiles(fusion, tile_sizes=sizes)
    (problem,) = caught.value.diagnostics
    assert problem.code == "tile-root"
    assert hint in problem.hint


EDITS = {
    "[2, 128] [1, 1]": ("[2, 64] [1, 1]", "<tiles>:6", "it computes a tile of [2, 64]"),
    "bounds [2, 100]": ("bounds [2, 100, 3]", "<tiles>:9", "its operands, tensor<2x128xf32>, f32, do not fit it"),
    "array<i64: 1>": ("array<i64: 3>", "<tiles>:10", "do not fit it"),
    "[2] [1]": ("[4] [1]", "<tiles>:15", "do not fit it"),
}


@pytest.mark.parametrize("text", EDITS)
def test_shapes_that_do_not_fit(text: str) -> None:
    """Shapes that were changed by hand are an error that names the op and its line."""
    fusion = fusion_of("""func.func @main(%x: tensor<5x100xf32>) -> tensor<5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %x : tensor<5x100xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<5x100xf32>, tensor<f32>) -> tensor<5xf32>
  return %1 : tensor<5xf32>
}""")
    kernel = emit_tiles(fusion, tile_sizes=[2])
    edited, location, message = EDITS[text]
    module = parse_tile_module(kernel.text.replace(text, edited))
    with pytest.raises(VerificationError) as caught:
        run_tiles(module, [np.ones((5, 100), np.float32)], [((5,), np.dtype(np.float32))])
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.location) == ("run-shapes", location)
    assert message in problem.message


def test_bytes_of_conditions_are_not_left_over() -> None:
    """A comparison that a choice reads is no byte in between."""
    kernel = emit_tiles(
        fusion_of("""
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.compare LT, %x, %y : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
  %1 = stablehlo.select %0, %x, %y : tensor<64xi1>, tensor<64xf32>
  return %1 : tensor<64xf32>
}""")
    )
    assert "arith.cmpf" in kernel.text
    assert "extui" not in kernel.text


@pytest.mark.parametrize("type_", ["f4E2M1FN", "f8E4M3FNUZ", "f8E5M2", "bf16", "i4"])
def test_what_overhangs_is_poison_of_every_type(type_: str) -> None:
    """Elements outside of the buffer are a NaN, or an extreme number, which a missing mask would let through."""
    fusion = fusion_of(f"""
func.func @main(%x: tensor<6x{type_}>) -> tensor<f32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.convert %x : (tensor<6x{type_}>) -> tensor<6xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}}""")
    kernel = emit_tiles(fusion)
    (array,) = random_arrays(fusion, 1)
    (right,) = kernel.run(array)
    np.testing.assert_array_equal(right, array.astype(np.float32).sum(dtype=np.float32))
    text = kernel.text.replace("bounds [6]", "bounds [8]")
    assert text != kernel.text
    (wrong,) = run_tiles(parse_tile_module(text), [array], [((), np.dtype(np.float32))])
    extreme = {"f4E2M1FN": -12.0, "i4": 10.0}.get(type_, np.nan)
    np.testing.assert_allclose(wrong - right, extreme)


REFUSED = {
    "stablehlo.pad": """
func.func @main(%x: tensor<8xf32>, %y: tensor<f32>) -> tensor<10xf32> {
  %0 = stablehlo.pad %x, %y, low = [1], high = [1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
  return %0 : tensor<10xf32>
}""",
    "stablehlo.concatenate": """
func.func @main(%x: tensor<8xf32>) -> tensor<16xf32> {
  %0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}""",
    "stablehlo.reverse": """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<8xf32>
  return %0 : tensor<8xf32>
}""",
    "stablehlo.dynamic_slice": """
func.func @main(%x: tensor<8xf32>, %i: tensor<i32>) -> tensor<4xf32> {
  %0 = stablehlo.dynamic_slice %x, %i, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}""",
    "stablehlo.dot_general": """
func.func @main(%x: tensor<8x4xf32>, %y: tensor<4xf32>) -> tensor<8xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}""",
    "stablehlo.reshape": """
func.func @main(%x: tensor<21xf32>) -> tensor<3x7xf32> {
  %0 = stablehlo.reshape %x : (tensor<21xf32>) -> tensor<3x7xf32>
  %1 = stablehlo.negate %0 : tensor<3x7xf32>
  return %1 : tensor<3x7xf32>
}""",
    "stablehlo.multiply": """
func.func @main(%x: tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>> {
  %0 = stablehlo.multiply %x, %x : tensor<8xcomplex<f32>>
  return %0 : tensor<8xcomplex<f32>>
}""",
    "stablehlo.constant": """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = stablehlo.add %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}""",
    "stablehlo.reduce": """
func.func @main(%x: tensor<2097152xf32>) -> tensor<f32> {
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %cst) applies stablehlo.add across dimensions = [0]
      : (tensor<2097152xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}""",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    """What is no tile is refused with the op, its location and the way out."""
    with pytest.raises(UnsupportedError) as caught:
        emit_tiles(fusion_of(REFUSED[name]))
    (problem,) = caught.value.diagnostics
    assert problem.op == name
    assert problem.location
    assert "scalar level" in problem.hint


@pytest.mark.parametrize("sizes", [(4,), (4, 3), (16, 4), (0, 4)])
def test_sizes_that_do_not_fit(sizes: tuple[int, ...]) -> None:
    """A tile has a power of two for every dimension, and none that is longer than needed."""
    with pytest.raises(OptionError, match="tiles of tensor<6x100xf32> have not the sizes"):
        emit_tiles(fusion_of(NEGATE.format(shape="6x100")), tile_sizes=sizes)


def test_tiles_have_a_most_size() -> None:
    """A tile that no device holds is refused."""
    with pytest.raises(OptionError, match="at most 1048576 elements"):
        emit_tiles(fusion_of(NEGATE.format(shape="2048x2048")), tile_sizes=[2048, 2048])


def test_a_layout() -> None:
    """A buffer that is not row-major says so, and its tiles are long in the order of memory."""
    fusion = read_fusion("""HloModule m
ENTRY e {
  p0 = f32[500,70]{0,1} parameter(0)
  ROOT r = f32[500,70]{0,1} negate(p0)
}
""")
    kernel = emit_tiles(fusion)
    assert kernel.text.count("memref<500x70xf32, #xtile.layout<[0, 1]>>, ") == 2
    assert kernel.tile_sizes == ((512, 8),)
    x = np.arange(35000, dtype=np.float32).reshape(500, 70)
    np.testing.assert_array_equal(kernel.run(x)[0], -x)


@pytest.mark.parametrize("line", ["%3 = arith.addf %2, %2 : index", "%3 = arith.cmpf always, %2, %2 : tensor<f32>"])
def test_a_malformed_text(line: str) -> None:
    """A text that does not parse, or whose ops do not take their types, is an error with a code."""
    text = f"xtile.entry_func @main(%2: index) {{\n  {line}\n  xtile.return\n}}"
    with pytest.raises(ParseError) as caught:
        parse_tile_module(text)
    assert [problem.code for problem in caught.value.diagnostics] == ["malformed-kernel"]


def test_another_module() -> None:
    """A module without an entry function for the arrays is refused."""
    with pytest.raises(VerificationError, match="no entry function for tiles"):
        run_tiles(builtin.ModuleOp([]), [], [])

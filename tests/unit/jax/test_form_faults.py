"""Faults of XLA's partitioner: programs that meet one are refused, or warned of, with the op and its location."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib")

import shardy_py as sdy
from shardy_py.errors import Diagnostic, UnsupportedError

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>\n'
ROWS, SUMMED, COLUMNS, WHOLE = '[{"a"}, {}]', '[{}, {"a"}]', '[{}, {"b"}]', "[{}, {}]"
PRODUCT = "stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]"
PAD = "stablehlo.pad %x, %z, low = [{}, 0], high = [{}, 0], interior = [{}, 0]"


def faults(text: str, **options: bool) -> list[Diagnostic]:
    """Return the faults that a program meets in the form for XLA."""
    diagnostics: list[Diagnostic] = []
    sdy.propagate(MESH + text).for_xla(warnings=diagnostics, **options)
    return diagnostics


def annotated(sharding: str) -> str:
    """Return the sharding of a value as an attribute."""
    return f"{{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"


def per_value(*shardings: str) -> str:
    """Return the shardings of the results of an op as an attribute."""
    return f"sdy.sharding = #sdy.sharding_per_value<[{', '.join(f'<@mesh, {item}>' for item in shardings)}]>"


def codes(diagnostics: list[Diagnostic]) -> list[tuple[str, str]]:
    """Return the code and the severity of each fault."""
    assert all(item.location and item.hint for item in diagnostics)
    return [(item.code, item.severity) for item in diagnostics]


@pytest.mark.parametrize(
    ("op", "left", "right", "result", "is_wrong"),
    [
        (PRODUCT, SUMMED, ROWS, '[{"a"}, {"c", "b"}]', True),
        (PRODUCT, SUMMED, ROWS, '[{"a"}, {"b", "c"}]', False),
        (PRODUCT, SUMMED, ROWS, '[{"a"}, {"c"}]', False),
        (PRODUCT, SUMMED, ROWS, '[{}, {"c", "b"}]', False),
        (PRODUCT, SUMMED, COLUMNS, '[{"a"}, {"c", "b"}]', False),
        (PAD.format(-1, -6, 1), ROWS, COLUMNS, ROWS, True),
        (PAD.format(-1, -6, 1), COLUMNS, ROWS, COLUMNS, False),
        (PAD.format(-2, -5, 1), ROWS, COLUMNS, ROWS, False),
        (PAD.format(-3, 3, 0), ROWS, COLUMNS, ROWS, False),
    ],
)
def test_shardings_that_lead_to_a_fault(op: str, left: str, right: str, result: str, *, is_wrong: bool) -> None:
    """A product or a pad is an error with the shardings that XLA's partitioner gets wrong, and with no others."""
    scalar = op.startswith("stablehlo.pad")
    actual = faults(f"""
func.func @main(%x: tensor<8x8xf32> {annotated(left)}, %y: tensor<8x8xf32> {annotated(right)}, %z: tensor<f32>)
    -> tensor<8x8xf32> {{
  %0 = {op} {{{per_value(result)}}} : (tensor<8x8xf32>, tensor<{"" if scalar else "8x8x"}f32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}""")
    assert codes(actual) == [("xla-wrong-numbers", "error")] * is_wrong
    assert [item.op for item in actual] == [op.split(" ")[0]] * is_wrong


CERTAIN, POSSIBLE = [("xla-wrong-numbers", "error")], [("xla-may-be-wrong", "warning")]


@pytest.mark.parametrize(
    ("start", "sharding", "sliced", "expected"),
    [
        ("%i", ROWS, ROWS, POSSIBLE),
        ("%i", ROWS, WHOLE, POSSIBLE),
        ("%i", WHOLE, ROWS, POSSIBLE),
        ("%i", COLUMNS, COLUMNS, []),
        ("%inside", ROWS, ROWS, []),
        ("%outside", ROWS, ROWS, CERTAIN),
        ("%clamped", ROWS, ROWS, []),
        ("%clamped_late", ROWS, ROWS, POSSIBLE),
    ],
)
def test_starts_of_slices(start: str, sharding: str, sliced: str, expected: list[tuple[str, str]]) -> None:
    """A start along a sharded dimension is an error outside, a warning where it is unknown, and fine inside."""
    faults_of_slice = faults(f"""
func.func @main(%x: tensor<8x8xf32> {annotated(sharding)}, %i: tensor<i32>) -> tensor<4x8xf32> {{
  %inside = stablehlo.constant dense<4> : tensor<i32>
  %outside = stablehlo.constant dense<5> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %clamped = stablehlo.clamp %zero, %i, %inside : tensor<i32>
  %clamped_late = stablehlo.clamp %zero, %i, %outside : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, {start}, %zero, sizes = [4, 8] {{{per_value(sliced)}}}
      : (tensor<8x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}}""")
    assert codes(faults_of_slice) == expected


@pytest.mark.parametrize(
    ("dim", "sharding", "is_wrong"),
    [(-2, ROWS, True), (-2, COLUMNS, True), (0, ROWS, False), (-2, WHOLE, False)],
)
def test_sorts(dim: int, sharding: str, *, is_wrong: bool) -> None:
    """A sort of shards along a dimension that is counted from the end is an error."""
    text = f"""
func.func @main(%x: tensor<8x8xf32> {annotated(sharding)}) -> tensor<8x8xf32> {{
  %0 = "stablehlo.sort"(%x) <{{dimension = {dim} : i64}}> ({{
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %1 = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }}) {{{per_value(sharding)}}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}"""
    assert codes(faults(text)) == CERTAIN * is_wrong


@pytest.mark.parametrize(("size", "fails"), [(8, False), (7, True)])
def test_uneven_partial_results(size: int, fails: bool) -> None:
    """A value that is unreduced and sharded unevenly ends XLA's process."""
    actual = faults(f"""
func.func @main(%x: tensor<{size}x8xf32> {annotated(SUMMED)}) -> tensor<{size}xf32> {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
      {{{per_value('[{"b"}], unreduced={"a"}')}}} : (tensor<{size}x8xf32>, tensor<f32>) -> tensor<{size}xf32>
  return %0 : tensor<{size}xf32>
}}""")
    assert codes(actual)[:1] == [("xla-fails", "error")] * fails


def convolution(left: str, kernel: str, result: str, *, groups: int = 1, batch: int = 4) -> str:
    """Return a convolution over one spatial dimension."""
    count = batch // groups
    return f"""
func.func @main(%x: tensor<{batch}x8x8xf32> {annotated(left)}, %k: tensor<4x8x8xf32> {annotated(kernel)})
    -> tensor<{count}x5x8xf32> {{
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{}}
      {{batch_group_count = {groups} : i64, feature_group_count = 1 : i64, {per_value(result)}}}
      : (tensor<{batch}x8x8xf32>, tensor<4x8x8xf32>) -> tensor<{count}x5x8xf32>
  return %0 : tensor<{count}x5x8xf32>
}}"""


@pytest.mark.parametrize(
    ("left", "kernel", "result", "groups", "is_wrong"),
    [
        ('[{}, {"b"}, {}]', '[{"b"}, {}, {}]', "[{}, {}, {}]", 1, True),
        ('[{}, {"b"}, {}]', "[{}, {}, {}]", '[{}, {"b"}, {}]', 1, False),
        ('[{"a"}, {}, {}]', '[{}, {}, {"b"}]', '[{"a"}, {}, {"b"}]', 1, False),
        ('[{}, {}, {"a"}]', '[{}, {"a"}, {}]', "[{}, {}, {}]", 4, True),
        ('[{}, {}, {"a", "b", "c"}]', '[{}, {"a", "b", "c"}, {}]', "[{}, {}, {}]", 4, False),
        ("[{}, {}, {}]", "[{}, {}, {}]", '[{"a"}, {}, {}]', 4, True),
        ("[{}, {}, {}]", '[{}, {}, {"b"}]', '[{}, {}, {"b"}]', 4, False),
    ],
)
def test_convolutions(left: str, kernel: str, result: str, groups: int, *, is_wrong: bool) -> None:
    """Sums that count parts of several devices again are errors; the same ops with other shardings are not."""
    assert codes(faults(convolution(left, kernel, result, groups=groups, batch=8))) == CERTAIN * is_wrong


@pytest.mark.parametrize(("low", "is_wrong"), [(-1, True), (1, False), (-2, False)])
def test_spread_elements(low: int, is_wrong: bool) -> None:
    """Elements that are spread along a sharded dimension, with padding that cuts within a step, are an error."""
    size = 15 + 2 + low - 2
    actual = faults(f"""
func.func @main(%x: tensor<4x8x2xf32> {annotated('[{}, {"a"}, {}]')}, %k: tensor<3x2x2xf32>)
    -> tensor<4x{size}x2xf32> {{
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {{pad = [[{low}, 2]], lhs_dilate = [2]}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64, {per_value("[{}, {}, {}]")}}}
      : (tensor<4x8x2xf32>, tensor<3x2x2xf32>) -> tensor<4x{size}x2xf32>
  return %0 : tensor<4x{size}x2xf32>
}}""")
    assert codes(actual) == CERTAIN * is_wrong


FAILING = {
    "gather": (
        '%0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],'
        " collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>,"
        " slice_sizes = array<i64: 1, 4>}> : (tensor<8x8xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>",
        [("xla-fails", "error")],
    ),
    "set_dimension_size": (
        '%n = stablehlo.constant dense<5> : tensor<i32>\n%0 = "stablehlo.set_dimension_size"(%x, %n)'
        " {dimension = 0 : i64} : (tensor<8x8xf32>, tensor<i32>) -> tensor<8x8xf32>",
        [("xla-fails", "error")],
    ),
    "fft": (
        "%c = stablehlo.convert %x : (tensor<8x8xf32>) -> tensor<8x8xcomplex<f32>>\n"
        "%0 = stablehlo.fft %c, type = FFT, length = [8] : (tensor<8x8xcomplex<f32>>) -> tensor<8x8xcomplex<f32>>",
        [("xla-may-fail", "warning")],
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_ops_that_fail(name: str) -> None:
    """Ops that XLA refuses, or may refuse, are found where they are sharded; one device meets no fault."""
    body, expected = FAILING[name]
    result = body.rpartition("-> ")[2]
    text = f"""
func.func @main(%x: tensor<8x8xf32> {annotated(ROWS)}, %i: tensor<8x2xi32> {annotated(COLUMNS)}) -> {result} {{
  {body}
  return %0 : {result}
}}"""
    assert codes(faults(text)) == expected
    diagnostics: list[Diagnostic] = []
    sdy.propagate('sdy.mesh @mesh = <["a"=1, "b"=1, "c"=1]>\n' + text).for_xla(warnings=diagnostics)
    assert diagnostics == []


WINDOWS = """
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                %y: tensor<8x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{AXIS}, {}]>})
    -> (tensor<8x7xf32>, tensor<8x7xi32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "stablehlo.reduce_window"(%x, %y, %z, %n) <{window_dimensions = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %1 = stablehlo.add %a, %c : tensor<f32>
    %2 = stablehlo.maximum %b, %d : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>, <@mesh, [{AXIS}, {}]>]>}
      : (tensor<8x8xf32>, tensor<8x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<8x7xf32>, tensor<8x7xi32>)
  return %0#0, %0#1 : tensor<8x7xf32>, tensor<8x7xi32>
}"""


def test_windows_over_several_tensors() -> None:
    """XLA refuses windows over tensors whose shardings differ."""
    result = sdy.propagate(MESH + WINDOWS.replace("AXIS", '"c"'))
    differing: list[Diagnostic] = []
    result.for_xla(warnings=differing)
    assert codes(differing) == [("xla-fails", "error")]
    assert faults(WINDOWS.replace("AXIS", '"a"')) == []


def test_values_left_open() -> None:
    """What XLA may shard itself is a warning."""
    body, _ = FAILING["gather"]
    text = f"""
func.func @main(%x: tensor<8x8xf32> {annotated(WHOLE)}, %i: tensor<8x2xi32>) -> tensor<8x4xf32> {{
  {body}
  return %0 : tensor<8x4xf32>
}}"""
    assert faults(text) == []
    assert codes(faults(text, leave_open=True)) == [("xla-may-fail", "warning")]


REFUSED = f"""
func.func @main(%x: tensor<8x8xf32> {annotated(SUMMED)}, %y: tensor<8x8xf32> {annotated(ROWS)}) -> tensor<8x8xf32> {{
  %0 = {PRODUCT} {{{per_value('[{"a"}, {"c", "b"}]')}}} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}"""


def test_wrong_numbers_are_refused_before_they_are_computed() -> None:
    """The form is written with a warning; compiling it to run is an error, and to measure it is not."""
    result = sdy.propagate(MESH + REFUSED)
    with pytest.warns(UserWarning, match=r"warning: 'stablehlo.dot_general' op: .* \[xla-wrong-numbers\]"):
        result.for_xla()
    with pytest.raises(UnsupportedError, match="a local program needs no partitioner") as caught:
        result.to_jax(partitioner="xla")
    assert caught.value.diagnostics[0].op == "stablehlo.dot_general"


def test_only_the_partitioner_of_xla_takes_warnings() -> None:
    """Warnings are of XLA's partitioner."""
    with pytest.raises(sdy.OptionError, match="warnings is an option of XLA's partitioner"):
        sdy.propagate(MESH + REFUSED).to_jax(warnings=[])

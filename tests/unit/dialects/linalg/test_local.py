"""Programs of linalg on virtual devices: loops over shards give the shards of what loops over whole tensors give."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("xdsl")
np = pytest.importorskip("numpy")

import shardy_py as sdy  # noqa: E402
from shardy_py.errors import UnsupportedError  # noqa: E402
from shardy_py.frontends.xdsl import parse_module  # noqa: E402
from shardy_py.testing import assert_runs_sharded, make_op, run_sharded  # noqa: E402
from tests.unit.dialects.linalg import test_bodies as bodies  # noqa: E402
from tests.unit.dialects.linalg import test_control_flow as control_flow  # noqa: E402
from tests.unit.dialects.linalg.array_functions import FUNCTIONS  # noqa: E402
from tests.unit.dialects.linalg.test_linalg import REGISTRY, TEXT  # noqa: E402
from tests.unit.dialects.linalg.test_numeric import convolution  # noqa: E402

MESH = {"a": 2, "b": 2}
LAYER = """builtin.module {
  func.func @main(%x: tensor<NxKxf32>, %w: tensor<KxMxf32>, %b: tensor<MxNxf32>) -> (tensor<Nxf32>, tensor<Nxf32>) {
    %zero = arith.constant 0.0 : f32
    %low = arith.constant -3.0e38 : f32
    %e = tensor.empty() : tensor<NxMxf32>
    %v = tensor.empty() : tensor<Nxf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<NxMxf32>) -> tensor<NxMxf32>
    %d = linalg.matmul ins(%x, %w : tensor<NxKxf32>, tensor<KxMxf32>) outs(%i : tensor<NxMxf32>) -> tensor<NxMxf32>
    %t = linalg.transpose ins(%b : tensor<MxNxf32>) outs(%e : tensor<NxMxf32>) permutation = [1, 0]
    %s = arith.addf %d, %t : tensor<NxMxf32>
    %z = linalg.fill ins(%zero : f32) outs(%v : tensor<Nxf32>) -> tensor<Nxf32>
    %l = linalg.fill ins(%low : f32) outs(%v : tensor<Nxf32>) -> tensor<Nxf32>
    %squares = linalg.generic {
        indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
        iterator_types = ["parallel", "reduction"]
      } ins(%s : tensor<NxMxf32>) outs(%z : tensor<Nxf32>) {
    ^bb0(%in: f32, %out: f32):
      %square = arith.mulf %in, %in : f32
      %sum = arith.addf %out, %square : f32
      linalg.yield %sum : f32
    } -> tensor<Nxf32>
    %largest = linalg.reduce ins(%s : tensor<NxMxf32>) outs(%l : tensor<Nxf32>) dimensions = [1]
      (%one: f32, %other: f32) {
        %more = arith.maximumf %one, %other : f32
        linalg.yield %more : f32
      }
    func.return %squares, %largest : tensor<Nxf32>, tensor<Nxf32>
  }
}"""


def sharded(text: str, in_shardings: Any, mesh: Any = None, **settings: Any) -> Any:
    """Run a program on virtual devices, and assert that nothing differs."""
    module = parse_module(text)
    return assert_runs_sharded(
        module, FUNCTIONS, mesh or MESH, in_shardings=in_shardings, registry=REGISTRY, rtol=1e-4, **settings
    )


def layer(rows: int, inner: int, columns: int) -> str:
    """Return a program of a matrix product and two reductions, with some sizes."""
    return LAYER.replace("NxK", f"{rows}x{inner}").replace("KxM", f"{inner}x{columns}").replace(
        "NxM", f"{rows}x{columns}"
    ).replace("MxN", f"{columns}x{rows}").replace("tensor<Nx", f"tensor<{rows}x")  # fmt: skip


@pytest.mark.parametrize("sizes", [(8, 4, 8), (7, 5, 9), (3, 7, 5)])
@pytest.mark.parametrize(
    "arguments",
    [
        {0: ("a", None), 1: (None, "b")},
        {0: (None, "a"), 1: ("a", "b")},
        {1: (None, ("a", "b"))},
        {2: ("b", "a")},
    ],
)  # fmt: skip
def test_a_layer_runs_on_shards(arguments: Any, sizes: tuple[int, int, int]) -> None:
    """Fills, products, transposes and reductions run on shards without gathering, also where these are padded."""
    run = sharded(layer(*sizes), arguments, strict=True)
    assert "all_reduce" in run.collectives


@pytest.mark.parametrize("mesh", [{"x": 2, "y": 4}, {"x": 3, "y": 2}])
def test_the_program_without_stablehlo_runs_on_shards(mesh: Any) -> None:
    """The program of named and generic ops gives on shards what it gives on whole tensors."""
    run = sharded(TEXT, {0: ("x", None), 1: (None, "y")}, mesh, strict=True)
    assert run.gathered == ()


def reduction(body: str, init: str, columns: int) -> str:
    """Return a program of one generic op on what another op makes: arguments themselves must divide."""
    text = bodies.program(body, init=init, captured=f"%xs = math.sin %x : {bodies.X}")
    return text.replace("ins(%x", "ins(%xs").replace("8x6x", f"8x{columns}x")


@pytest.mark.parametrize(("op", "init"), [("addf", "%zeros"), ("maximumf", "%init"), ("minimumf", "%init")])
@pytest.mark.parametrize("columns", [6, 7])
def test_reductions_by_bodies(op: str, init: str, columns: int) -> None:
    """The body's combiner joins the results of shards, and padding holds its neutral value."""
    text = reduction(bodies.body(f"arith.{op}"), init, columns)
    run = sharded(text, {"arg0": (None, "a")}, strict=True)
    assert run.collectives.count("all_reduce") == 1


def test_an_initial_value_counts_once() -> None:
    """A sum into an output with values is right, though its value would count on each device."""
    run = sharded(bodies.program(bodies.body("arith.addf")), {"arg0": (None, "a"), "arg1": ("a",)})
    assert "all_reduce" not in run.collectives


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("%term = math.sin %in : f32", True),
        ("%term = arith.mulf %in, %in : f32", True),
        ("%term = math.exp %in : f32", False),
        ("%term = arith.subf %one, %in : f32", False),
    ],
)
def test_bodies_see_padding_only_where_it_stays_neutral(text: str, keeps: bool) -> None:
    """Sums of what is zero for zeros run on padded shards; others run on gathered operands, and are right as well."""
    body = f"{text} %r = arith.addf %term, %out0 : f32 linalg.yield %r : f32"
    even, uneven = (sharded(reduction(body, "%zeros", columns), {"arg0": (None, "a")}) for columns in (6, 7))
    assert even.gathered == ()
    assert uneven.gathered == (() if keeps else ("linalg.generic",))


def test_captured_tensors_and_iterations() -> None:
    """A body that reads the number of its iteration runs on all of them."""
    text = """%i = linalg.index 1 : index
      %n = arith.index_cast %i : index to i32
      %f = arith.sitofp %n : i32 to f32
      %s = arith.mulf %f, %in : f32
      %r = arith.addf %s, %out0 : f32
      linalg.yield %r : f32"""
    sharded(bodies.program(text, init="%zeros"), {"arg0": ("b", "a")}, strict=True)


@pytest.mark.parametrize(
    ("text", "shardings"),
    [
        (control_flow.FOR, {0: ("a", None), 1: (None, "b")}),
        (control_flow.FOR.replace("%a, %a", "%a, %b"), {0: ("a", None), 1: (None, "b")}),
        (control_flow.IF, {1: ("a", "b")}),
        (control_flow.WHILE, {0: ("a", "b")}),
    ],
)
@pytest.mark.parametrize("rows", [8, 7])
def test_control_flow(text: str, shardings: Any, rows: int) -> None:
    """Loops and branches run on every device with its shards."""
    text = text.replace("8x4x", f"{rows}x4x").replace("4x8x", f"4x{rows}x")
    arguments = {"scf.if": [np.array(True)], "scf.while": []}
    first = next((arrays for name, arrays in arguments.items() if name in text), [])
    x = np.arange(rows * 4, dtype="float32").reshape(rows, 4)
    rest = [x, np.array(0)] if "scf.while" in text else [x, x + 1]
    module = parse_module(text)
    assert_runs_sharded(module, FUNCTIONS, MESH, *first, *rest, in_shardings=shardings, registry=REGISTRY, strict=True)


def tensor_program(op: str, result: str) -> str:
    """Return a program of one op on a matrix, or two."""
    return f"""builtin.module {{
      func.func @main(%x: tensor<8x6xf32>, %y: tensor<8x6xf32>, %part: tensor<3x6xf32>) -> {result} {{
        %r = {op} : {result}
        %s = arith.addf %r, %r : {result}
        func.return %s : {result}
      }}
    }}"""


ROWS_AND_COLUMNS = {0: ("a", "b"), 1: ("a", "b")}
SLICE = '"tensor.{0}"({1}) <{{static_offsets = array<i64: {2}>, static_sizes = array<i64: {3}>, ' \
    "static_strides = array<i64: 1, 1>, operandSegmentSizes = array<i32: {4}>}}>"  # fmt: skip
PAD = """"tensor.pad"(%x) <{static_low = array<i64: 0, 1>, static_high = array<i64: 0, 2>,
  operandSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^bb0(%i: index, %j: index):
    %fill = arith.constant 2.0 : f32
    "tensor.yield"(%fill) : (f32) -> ()
  })"""
TENSOR_OPS = [
    (f"{SLICE.format('extract_slice', '%x', '0, 2', '8, 3', '1, 0, 0, 0')} : (tensor<8x6xf32>) ->", (8, 3)),
    (f"{SLICE.format('extract_slice', '%x', '3, 0', '1, 6', '1, 0, 0, 0')} : (tensor<8x6xf32>) ->", (6,)),
    (
        f"{SLICE.format('insert_slice', '%part, %x', '2, 0', '3, 6', '1, 1, 0, 0, 0')} "
        ": (tensor<3x6xf32>, tensor<8x6xf32>) ->",
        (8, 6),
    ),
    (f"{PAD} : (tensor<8x6xf32>) ->", (8, 9)),
    ('"tensor.concat"(%x, %y) <{dim = 1 : i64}> : (tensor<8x6xf32>, tensor<8x6xf32>) ->', (8, 12)),
    ('"tensor.collapse_shape"(%x) <{reassociation = [[0 : i64, 1 : i64]]}> : (tensor<8x6xf32>) ->', (48,)),
    (
        '"tensor.expand_shape"(%x) <{reassociation = [[0 : i64, 1 : i64], [2 : i64]], '
        "static_output_shape = array<i64: 4, 2, 6>}> : (tensor<8x6xf32>) ->",
        (4, 2, 6),
    ),
]  # fmt: skip
UNEVEN = [(*TENSOR_OPS[number], 7) for number in (1, 2, 3, 4)]
"""Ops without the number of rows in an attribute."""


@pytest.mark.parametrize(("op", "shape", "rows"), [*((*case, 8) for case in TENSOR_OPS), *UNEVEN])
def test_tensors_are_taken_apart(op: str, shape: tuple[int, ...], rows: int) -> None:
    """Slices, insertions, pads, joins and regrouped dimensions give the shards of what they give on whole tensors."""
    result = "x".join(map(str, shape))
    text = tensor_program(op.removesuffix("->") + f"-> tensor<{result}xf32>", f"tensor<{result}xf32>")
    text = text.replace(f" : tensor<{result}xf32>\n        %s", "\n        %s")
    if rows != 8:
        text = text.replace("<8x", f"<{rows}x")
    sharded(text, ROWS_AND_COLUMNS)


def test_sizes_are_those_of_whole_tensors() -> None:
    """The size of a sharded dimension is that of the whole tensor, and constants have the parts of their values."""
    text = """builtin.module {
      func.func @main(%x: tensor<8x3xf32>) -> (index, tensor<8x3xf32>, tensor<8xi32>) {
        %zero = arith.constant 0 : index
        %size = tensor.dim %x, %zero : tensor<8x3xf32>
        %c = arith.constant dense<1.5> : tensor<8x3xf32>
        %s = arith.addf %x, %c : tensor<8x3xf32>
        %n = arith.constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi32>
        func.return %size, %s, %n : index, tensor<8x3xf32>, tensor<8xi32>
      }
    }"""
    functions = FUNCTIONS | {"tensor.dim": lambda x, number: np.asarray(x.shape[int(number)])}
    module = parse_module(text)
    run = assert_runs_sharded(
        module, functions, MESH, in_shardings={0: (("a", "b"), None)}, registry=REGISTRY, strict=True
    )
    assert int(run.found[0]) == 8


def test_a_wrong_body_is_found() -> None:
    """A program whose devices combine otherwise than its body is reported at the collective or the op."""
    text = bodies.program(bodies.body("arith.addf"), init="%zeros")
    functions = FUNCTIONS | {"linalg.generic": lambda x, out: x.max(1)}
    run = run_sharded(parse_module(text), functions, MESH, in_shardings={"arg0": (None, "a")}, registry=REGISTRY)
    assert run.difference


CONVOLUTION = """builtin.module {
  func.func @main(%x0: tensor<Nx6x6xCxf32>, %k0: tensor<3x3xCxFxf32>) -> tensor<Nx4x4xFxf32> {
    %x = math.sin %x0 : tensor<Nx6x6xCxf32>
    %k = math.sin %k0 : tensor<3x3xCxFxf32>
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<Nx4x4xFxf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<Nx4x4xFxf32>) -> tensor<Nx4x4xFxf32>
    %r = "linalg.conv_2d_nhwc_hwcf"(%x, %k, %i) <{operandSegmentSizes = array<i32: 2, 1>,
        strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}> ({
      ^bb0(%a: f32, %b: f32, %c: f32):
        %m = arith.mulf %a, %b : f32
        %s = arith.addf %c, %m : f32
        linalg.yield %s : f32
    }) : (tensor<Nx6x6xCxf32>, tensor<3x3xCxFxf32>, tensor<Nx4x4xFxf32>) -> tensor<Nx4x4xFxf32>
    func.return %r : tensor<Nx4x4xFxf32>
  }
}"""


@pytest.mark.parametrize("sizes", [(4, 4, 4), (3, 5, 7)])
@pytest.mark.parametrize(
    ("shardings", "moves"),
    [
        ({0: ("b", None, None, "a"), 1: (None, None, "a", None)}, False),
        ({1: (None, None, None, ("a", "b"))}, False),
        ({0: (None, "a", None, None)}, True),
        ({0: (None, ("b", "a"), None, "c")}, True),
        ({0: ("c", "a", "b", None)}, True),
    ],
)
def test_convolutions(shardings: Any, moves: bool, sizes: tuple[int, int, int]) -> None:
    """Batch, channels and filters run on shards, padded or not; along space neighbours exchange what windows share."""
    text = CONVOLUTION
    for letter, size in zip("NCF", sizes, strict=True):
        text = text.replace(f"{letter}x", f"{size}x")
    convolve = convolution("conv_2d_nhwc_hwcf", False, 1)
    functions = FUNCTIONS | {"linalg.conv_2d_nhwc_hwcf": lambda x, k, out: (convolve(x, k, out) + out).astype(x.dtype)}
    module = parse_module(text)
    mesh = MESH | {"c": 2}
    run = assert_runs_sharded(
        module, functions, mesh, in_shardings=shardings, registry=REGISTRY, strict=True, rtol=1e-4
    )
    assert run.collectives.count("windows") == moves * sum(axes is not None for axes in shardings.get(0, ())[1:3])


WINDOWS = """builtin.module {
  func.func @main(%x0: tensor<20x2xf32>, %k: tensor<3xf32>, %o0: tensor<2xNxf32>) -> tensor<2xNxf32> {
    %x = math.sin %x0 : tensor<20x2xf32>
    %o = math.sin %o0 : tensor<2xNxf32>
    %r = linalg.generic {
        indexing_maps = [affine_map<(d0, d1, d2) -> (INDEX, d0)>, affine_map<(d0, d1, d2) -> (d2)>,
                         affine_map<(d0, d1, d2) -> (d0, d1)>],
        iterator_types = ["parallel", "parallel", "reduction"]
      } ins(%x, %k : tensor<20x2xf32>, tensor<3xf32>) outs(%o : tensor<2xNxf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %m = arith.mulf %a, %b : f32
      %sum = arith.addf %out, %m : f32
      linalg.yield %sum : f32
    } -> tensor<2xNxf32>
    func.return %r : tensor<2xNxf32>
  }
}"""


@pytest.mark.parametrize(
    ("index", "size"),
    [("d1 + d2", 18), ("d1 * 2 + d2 * 3 + 1", 7), ("d1 * 3 + d2", 6), ("d2 - d1 + 9", 10), ("d1 + d2 * 8 + 2", 2)],
)
@pytest.mark.parametrize("parts", [2, 3, 4])
def test_windows_of_any_index(index: str, size: int, parts: int) -> None:
    """Windows with steps, gaps and shifts, forward and backward, read on each device what they read of the whole."""
    text = WINDOWS.replace("INDEX", index).replace("xNx", f"x{size}x")
    sharded(text, {0: ("a", None), 2: (None, "a")}, {"a": parts}, strict=True)


def test_a_sharded_window_is_gathered() -> None:
    """Where the elements of the window themselves are sharded, the op runs on whole tensors, and is right."""
    text = WINDOWS.replace("INDEX", "d1 + d2").replace("xNx", "x18x")
    sharded(text, {0: ("a", None), 1: ("b",), 2: (None, "a")}, {"a": 2, "b": 3})


@pytest.mark.parametrize(
    ("offset", "size", "step"), [(0, 12, 1), (3, 10, 1), (5, 4, 2), (1, 6, 2), (9, 1, 1), (2, 3, 4)]
)
@pytest.mark.parametrize("parts", [2, 3, 4])
def test_slices_of_sharded_dimensions(offset: int, size: int, step: int, parts: int) -> None:
    """A slice that begins anywhere, with any step, sends its elements to the devices that have them in the result."""
    op = SLICE.format("extract_slice", "%x", f"0, {offset}", f"7, {size}", "1, 0, 0, 0")
    op = op.replace("i64: 1, 1", f"i64: 1, {step}")
    result = f"tensor<7x{size}xf32>"
    text = tensor_program(f"{op} : (tensor<8x6xf32>) -> {result}", result).replace("8x6x", "7x13x")
    text = text.replace(f"-> {result} : {result}", f"-> {result}")
    sharded(text, {0: ("b", "a")}, {"a": parts, "b": 2}, strict=True)


def test_what_mlir_does_not_read_is_no_native_local_program() -> None:
    """The error of a local program that jaxlib's MLIR cannot write names the way to run it."""
    pytest.importorskip("jaxlib")
    result = sdy.propagate(parse_module(TEXT), registry=REGISTRY, explicit_collectives=True)
    with pytest.raises(UnsupportedError, match=r"linalg(.|\n)*run_sharded"):
        result.local()


def test_a_generated_tensor_is_cut_where_its_body_does_not_count() -> None:
    """A body that reads rows is computed with all rows, and only for the columns of the device."""
    builder = sdy.Builder(mesh=MESH)
    index, type_ = sdy.tensor(dtype="index"), sdy.tensor(8, 6, dtype="i32")
    with builder.function("main", [type_]) as (x,):
        with (
            builder.region_op("tensor.generate", [], [type_]) as generated,
            builder.region(generated, [index, index]) as (row, _),
        ):
            cast = builder.op("arith.index_cast", [row], [sdy.tensor(dtype="i32")])
            builder.emit("tensor.yield", [cast])
        builder.return_(builder.op("arith.addi", [x, *generated.results], [type_]))

    def generate(op: Any, regions: Any) -> Any:
        rows, columns = op.result.shape
        return np.array([[regions[0](np.asarray(row), np.asarray(0))] * columns for row in range(rows)])

    functions = FUNCTIONS | {"tensor.generate": generate, "arith.index_cast": lambda x: x, "arith.addi": np.add}
    run = assert_runs_sharded(
        builder.build(), functions, in_shardings={0: ("a", "b")}, registry=REGISTRY, optimize=True
    )
    assert run.collectives == ()
    assert (run.results[0] - run.results[0][0]).any()


WINOGRAD = [
    ("filter", [(4, 3, 3, 6), (6, 6, 6, 4)], "<([i, j, k, l], [m, n, l, i])->([m, n, l, i])"),
    ("input", [(2, 10, 10, 5), (6, 6, 2, 2, 2, 5)], "<([i, j, k, l], [m, n, o, p, i, l])->([m, n, o, p, i, l])"),
    ("output", [(6, 6, 2, 2, 2, 4), (2, 8, 8, 4)], "<([i, j, k, l, m, n], [m, o, p, n])->([m, o, p, n])"),
]


@pytest.mark.parametrize(("name", "shapes", "expected"), WINOGRAD)
def test_transforms_of_winograd_keep_images_and_channels(name: str, shapes: Any, expected: str) -> None:
    """Filters, images and channels pass through; windows and tiles are needed whole."""
    op = make_op(f"linalg.winograd_{name}_transform", shapes, shapes[1:])
    rule = REGISTRY.get_sharding_rule(op)
    assert str(rule).startswith(expected)
    assert sum(map(rule.is_pass_through, range(len(rule.factor_sizes)))) == 2

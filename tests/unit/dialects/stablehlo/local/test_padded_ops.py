"""Ops of all kinds on dimensions that do not divide: what each device runs gives what one device gives."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="programs run through XLA")

from tests.unit.local.host_devices import compare_padded

pytestmark = pytest.mark.slow
MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\n'
A, SCALAR = "tensor<7x10xf32>", "tensor<f32>"
CONSTANTS = """%half = stablehlo.constant dense<0.5> : tensor<f32>
%zero = stablehlo.constant dense<0.0> : tensor<f32>
%low = stablehlo.constant dense<0xFF800000> : tensor<f32>
%far = stablehlo.constant dense<9> : tensor<i32>
%near = stablehlo.constant dense<0> : tensor<i32>
%places = stablehlo.constant dense<[[6], [0], [9], [3], [-2]]> : tensor<5x1xi32>
%spread = stablehlo.constant dense<2.0> : tensor<10xf32>"""


def region(op: str) -> str:
    """Return a region that combines two numbers."""
    return (
        f"({{ ^bb0(%p: {SCALAR}, %q: {SCALAR}): %s = stablehlo.{op} %p, %q : {SCALAR} "
        f"stablehlo.return %s : {SCALAR} }})"
    )


def windows(initial: str, op: str, sizes: str, rest: str, result: str) -> str:
    """Return a reduction over windows."""
    return (
        f'"stablehlo.reduce_window"($0, {initial}) <{{window_dimensions = array<i64: {sizes}>, {rest}}}> '
        f"{region(op)} : ({A}, {SCALAR}) -> tensor<{result}xf32>"
    )


MOVING = {
    "transpose": (("7x10",), f"stablehlo.transpose $0, dims = [1, 0] : ({A}) -> tensor<10x7xf32>"),
    "reshape": (("7x10",), f"stablehlo.reshape $0 : ({A}) -> tensor<7x1x10xf32>"),
    "flatten": (("7x10",), f"stablehlo.reshape $0 : ({A}) -> tensor<70xf32>"),
    "split": (("7x10",), f"stablehlo.reshape $0 : ({A}) -> tensor<7x5x2xf32>"),
    "concatenate": (
        ("7x10", "3x10"),
        f"stablehlo.concatenate $0, $1, dim = 0 : ({A}, tensor<3x10xf32>) -> tensor<10x10xf32>",
    ),
    "pad": (
        ("7x10",),
        f"stablehlo.pad $0, %half, low = [1, -1], high = [2, 3], interior = [0, 0]"
        f" : ({A}, {SCALAR}) -> tensor<10x12xf32>",
    ),
    "interior": (
        ("7x10",),
        f"stablehlo.pad $0, %half, low = [0, 1], high = [1, 0], interior = [1, 0]"
        f" : ({A}, {SCALAR}) -> tensor<14x11xf32>",
    ),
    "slice": (("7x10",), f"stablehlo.slice $0 [1:6, 0:10:3] : ({A}) -> tensor<5x4xf32>"),
    "reverse": (("7x10",), f"stablehlo.reverse $0, dims = [0, 1] : {A}"),
}
INDEXED = {
    "dynamic_slice": (
        ("7x10",),
        f"stablehlo.dynamic_slice $0, %far, %far, sizes = [3, 10]"
        f" : ({A}, tensor<i32>, tensor<i32>) -> tensor<3x10xf32>",
    ),
    "dynamic_update_slice": (
        ("7x10", "3x10"),
        f"stablehlo.dynamic_update_slice $0, $1, %far, %near"
        f" : ({A}, tensor<3x10xf32>, tensor<i32>, tensor<i32>) -> {A}",
    ),
    "gather": (
        ("7x10",),
        '"stablehlo.gather"($0, %places) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], '
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, "
        f"slice_sizes = array<i64: 1, 10>}}> : ({A}, tensor<5x1xi32>) -> tensor<5x10xf32>",
    ),
    "scatter": (
        ("7x10", "5x10"),
        '"stablehlo.scatter"($0, %places, $1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = '
        "[1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> "
        f"{region('add')} : ({A}, tensor<5x1xi32>, tensor<5x10xf32>) -> {A}",
    ),
}
WINDOWED = {
    "largest": (
        ("7x10",),
        windows(
            "%low",
            "maximum",
            "3, 2",
            "window_strides = array<i64: 1, 2>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>",
            "7x5",
        ),
    ),
    "sums": (("7x10",), windows("%zero", "add", "7, 1", "padding = dense<[[6, 0], [0, 0]]> : tensor<2x2xi64>", "7x10")),
    "sums_from_half": (
        ("7x10",),
        windows("%half", "add", "7, 1", "padding = dense<[[6, 0], [0, 0]]> : tensor<2x2xi64>", "7x10"),
    ),
    "batch_norm": (
        ("7x10", "10"),
        f'"stablehlo.batch_norm_inference"($0, $1, $1, $1, %spread) <{{epsilon = 0.1 : f32, feature_index = 1 : i64}}>'
        f" : ({A}, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>) -> {A}",
    ),
}
DEEP = {
    "convolution": (
        ("2x9x3", "3x3x5"),
        "stablehlo.convolution($0, $1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
        " : (tensor<2x9x3xf32>, tensor<3x3x5xf32>) -> tensor<2x9x5xf32>",
    ),
    "batched_dot": (
        ("3x7x10", "3x10x5"),
        "stablehlo.dot_general $0, $1, batching_dims = [0] x [0], contracting_dims = [2] x [1]"
        " : (tensor<3x7x10xf32>, tensor<3x10x5xf32>) -> tensor<3x7x5xf32>",
    ),
}


@pytest.mark.parametrize("ops", [MOVING, INDEXED, WINDOWED], ids=["moving", "indexed", "windowed"])
@pytest.mark.parametrize("axes", [("x", "y"), ("y", "x"), ("y", ""), ("", "x")])
def test_ops_of_two_dimensions(ops: dict[str, tuple[tuple[str, ...], str]], axes: tuple[str, ...]) -> None:
    """No op lets padding into its results, along one sharded dimension or two."""
    check(ops, axes)


@pytest.mark.parametrize("axes", [("x", "y", ""), ("", "x", "y"), ("", "y", "x"), ("y", "", "x")])
def test_ops_of_three_dimensions(axes: tuple[str, ...]) -> None:
    """The same for products and convolutions, whose operands have other dimensions than their results."""
    check(DEEP, axes)


def check(ops: dict[str, tuple[tuple[str, ...], str]], axes: tuple[str, ...]) -> None:
    """Compare one program of all ops, whose operands are sharded alike, on eight devices and on one."""
    arguments, arrays, body, returned, results = [], [], [CONSTANTS], [], []
    for number, (shapes, text) in enumerate(ops.values()):
        for place, shape in enumerate(shapes):
            sizes = [int(size) for size in shape.split("x")]
            dims = ", ".join(f'{{"{axis}"}}' if axis else "{}" for axis in axes[: len(sizes)])
            name = f"%a{number}_{place}"
            arguments.append(f"{name}: tensor<{shape}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}")
            arrays.append(np.random.default_rng(len(arrays)).normal(size=sizes).astype(np.float32))
            text = text.replace(f"${place}", name)
        body.append(f"%r{number} = {text}")
        returned.append(f"%r{number}")
        results.append(text.rpartition("-> " if "-> " in text.rpartition(" : ")[2] else " : ")[2])
    types = ", ".join(results)
    body.append(f"return {', '.join(returned)} : {types}")
    inner = "\n".join(body)
    compare_padded(f"{MESH}func.func @main({', '.join(arguments)}) -> ({types}) {{\n{inner}\n}}", *arrays)

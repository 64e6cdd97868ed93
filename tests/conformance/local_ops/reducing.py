"""Ops that combine elements: reductions, windows, sorts, scans."""

from __future__ import annotations

from tests.conformance.local_ops.case import Case


def body(op: str, element: str = "f32") -> str:
    """Return a region that combines two elements."""
    type_ = f"tensor<{element}>"
    return f"""{{
  ^bb0(%x: {type_}, %y: {type_}):
    %s = stablehlo.{op} %x, %y : {type_}
    stablehlo.return %s : {type_}
}}"""


ARGMAX = """{
  ^bb0(%x: tensor<f32>, %i: tensor<i32>, %y: tensor<f32>, %j: tensor<i32>):
    %g = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %e = stablehlo.compare EQ, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %l = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %h = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %t = stablehlo.and %e, %l : tensor<i1>
    %p = stablehlo.or %h, %t : tensor<i1>
    %v = stablehlo.select %g, %x, %y : tensor<i1>, tensor<f32>
    %w = stablehlo.select %p, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<f32>, tensor<i32>
}"""
LESS = """{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %s : tensor<i1>
}"""
LESS_PAIRS = """{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %s = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %s : tensor<i1>
}"""
GREATER_EQUAL = LESS.replace("LT", "GE")
REDUCE = "stablehlo.reduce"
COMBINERS = (("add", "f32"), ("multiply", "f32"), ("maximum", "f32"), ("minimum", "i32"), ("and", "i1"), ("or", "i32"))


def over(dims: str) -> str:
    """Return the dimensions of a reduction."""
    return f"dimensions = array<i64: {dims}>"


def windows(sizes: str, strides: str, padding: str, base: str = "1, 1", dilations: str = "1, 1") -> str:
    """Return the attributes of a reduction by windows."""
    return (
        f"window_dimensions = array<i64: {sizes}>, window_strides = array<i64: {strides}>,"
        f" base_dilations = array<i64: {base}>, window_dilations = array<i64: {dilations}>,"
        f" padding = dense<{padding}> : tensor<2x2xi64>"
    )


def normalized(name: str, operands: int, results: list[str]) -> Case:
    """Return a batch normalization."""
    operand_types = ["3x9x15xf32", *["9xf32"] * (operands - 1)]
    if name == "batch_norm_grad":
        operand_types[-1] = "3x9x15xf32"
    attributes = "epsilon = 0.001 : f32, feature_index = 1 : i64"
    return Case(f"stablehlo.{name}", operand_types, results, attributes)


CASES = [
    *(
        Case(
            REDUCE,
            [f"9x15x3x{kind}", kind],
            [f"15x{kind}"],
            over("0, 2"),
            body(op, kind),
            high=1 if kind == "i1" else 5,
        )
        for op, kind in COMBINERS
    ),
    Case(REDUCE, ["9x15xf32", "f32"], ["f32"], over("0, 1"), body("add")),
    Case(
        REDUCE,
        ["9x15xf32", "9x15xi32", "f32", "i32"],
        ["9xf32", "9xi32"],
        over("1"),
        ARGMAX,
        constants={2: "0xFF800000", 3: "0"},
        high=9,
    ),
    Case(
        "stablehlo.reduce_window",
        ["9x15xf32", "f32"],
        ["9x7xf32"],
        windows("1, 3", "1, 2", "[[0, 0], [0, 0]]"),
        body("add"),
        constants={1: "0.0"},
    ),
    Case(
        "stablehlo.reduce_window",
        ["9x15xf32", "f32"],
        ["9x15xf32"],
        windows("3, 2", "1, 1", "[[1, 1], [1, 0]]"),
        body("maximum"),
        constants={1: "0xFF800000"},
    ),
    Case(
        "stablehlo.reduce_window",
        ["9x15xf32", "f32"],
        ["9x15xf32"],
        windows("1, 15", "1, 1", "[[0, 0], [14, 0]]"),
        body("add"),
        constants={1: "0.0"},
    ),
    Case(
        "stablehlo.reduce_window",
        ["9x9xf32", "f32"],
        ["9x15xf32"],
        windows("1, 2", "1, 1", "[[0, 0], [0, 0]]", "1, 2", "1, 2"),
        body("add"),
        constants={1: "0.0"},
    ),
    Case(
        "stablehlo.reduce_window",
        ["9x9xf32", "f32"],
        ["9x17xf32"],
        windows("1, 1", "1, 1", "[[0, 0], [0, 0]]", "1, 2"),
        body("add"),
        constants={1: "0.0"},
    ),
    Case(
        "stablehlo.select_and_scatter",
        ["9x15xf32", "9x5xf32", "f32"],
        ["9x15xf32"],
        "window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 3>, padding = dense<0> : tensor<2x2xi64>",
        f"{GREATER_EQUAL}, {body('add')}",
        constants={2: "0.0"},
    ),
    Case(
        "stablehlo.select_and_scatter",
        ["9x15xf32", "5x8xf32", "f32"],
        ["9x15xf32"],
        "window_dimensions = array<i64: 3, 3>, window_strides = array<i64: 2, 2>, padding = dense<1> : tensor<2x2xi64>",
        f"{GREATER_EQUAL}, {body('add')}",
        constants={2: "0.0"},
    ),
    Case("stablehlo.sort", ["9x15xf32"], ["9x15xf32"], "dimension = 1 : i64, is_stable = true", LESS),
    Case(
        "stablehlo.sort",
        ["9x15xf32", "9x15xi32"],
        ["9x15xf32", "9x15xi32"],
        "dimension = 0 : i64, is_stable = true",
        LESS_PAIRS,
        high=9,
    ),
    normalized("batch_norm_training", 3, ["3x9x15xf32", "9xf32", "9xf32"]),
    normalized("batch_norm_inference", 5, ["3x9x15xf32"]),
    normalized("batch_norm_grad", 5, ["3x9x15xf32", "9xf32", "9xf32"]),
]

"""Ops that multiply and add."""

from __future__ import annotations

from tests.conformance.local_ops.case import Case

DOT = "dot_dimension_numbers = #stablehlo.dot<{}lhs_contracting_dimensions = [{}], rhs_contracting_dimensions = [{}]>"
BATCHED = "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "


def windows(padding: str, strides: str, dilations: str = "1, 1", base: str = "1, 1") -> str:
    """Return the windows of a convolution."""
    return (
        f"padding = dense<{padding}> : tensor<2x2xi64>, window_strides = array<i64: {strides}>,"
        f" rhs_dilation = array<i64: {dilations}>, lhs_dilation = array<i64: {base}>"
    )


def groups(features: int = 1, batches: int = 1) -> str:
    """Return the dimensions and the groups of a convolution."""
    return (
        f"dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>,"
        f" feature_group_count = {features} : i64, batch_group_count = {batches} : i64, "
    )


SAME = windows("[[1, 1], [1, 1]]", "1, 1")
CONVOLUTION = "stablehlo.convolution"
CASES = [
    Case("stablehlo.dot", ["9x15xf32", "15x3xf32"], ["9x3xf32"]),
    Case("stablehlo.dot", ["15xf32", "15xf32"], ["f32"]),
    Case("stablehlo.dot_general", ["9x15xf32", "15x3xf32"], ["9x3xf32"], DOT.format("", "1", "0")),
    Case("stablehlo.dot_general", ["3x9x15xf32", "3x6x15xf32"], ["3x9x6xf32"], DOT.format(BATCHED, "2", "2")),
    Case("stablehlo.dot_general", ["9x3x15xi32", "15x3xi32"], ["9xi32"], DOT.format("", "1, 2", "1, 0"), high=9),
    Case("stablehlo.einsum", ["9x15xf32", "15x3xf32"], ["9x3xf32"], 'einsum_config = "ij,jk->ik"'),
    Case("stablehlo.unary_einsum", ["9x15xf32"], ["9xf32"], 'einsum_config = "ij->i"'),
    Case(CONVOLUTION, ["3x9x9x6xf32", "6x9x3x3xf32"], ["3x6x9x6xf32"], groups() + SAME),
    Case(CONVOLUTION, ["3x9x9x6xf32", "6x3x3x3xf32"], ["3x6x9x6xf32"], groups(features=3) + SAME),
    Case(CONVOLUTION, ["6x9x9x6xf32", "6x9x3x3xf32"], ["2x6x9x6xf32"], groups(batches=3) + SAME),
    Case(
        CONVOLUTION,
        ["3x3x15x9xf32", "3x3x3x2xf32"],
        ["3x3x7x3xf32"],
        groups() + windows("[[0, 0], [1, 0]]", "2, 3", "1, 2"),
    ),
    Case(
        CONVOLUTION,
        ["3x3x9x6xf32", "3x3x3x3xf32"],
        ["3x3x17x9xf32"],
        groups() + windows("[[1, 1], [0, 0]]", "1, 1", base="2, 2"),
    ),
    Case(
        "stablehlo.dynamic_conv",
        ["3x9x9x6xf32", "6x9x3x3xf32", "2x2xi64"],
        ["3x6x9x6xf32"],
        groups() + "window_strides = array<i64: 1, 1>",
        constants={2: "1"},
    ),
]

"""Ops that put elements elsewhere."""

from __future__ import annotations

from tests.conformance.local_ops.case import Case


def bounds(start: str, limit: str, strides: str) -> str:
    """Return the bounds of a slice."""
    return f"start_indices = array<i64: {start}>, limit_indices = array<i64: {limit}>, strides = array<i64: {strides}>"


def padding(low: str, high: str, interior: str) -> str:
    """Return the padding of a pad."""
    return (
        f"edge_padding_low = array<i64: {low}>, edge_padding_high = array<i64: {high}>,"
        f" interior_padding = array<i64: {interior}>"
    )


def sizes(text: str) -> str:
    """Return the sizes of a dynamic slice."""
    return f"slice_sizes = array<i64: {text}>"


def spread(text: str) -> str:
    """Return the dimensions of a broadcast."""
    return f"broadcast_dimensions = array<i64: {text}>"


INDEX = {"low": 0, "high": 11}
PADS = ["9x15xf32", "f32"]
UPDATE = ["9x15xf32", "3x6xf32", "i32", "i32"]
CASES = [
    Case("stablehlo.broadcast", ["9x3xf32"], ["3x9x3xf32"], "broadcast_sizes = array<i64: 3>"),
    Case("stablehlo.broadcast_in_dim", ["9x3xf32"], ["3x15x9xf32"], spread("2, 0")),
    Case("stablehlo.broadcast_in_dim", ["9x1xf32"], ["9x15xf32"], spread("0, 1")),
    Case(
        "stablehlo.dynamic_broadcast_in_dim",
        ["9x3xf32", "3xi64"],
        ["3x15x9xf32"],
        spread("2, 0"),
        constants={1: "[3, 15, 9]"},
    ),
    *[
        Case(
            "stablehlo.dynamic_iota", ["2xi64"], ["9x15xf32"], f"iota_dimension = {dim} : i64", constants={0: "[9, 15]"}
        )
        for dim in (0, 1)
    ],
    Case("stablehlo.reshape", ["9x15xf32"], ["135xf32"]),
    Case("stablehlo.reshape", ["3x9x5xf32"], ["27x5xf32"]),
    Case("stablehlo.reshape", ["45x6xf32"], ["9x5x6xf32"]),
    Case("stablehlo.reshape", ["9x1x5xf32"], ["9x5xf32"]),
    Case("stablehlo.reshape", ["6x9xf32"], ["2x27xf32"]),
    Case("stablehlo.dynamic_reshape", ["3x9x5xf32", "2xi64"], ["27x5xf32"], constants={1: "[27, 5]"}),
    Case("stablehlo.transpose", ["9x15x3xf32"], ["3x9x15xf32"], "permutation = array<i64: 2, 0, 1>"),
    Case("stablehlo.reverse", ["9x15x3xf32"], ["9x15x3xf32"], "dimensions = array<i64: 0, 2>"),
    Case("stablehlo.concatenate", ["9x3xf32", "9x6xf32", "9x9xf32"], ["9x18xf32"], "dimension = 1 : i64"),
    Case("stablehlo.slice", ["9x15xf32"], ["9x7xf32"], bounds("0, 1", "9, 15", "1, 2")),
    Case("stablehlo.slice", ["9x15xf32"], ["6x9xf32"], bounds("3, 0", "9, 9", "1, 1")),
    Case(
        "stablehlo.real_dynamic_slice",
        ["9x15xf32", *["2xi64"] * 3],
        ["9x6xf32"],
        constants={1: "[0, 3]", 2: "[9, 9]", 3: "[1, 1]"},
    ),
    Case("stablehlo.pad", PADS, ["12x18xf32"], padding("1, 2", "2, 1", "0, 0")),
    Case("stablehlo.pad", PADS, ["16x12xf32"], padding("0, -1", "-1, -2", "1, 0")),
    Case(
        "stablehlo.dynamic_pad",
        [*PADS, *["2xi64"] * 3],
        ["12x18xf32"],
        constants={2: "[1, 2]", 3: "[2, 1]", 4: "[0, 0]"},
    ),
    Case("stablehlo.dynamic_slice", ["9x15xf32", "i32", "i32"], ["9x6xf32"], sizes("9, 6"), **INDEX),
    Case("stablehlo.dynamic_slice", ["9x15xf32", "i32", "i32"], ["3x1xf32"], sizes("3, 1"), **INDEX),
    Case(
        "stablehlo.dynamic_slice", ["9x15xf32", "i32", "i32"], ["6x5xf32"], sizes("6, 5"), constants={1: "2", 2: "40"}
    ),
    Case("stablehlo.dynamic_update_slice", UPDATE, ["9x15xf32"], **INDEX),
    Case("stablehlo.dynamic_update_slice", UPDATE, ["9x15xf32"], constants={2: "5", 3: "7"}),
    Case("stablehlo.set_dimension_size", ["9x15xf32", "i32"], ["9x15xf32"], "dimension = 1 : i64", constants={1: "15"}),
    Case("stablehlo.get_dimension_size", ["9x15xf32"], ["i32"], "dimension = 1 : i64"),
]

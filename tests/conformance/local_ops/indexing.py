"""Ops that look up and write elements by indices, and those of random numbers."""

from __future__ import annotations

from tests.conformance.local_ops.case import Case
from tests.conformance.local_ops.reducing import body

INDEX = {"low": -3, "high": 16}


def gathered(numbers: str, sizes: str) -> str:
    """Return the attributes of a gather."""
    return f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = array<i64: {sizes}>"


def scattered(numbers: str) -> str:
    """Return the attributes of a scatter."""
    return f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>"


GATHER, SCATTER = "stablehlo.gather", "stablehlo.scatter"
ROW = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
WINDOW = "offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1"
BATCHED = (
    "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0],"
    " start_index_map = [1], index_vector_dim = 2"
)
INTO_ROW = (
    "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
)
INTO_WINDOW = "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"
INTO_BATCHED = (
    "update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0],"
    " scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2"
)
ALGORITHM = "rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>"
CASES = [
    Case(GATHER, ["15x9xf32", "6xi32"], ["6x9xf32"], gathered(ROW, "1, 9"), **INDEX),
    Case(GATHER, ["15x9xf32", "6xi32"], ["6x3xf32"], gathered(ROW, "1, 3"), **INDEX),
    Case(GATHER, ["15x9xf32", "3x2xi32"], ["3x4x3xf32"], gathered(WINDOW, "4, 3"), **INDEX),
    Case(GATHER, ["3x15x9xf32", "3x6x1xi32"], ["3x6x9xf32"], gathered(BATCHED, "1, 1, 9"), **INDEX),
    Case(
        "stablehlo.dynamic_gather",
        ["15x9xf32", "6xi32", "2xi64"],
        ["6x9xf32"],
        f"dimension_numbers = #stablehlo.gather<{ROW}>",
        constants={2: "[1, 9]"},
        **INDEX,
    ),
    *(
        Case(SCATTER, ["15x9xf32", "6xi32", "6x9xf32"], ["15x9xf32"], scattered(INTO_ROW), body(op), **INDEX)
        for op in ("add", "maximum", "multiply")
    ),
    Case(SCATTER, ["15x9xf32", "6xi32", "6x3xf32"], ["15x9xf32"], scattered(INTO_ROW), body("add"), **INDEX),
    Case(SCATTER, ["15x9xf32", "6x2xi32", "6x4x3xf32"], ["15x9xf32"], scattered(INTO_WINDOW), body("add"), **INDEX),
    Case(
        SCATTER, ["3x15x9xf32", "3x6x1xi32", "3x6x9xf32"], ["3x15x9xf32"], scattered(INTO_BATCHED), body("add"), **INDEX
    ),
    Case(
        "stablehlo.torch_index_select",
        ["15x9xf32", "6xi32"],
        ["6x9xf32"],
        "dim = 0 : i64, batch_dims = 0 : i64",
        **INDEX,
    ),
    Case("stablehlo.rng_bit_generator", ["2xui64"], ["2xui64", "9x15xui32"], ALGORITHM),
    Case(
        "stablehlo.rng",
        ["f32", "f32", "2xi64"],
        ["9x15xf32"],
        "rng_distribution = #stablehlo<rng_distribution UNIFORM>",
        constants={0: "0.5", 1: "0.5", 2: "[9, 15]"},
    ),
]

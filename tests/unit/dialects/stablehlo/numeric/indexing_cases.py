"""Gathers and scatters."""

from __future__ import annotations

from typing import Any

import numpy as np

from shardy_py.ir import Builder, tensor
from shardy_py.ir.graph.attributes import RawAttribute
from tests.unit.dialects.stablehlo.numeric.case import Case

ROWS = "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
BATCHED = (
    "#stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0],"
    " start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>"
)
WINDOWS = "#stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>"
INTO_ROWS = (
    "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],"
    " index_vector_dim = 1>"
)
NUMBERS = np.array([[3], [0], [5], [1], [1], [4], [2], [0]])
DISTINCT = np.array([[3], [0], [5], [1]])


def take(table: Any, rows: Any, *, local: Any) -> Any:
    """Look rows up; those that another device has count as zero."""
    here = rows[:, 0] - local.operands[0].offset(0)
    inside = (here >= 0) & (here < len(table))
    return np.where(inside[:, None], table[np.clip(here, 0, len(table) - 1)], 0)


def take_dynamically(table: Any, rows: Any, sizes: Any, *, local: Any) -> Any:
    """The same; the sizes of slices are an operand."""
    if len(sizes) != 2:
        raise ValueError("the sizes are needed whole")
    return take(table, rows, local=local)


def take_of_batch(table: Any, rows: Any, *, local: Any) -> Any:
    """Look rows up in the table of each batch."""
    here = rows[..., 0] - local.operands[0].offset(1)
    inside = (here >= 0) & (here < table.shape[1])
    actual = np.take_along_axis(table, np.clip(here, 0, table.shape[1] - 1)[..., None], 1)
    return np.where(inside[..., None], actual, 0)


def take_windows(table: Any, rows: Any) -> Any:
    """Look up three rows from each start."""
    starts = np.clip(rows[:, 0], 0, len(table) - 3)
    return table[starts[:, None] + np.arange(3)]


def select(table: Any, rows: Any, *, local: Any) -> Any:
    """Look rows up by a vector of numbers."""
    return take(table, rows[:, None], local=local)


def scatter(combine: Any) -> Any:
    """Combine updates with the rows that the device has."""

    def function(table: Any, rows: Any, updates: Any, *, local: Any) -> Any:
        result, offset = table.copy(), local.operands[0].offset(0)
        for row, values in zip(rows[:, 0] - offset, updates, strict=True):
            if 0 <= row < len(result):
                result[row] = combine(result[row], values)
        return result

    return function


def scattering(name: str | None) -> Any:
    """A scatter of rows whose region combines by an op, or keeps the update."""

    def build() -> Any:
        types = [tensor(6, 4), tensor(len(NUMBERS if name else DISTINCT), 1, dtype="i64")]
        types.append(tensor(types[1].shape[0], 4))
        b = Builder()
        with b.function("main", types) as values:
            numbers = RawAttribute(INTO_ROWS)
            region = b.region_op("stablehlo.scatter", values, [types[0]], scatter_dimension_numbers=numbers)
            with region as op, b.region(op, [tensor(), tensor()]) as (old, new):
                b.emit("stablehlo.return", [b.op(name, [old, new], [tensor()]) if name else new])
            b.return_(op.result)
        return op

    return build


# Along a reduction only one device adds to what was there; into zeros all may.
ZEROS = np.zeros((6, 4))
CASES = [
    Case("gather", [(6, 4), NUMBERS], take, [(8, 4)], {"dimension_numbers": ROWS}),
    Case(
        "gather",
        [(2, 6, 4), np.stack([NUMBERS, NUMBERS[::-1]])],
        take_of_batch,
        [(2, 8, 4)],
        {"dimension_numbers": BATCHED},
    ),
    Case("gather", [(6, 4), NUMBERS], take_windows, attributes={"dimension_numbers": WINDOWS}),
    Case(
        "dynamic_gather", [(6, 4), NUMBERS, np.array([1, 4])], take_dynamically, [(8, 4)], {"dimension_numbers": ROWS}
    ),
    Case("torch_index_select", [(6, 4), NUMBERS[:, 0]], select, [(8, 4)], {"dim": 0, "batch_dims": 0}),
    Case("scatter", [ZEROS, NUMBERS, (8, 4)], scatter(np.add), build=scattering("stablehlo.add")),
    Case("scatter", [(6, 4), DISTINCT, (4, 4)], scatter(lambda old, new: new), build=scattering(None)),
]

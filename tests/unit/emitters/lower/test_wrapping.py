"""Places that begin again are found by what computes them."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import numpy as np

import shardy_py as sdy
from shardy_py.emitters import Fusion, emit
from shardy_py.emitters.lower.wrapping import may_wrap, wraps_soon
from shardy_py.layout.dtypes import numpy_dtype
from shardy_py.testing import make_op
from tests.unit.emitters.fusions import fusion_of

PHASE = """define internal i32 @f(ptr %from, i32 %lane, i32 %strip) {{
  %less = {instruction}
  %place = getelementptr inbounds i8, ptr %from, i32 {index}
  %word = load i32, ptr %place
  %bits = and i32 %word, 7
  %far = getelementptr inbounds i8, ptr %from, i32 %lane
  store i32 {stored}, ptr %far
  ret i32 0
}}
define i32 @grid(ptr %from, i32 %block) {{
  %x = urem i32 %block, 4
  %done = call i32 @f(ptr %from, i32 %x, i32 0)
  ret i32 %done
}}
"""


@pytest.mark.parametrize("instruction", ["urem i32 %lane, 32", "and i32 %lane, 31", "trunc i32 %lane to i8"])
def test_a_place_that_follows_from_a_remainder_may_wrap(instruction: str) -> None:
    """A remainder that reaches an index is one; that what is stored has one does not matter."""
    assert may_wrap(PHASE.format(instruction=instruction, index="%less", stored="%bits"))
    assert not may_wrap(PHASE.format(instruction=instruction, index="%lane", stored="%less"))


def test_numbers_that_grow_or_stay_do_not_wrap() -> None:
    """Sums and products grow, and a remainder of the strip's number stays for all threads of the strip."""
    for instruction in ("add nuw nsw i32 %lane, 3", "urem i32 %strip, 4", "trunc nuw i32 %lane to i16"):
        assert not may_wrap(PHASE.format(instruction=instruction, index="%less", stored="%bits"))


def test_remainders_of_the_blocks_number_stay_for_its_threads() -> None:
    """What follows from the block alone does not wrap; what follows from it and a lane does."""
    text = PHASE.replace("i32 %strip)", "i32 %strip, i32 %block.x)").replace(
        "  %less =", "  %before = add nuw nsw i32 %block.x, {added}\n  %less ="
    )
    instruction = "urem i32 %before, 16"
    assert not may_wrap(text.format(instruction=instruction, index="%less", stored="%bits", added=8))
    assert may_wrap(text.format(instruction=instruction, index="%less", stored="%bits", added="%lane"))


def test_a_number_that_is_loaded_does_not_grow_from_thread_to_thread() -> None:
    """What a remainder is loaded from may wrap, and what is loaded does not."""
    text = PHASE.format(instruction="add i32 %lane, 1", index="%lane", stored="%bits")
    assert not may_wrap(text.replace("i8, ptr %from, i32 %lane\n  store", "i8, ptr %from, i32 %word\n  store"))


def test_a_float_that_a_function_is_given_is_no_place() -> None:
    """The bits of a float may wrap; those of an integer that a function is given may be a place."""
    call = PHASE.format(instruction="and i32 %lane, 31", index="%lane", stored="%bits").replace(
        "  ret i32 0", "  %float = bitcast i32 %less to float\n  %r = call float @g({})\n  ret i32 0", 1
    )
    assert "%less = and" in call
    assert not may_wrap(call.replace("@g({})", "@g(float %float)"))
    assert may_wrap(call.replace("@g({})", "@g(i32 %less)"))


@pytest.mark.parametrize(
    ("instruction", "index", "expected"),
    [
        ("urem i32 %lane, 4", "%less", True),
        ("and i32 %lane, 3", "%less", True),
        ("urem i32 %lane, 64", "%less", False),
        ("urem i32 %lane, 6", "%less", False),
        ("urem i32 %block.x, 4", "%less", False),
        ("urem i32 %lane, 4", "%lane", False),
        ("and i32 %far, 127", "%less", True),
        ("and i32 %next, 127", "%less", False),
    ],
)
def test_places_that_begin_again_soon(instruction: str, index: str, expected: bool) -> None:
    """Remainders by less than a vector has elements are such that a vector has a place twice."""
    text = PHASE.format(instruction=instruction, index=index, stored="%bits").replace(
        "  %less =", "  %far = add i32 %lane, 46\n  %next = add i32 %lane, 64\n  %less ="
    )
    assert wraps_soon(text) is expected


@pytest.mark.parametrize(
    ("dtype", "columns", "steps"), [("i8", 64, 46), ("f16", 32, 27), ("f32", 64, 5), ("f32", 16, 8)]
)
def test_rows_that_begin_elsewhere(dtype: str, columns: int, steps: int) -> None:
    """The end of a rotated row is followed by its beginning, also within a vector."""
    dialect = sdy.Dialect("odd")
    maps = ["(i, j, k, l) -> (j, l)", f"(i, j, k, l) -> (i, (l + {steps}) mod {columns})"]
    dialect.op("odd.rotated", indexing=maps, emission="x, y -> x + y if y > 0 else y")
    whole = sdy.tensor(2, 4, 8, columns, dtype=dtype)
    op = make_op("odd.rotated", [sdy.tensor(rows, columns, dtype=dtype) for rows in (4, 2)], [whole])
    kernel = emit(Fusion.of_function(op.program.functions["main"], sdy.Registry.of([dialect])))
    given = [np.arange(rows * columns).reshape(rows, columns) % 50 - 20 for rows in (4, 2)]
    first, second = (item.astype(numpy_dtype(dtype)) for item in given)
    second_there = np.roll(second, -steps, 1)[:, None, None]
    expected = np.broadcast_to(np.where(second_there > 0, first[:, None] + second_there, second_there), whole.shape)
    np.testing.assert_array_equal(kernel.run(first, second, on="host")[0], expected)


@pytest.mark.parametrize("shape", [(96, 4), (8, 9, 4), (384, 2), (48, 8)])
@pytest.mark.parametrize("dtype", ["f32", "f16", "i8"])
def test_short_rows_that_are_repeated(shape: tuple[int, ...], dtype: str) -> None:
    """The host reads a row again and again, and nothing behind its end."""
    row, rows = f"tensor<{shape[-1]}x{dtype}>", f"tensor<{'x'.join(map(str, shape))}x{dtype}>"
    kernel = emit(
        fusion_of(f"""
        func.func @main(%x: {row}) -> {rows} {{
          %0 = stablehlo.broadcast_in_dim %x, dims = [{len(shape) - 1}] : ({row}) -> {rows}
          %1 = stablehlo.add %0, %0 : {rows}
          return %1 : {rows}
        }}""")
    )
    given = np.arange(1, shape[-1] + 1).astype(numpy_dtype(dtype))
    (found,) = kernel.run(given, on="host")
    np.testing.assert_array_equal(found, np.broadcast_to(given + given, shape))

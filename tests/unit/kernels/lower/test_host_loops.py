"""Strips of threads on the host, and index expressions that wrap."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith, builtin
from xdsl.dialects.arith import DivUIOp, RemUIOp
from xdsl.ir import Operation

import shardy_py as sdy
from shardy_py.kernels import Fusion, emit
from shardy_py.kernels.dialect.gpu import BlockIdOp, ThreadIdOp
from shardy_py.kernels.lower.host_loops import LANE, STRIP, may_wrap, strip_width, write_for_last_lane, write_in_strip
from shardy_py.kernels.lower.literals import HOST
from shardy_py.kernels.lower.writer import FunctionWriter, ModuleWriter
from shardy_py.layout.numpy_arrays import numpy_dtype
from shardy_py.testing import make_op
from tests.unit.kernels.fusions import fusion_of

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

INDEX = builtin.IndexType()


def divided(kind: type[DivUIOp] | type[RemUIOp], divisor: int, dimension: str = "x") -> Operation:
    """A quotient or a remainder of a thread's number."""
    number = arith.ConstantOp(builtin.IntegerAttr(divisor, INDEX))
    return kind(ThreadIdOp(dimension), number, INDEX)


@pytest.mark.parametrize(
    ("divisors", "threads", "within", "width"),
    [
        ([], 96, 0, 96),
        ([128, 32], 256, 0, 32),
        ([128, 3], 256, 0, 128),
        ([128], 256, 32, 32),
        ([512], 256, 0, 256),
        ([48], 192, 32, 16),
        ([32], 125, 32, 125),
    ],
)
def test_strips_end_where_quotients_change(divisors: list[int], threads: int, within: int, width: int) -> None:
    """A strip divides all divisors, except those that would leave it shorter than a vector."""
    ops = [divided(DivUIOp, divisor) for divisor in divisors]
    assert strip_width(ops, threads, within=within) == width


def test_other_dimensions_cut_nothing() -> None:
    """Quotients of a thread's number along y leave the loop along x whole, and are no numbers of a strip."""
    op = divided(DivUIOp, 32, "y")
    assert strip_width([op], 64) == 64
    assert not write_in_strip(op, FunctionWriter(ModuleWriter(HOST, 32)), 32)


@pytest.mark.parametrize("kind", [DivUIOp, RemUIOp])
def test_numbers_of_a_strip(kind: type[DivUIOp] | type[RemUIOp]) -> None:
    """A quotient follows from the number of the strip; a remainder adds the place in it."""
    writer = FunctionWriter(ModuleWriter(HOST, 32))
    assert write_in_strip(divided(kind, 96), writer, 32)
    text = "\n".join(writer.lines)
    assert f"{'udiv' if kind is DivUIOp else 'urem'} i32 {STRIP}, 3" in text
    assert (LANE in text) == (kind is RemUIOp)
    assert not write_in_strip(divided(kind, 48), writer, 32)


pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

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

CALLED = """
define internal float @g(i32 %at) {
  %place = call ptr @h(i32 %at)
  %found = load float, ptr %place
  ret float %found
}
define internal ptr @h(i32 %at) {
  %place = getelementptr inbounds float, ptr null, i32 %at
  ret ptr %place
}
"""


@pytest.mark.parametrize("instruction", ["urem i32 %lane, 32", "and i32 %lane, 31", "trunc i32 %lane to i8"])
def test_a_place_that_follows_from_a_remainder_may_wrap(instruction: str) -> None:
    """A remainder that reaches an index is one; that what is stored has one does not matter."""
    assert may_wrap(PHASE.format(instruction=instruction, index="%less", stored="%bits"))
    assert not may_wrap(PHASE.format(instruction=instruction, index="%lane", stored="%less"))


def test_remainders_of_the_strips_number_may_wrap() -> None:
    """Where one thread of a strip is left the loop over strips is the innermost one."""
    assert may_wrap(PHASE.format(instruction="urem i32 %strip, 4", index="%less", stored="%bits"))


def test_numbers_that_grow_or_stay_do_not_wrap() -> None:
    """Sums and products grow, and a remainder by one stays."""
    for instruction in ("add nuw nsw i32 %lane, 3", "urem i32 %strip, 1", "trunc nuw i32 %lane to i16"):
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
    assert not may_wrap(call.replace("@g({})", "@g(float %float)") + CALLED)
    for type_ in ("i32", "i8"):
        assert may_wrap(call.replace("@g({})", f"@g({type_} %less)") + CALLED)


@pytest.mark.parametrize("index", ["%less", "%lane"])
def test_what_a_function_without_memory_returns_is_a_place_where_one_follows_from_it(index: str) -> None:
    """A remainder that another function computes counts where its result is an index, and not where it is stored."""
    called = """
define internal i32 @rest(i32 %from) {
  %less = and i32 %from, 3
  ret i32 %less
}
"""
    phase = PHASE.format(instruction="call i32 @rest(i32 %lane)", index=index, stored="%less")
    assert may_wrap(phase + called) is (index == "%less")
    quoted = (phase + called).replace("@rest(", '@"the rest-1"(')
    assert may_wrap(quoted) is (index == "%less")
    assert not may_wrap(phase + called.replace("and i32 %from, 3", "add i32 %from, 3"))


@pytest.mark.parametrize(
    ("dtype", "columns", "steps"), [("i8", 64, 46), ("f16", 32, 27), ("f32", 64, 5), ("f32", 16, 8)]
)
def test_rows_that_begin_elsewhere(dtype: str, columns: int, steps: int) -> None:
    """The end of a rotated row is followed by its beginning, also within a vector."""
    dialect = sdy.Dialect("odd")
    maps = ["(i, j, k, l) -> (j, l)", f"(i, j, k, l) -> (i, (l + {steps}) mod {columns})"]
    dialect.op("odd.rotated", indexing=maps, emission="x, y -> x + y if y > 0 else y")
    stacked = sdy.tensor(2, 4, 8, columns, dtype=dtype)
    op = make_op("odd.rotated", [sdy.tensor(rows, columns, dtype=dtype) for rows in (4, 2)], [stacked])
    kernel = emit(Fusion.of_function(op.program.functions["main"], sdy.Registry.of([dialect])))
    operands = [np.arange(rows * columns).reshape(rows, columns) % 50 - 20 for rows in (4, 2)]
    first, second = (item.astype(numpy_dtype(dtype)) for item in operands)
    second_there = np.roll(second, -steps, 1)[:, None, None]
    expected = np.broadcast_to(np.where(second_there > 0, first[:, None] + second_there, second_there), stacked.shape)
    np.testing.assert_array_equal(kernel.run(first, second, on="host")[0], expected)


@pytest.mark.parametrize("shape", [(96, 4), (8, 9, 4), (384, 2), (48, 8), (96, 16)])
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
    row_numbers = np.arange(1, shape[-1] + 1).astype(numpy_dtype(dtype))
    (actual,) = kernel.run(row_numbers, on="host")
    np.testing.assert_array_equal(actual, np.broadcast_to(row_numbers + row_numbers, shape))


def checked(*, never_wraps: bool, width: int) -> list[str]:
    """What is written for a check that a thread's number and the block's are below a bound."""
    kinds = (arith.IntegerOverflowFlag.NSW, arith.IntegerOverflowFlag.NUW) if never_wraps else ()
    flags = arith.IntegerOverflowAttr(kinds)
    thread, block = ThreadIdOp("x"), BlockIdOp("x")
    number = arith.AddiOp(thread, block, INDEX, flags)
    bound = arith.ConstantOp(builtin.IntegerAttr(100, INDEX))
    check = arith.CmpiOp(number, bound, "slt")
    writer = FunctionWriter(ModuleWriter(HOST, 32))
    writer.bind(bound.result, "100")
    writer.bind(check.result, "%check")
    write_for_last_lane(check, writer, width)
    return [*writer.lines, writer.get(check.result)]


def test_a_check_holds_where_it_holds_for_the_last_thread_of_a_strip() -> None:
    """Where sums never wrap, the last thread has the largest one; else nothing is known of it."""
    assert checked(never_wraps=True, width=32) == [
        "  %v1 = mul nuw nsw i32 %strip, 32",
        "  %v2 = add nuw nsw i32 %v1, 31",
        "  %v3 = add nuw nsw i32 %v2, %block.x",
        "  %v4 = icmp slt i32 %v3, 100",
        "  %v5 = or i1 %v4, %check",
        "%v5",
    ]
    assert checked(never_wraps=False, width=32) == ["%check"]

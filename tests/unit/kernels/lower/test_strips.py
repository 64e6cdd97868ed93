"""Strips of threads on the host."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from xdsl.dialects import arith, builtin
from xdsl.dialects.arith import DivUIOp, RemUIOp
from xdsl.ir import Operation

from shardy_py.kernels.dialect.gpu import ThreadIdOp
from shardy_py.kernels.lower.host_loops import LANE, STRIP, strip_width, write_in_strip
from shardy_py.kernels.lower.literals import HOST
from shardy_py.kernels.lower.writer import FunctionWriter, ModuleWriter

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

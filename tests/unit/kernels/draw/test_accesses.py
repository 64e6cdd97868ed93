"""Accesses of a warp and their pictures, from a run of its block."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from functools import cache

import pytest

from shardy_py.errors import OptionError
from shardy_py.kernels import emit
from shardy_py.kernels.draw.accesses import WarpAccess, warp_accesses
from shardy_py.kernels.draw.pictures import draw_svg, draw_text
from tests.unit.kernels.fusions import NEGATE, SUM, TRANSPOSE, fusion_of

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")


def test_the_last_warp_of_a_loop() -> None:
    """Threads behind the end of a tensor take no part; a warp that has none left accesses nothing."""
    kernel = emit(fusion_of(NEGATE.format(shape="300")))
    read, written = warp_accesses(kernel, block=2, warp=1)
    assert (read.memory, written.memory) == ("parameter 0", "result 0")
    assert read.places == tuple((288 + lane) * 4 if lane < 12 else None for lane in range(32))
    assert warp_accesses(kernel, block=2, warp=3) == []


def test_a_transpose_without_conflicts() -> None:
    """A tiled transpose reads and writes whole sectors, and no two threads need one bank."""
    kernel = emit(fusion_of(TRANSPOSE.format(shape="64x64", result="64x64", dims="1, 0", dtype="f32")))
    actual = warp_accesses(kernel, block=3, warp=2)
    assert len(actual) == 32
    assert {access.passes for access in actual if access.is_shared} == {1}
    assert {access.sectors for access in actual if not access.is_shared} == {4}
    text = draw_text(actual)
    assert text.count("8 times") == 4
    assert "writes tile 0, 4 bytes a thread, 8 times: 1 pass each" in text


def shown(text: str) -> dict[int, str]:
    """Return what the rows of a picture show, by the byte of each word."""
    rows = [line.split("|") for line in text.splitlines() if line.endswith("|")]
    cells = ((int(first) + 4 * number, cell) for first, row, _ in rows for number, cell in enumerate(row.split()))
    return {byte: cell for byte, cell in cells if cell != "."}


@cache
def accesses(dims: str) -> list[WarpAccess]:
    """Return what a warp of the kernel of a transpose accesses."""
    kernel = emit(fusion_of(TRANSPOSE.format(shape="64x64", result="64x64", dims=dims, dtype="f32")))
    return warp_accesses(kernel, block=1, warp=1)


@pytest.mark.parametrize(("width", "words"), [(None, 32), (109, 32), (108, 16), (80, 16), (61, 16), (60, 8), (20, 8)])
@pytest.mark.parametrize("dims", ["1, 0", "0, 1"])
def test_a_line_of_memory_is_as_many_rows_as_it_needs(width: int | None, words: int, dims: str) -> None:
    """Rows are no wider than asked for, whole sectors are in one, and they show what rows of whole lines show."""
    actual = accesses(dims)
    text, full_text = draw_text(actual, width=width), draw_text(actual)
    rows = [line for line in text.splitlines() if line.endswith("|")]
    assert {len(line.split("|")[1].split()) for line in rows} == {words}
    assert max(map(len, rows)) <= max(width or 200, 8 * 3 + 13)
    assert shown(text) == shown(full_text)
    assert all(line.strip(" .|0123456789") == "" and shown(line) for line in rows)
    assert [line for line in text.splitlines() if line not in rows] == [
        line for line in full_text.splitlines() if not line.endswith("|")
    ]


def test_vectors_of_a_row_reduction() -> None:
    """Threads of a row read two neighbours at once; the picture is SVG that parses."""
    kernel = emit(fusion_of(SUM.format(shape="1024x4096", dim=1, result="1024")))
    actual = warp_accesses(kernel)
    assert [access.width for access in actual if access.memory == "parameter 0"] == [8] * 8
    root = ElementTree.fromstring(draw_svg(actual))
    labels = [item.text or "" for item in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "reads parameter 0, 8 bytes a thread, 8 times: 8 sectors each" in labels


def test_there_is_no_such_block() -> None:
    """A block or warp that the launch does not have is an error that says how many there are."""
    kernel = emit(fusion_of(NEGATE.format(shape="300")))
    with pytest.raises(OptionError, match="there are 3, numbered from 0"):
        warp_accesses(kernel, block=3)
    with pytest.raises(OptionError, match="there are 4, numbered from 0"):
        warp_accesses(kernel, warp=4)


def access(step: int, width: int, *, is_shared: bool, lanes: int = 32) -> WarpAccess:
    """An access whose threads stand a step apart."""
    places = tuple(lane * step if lane < lanes else None for lane in range(32))
    return WarpAccess("tensor.extract", "memory", False, is_shared, places, width)


@pytest.mark.parametrize(
    ("step", "width", "sectors", "cost"),
    [
        (4, 4, 4, "4 sectors"),
        (8, 8, 8, "8 sectors"),
        (16, 16, 16, "16 sectors"),
        (2, 2, 2, "2 sectors"),
        (0, 4, 1, "1 sector"),
        (680, 4, 32, "32 sectors instead of 4"),
    ],
)
def test_sectors(step: int, width: int, sectors: int, cost: str) -> None:
    """Neighbours share sectors of 32 bytes; those that are far apart move a sector each."""
    actual = access(step, width, is_shared=False)
    assert (actual.sectors, actual.cost) == (sectors, cost)


@pytest.mark.parametrize(
    ("step", "width", "passes"),
    [(4, 4, 1), (0, 4, 1), (128, 4, 32), (132, 4, 1), (8, 4, 2), (8, 8, 2), (16, 16, 4), (2, 2, 1)],
)
def test_conflicts_of_banks(step: int, width: int, passes: int) -> None:
    """Words of one bank take a pass each, one word for several threads only one; wide accesses need several anyway."""
    actual = access(step, width, is_shared=True)
    assert actual.passes == passes
    assert ("instead of" in actual.cost) == (passes > actual.fewest_passes)


def test_threads_that_take_no_part() -> None:
    """Threads without a place touch nothing."""
    actual = access(4, 4, is_shared=False, lanes=3)
    assert (actual.bytes, actual.sectors, list(actual.lines)) == (12, 1, [0])
    assert actual.lines[0] == {0: [0], 1: [1], 2: [2]}

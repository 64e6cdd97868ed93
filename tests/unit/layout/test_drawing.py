"""Pictures of layouts."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from shardy_py.layout import draw_svg, draw_text, parse_array

NESTED = """\
+-----------------------+-----------------------+
|  0     2     4     6  |  8    10    12    14  |
|  1     3     5     7  |  9    11    13    15  |
+-----------------------+-----------------------+
| 16    18    20    22  | 24    26    28    30  |
| 17    19    21    23  | 25    27    29    31  |
+-----------------------+-----------------------+"""


def test_text() -> None:
    """Every place shows its position in memory, tile by tile."""
    assert draw_text(parse_array("f32[4,8]{1,0:T(2,4)(2,1)}")) == NESTED


def test_padding_stands_in_parentheses() -> None:
    """A vector in two-dimensional tiles has a row of padding."""
    drawn = draw_text(parse_array("f32[5]{0:T(2,2)}"))
    assert [line for line in drawn.splitlines() if line[0] == "|"] == [
        "|  0     1  |  4     5  |  8    (9) |",
        "| (2)   (3) | (6)   (7) |(10)  (11) |",
    ]


def test_large_arrays_are_shortened() -> None:
    """Of long sides the ends and the first borders are shown, of many planes the first few."""
    drawn = draw_text(parse_array("f32[9,1000,3000]{2,1,0:T(8,128)}"))
    assert len(drawn.splitlines()) < 130
    assert "..." in drawn
    assert drawn.endswith("... and 5 more planes")


@pytest.mark.parametrize(
    "text", ["f32[]", "f32[]{:T(128)}", "f32[0,3]{1,0:T(2,2)}", "f32[2,3,4]{2,1,0:T(*,3)}", NESTED]
)
def test_svg(text: str) -> None:
    """The picture is well-formed and shows a rectangle for each place of the text."""
    shape = parse_array("f32[4,8]{1,0:T(2,4)(2,1)}" if text is NESTED else text)
    picture = ElementTree.fromstring(draw_svg(shape))
    names = [element.tag.rpartition("}")[2] for element in picture]
    cells = sum(
        line.count(" ") and len(line.replace("|", " ").split())
        for line in draw_text(shape).splitlines()
        if line[:1] == "|"
    )
    assert names.count("rect") == cells
    assert picture[0].text == str(shape)


@pytest.mark.parametrize("text", ["f32[512,512]{1,0:T(8,128)}", "bf16[3,100,300]{2,1,0:T(8,128)(2,1)}", "f32[7000]{0}"])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_drawing_is_no_wider_than_asked_for(text: str, width: int) -> None:
    """Fewer places of long rows are shown, the ends always."""
    shape = parse_array(text)
    drawn = draw_text(shape, width=width)
    assert max(map(len, drawn.splitlines())) <= width
    wide = draw_text(shape, width=10_000)
    assert wide == draw_text(shape)
    for both in (drawn, wide):
        first = next(line for line in both.splitlines() if line.startswith("| "))
        assert first.split()[1] == "0"
    assert drawn.count("\n") == wide.count("\n")

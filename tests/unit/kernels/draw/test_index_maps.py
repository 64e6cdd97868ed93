"""Pictures of indexing maps from threads to elements."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from shardy_py.indexing import IndexingMap
from shardy_py.kernels.draw.index_maps import can_be_drawn, draw_map_svg, thread_elements

TILE = IndexingMap.parse(
    "(th_x, th_y, th_z, bl_x, bl_y, bl_z)[s0] -> (s0 * 2 + th_x / 4, th_x mod 4), domain: th_x in [0, 7], "
    "th_y in [0, 0], th_z in [0, 0], bl_x in [0, 3], bl_y in [0, 0], bl_z in [0, 0], s0 in [0, 1], "
    "th_x mod 4 in [0, 2]"
)


def test_elements_of_a_block() -> None:
    """Each element in the domain has the thread that comes to it, at all of its steps."""
    elements = thread_elements(TILE, (8, 1, 1))
    assert elements == {
        (step * 2 + row, column): row * 4 + column for step in range(2) for row in range(2) for column in range(3)
    }


def test_a_picture_has_a_cell_per_element() -> None:
    """Rows and columns are named after indices, cells after threads."""
    root = ElementTree.fromstring(draw_map_svg(TILE, (8, 1, 1)))
    names = [item.text for item in root if item.tag.endswith("text")]
    assert len([item for item in root if item.tag.endswith("rect")]) == 12
    assert names[:4] == ["block 0: 4 x 3 elements of 12", "0", "1", "2"]
    assert names[4:8] == ["0", "0", "1", "2"]


def test_maps_with_values_of_a_run_are_not_drawn() -> None:
    """Only a map from threads and blocks is known without a run."""
    assert can_be_drawn(TILE)
    assert not can_be_drawn(IndexingMap.parse("(d0)[s0] -> (d0 + s0), domain: d0 in [0, 3], s0 in [0, 3]"))

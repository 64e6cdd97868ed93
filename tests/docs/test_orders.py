"""The page that compares orders compares orders that differ."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

pytest.importorskip("jaxlib", reason="the page propagates MLIR modules")

import shardy_py as sdy
from shardy_py.propagation import DEFAULT, Schedule
from shardy_py.schedule.builtin import BUILTIN
from shardy_py.schedule.toml import format_schedule
from tests.docs.pages import ROOT, find_blocks

PAGE = ROOT / "docs" / "explanation" / "orders.md"
NAMES = ("default", "contractions-first", "elementwise-first", "reversed", "forward-only")
ORDERS = {
    **{name: {"schedule": name} for name in NAMES},
    "list": {"op_priorities": [["*.multiply"], ["*.dot_general"]]},
}


@pytest.fixture(scope="module")
def block() -> str:
    """Return the program of the page."""
    (text,) = [item.body for item in find_blocks(PAGE) if item.options.get("file") == "block.mlir"]
    return text


def test_all_orders_differ_pairwise(block: str) -> None:
    """No two of the orders on the page give the same shardings."""
    texts = {name: sdy.propagate(block, **options).text for name, options in ORDERS.items()}
    assert [pair for pair in combinations(texts, 2) if texts[pair[0]] == texts[pair[1]]] == []
    named = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(">>> where_is_a(")]
    assert len(named) == len(ORDERS)


def test_the_levels_do_what_the_page_says(block: str) -> None:
    """After each of the first levels of the default order exactly the values are sharded that the page names."""

    def sharded(levels: int) -> list[str]:
        result = sdy.propagate(block, schedule=Schedule(DEFAULT.levels[:levels]))
        values = {"up": "arg1", "h": "%0", "g": "%1", "down": "arg3", "o": "%2", "r": "%3"}
        return [name for name, value in values.items() if result.sharding(value) is not None]

    assert [sharded(levels) for levels in (1, 2, 3)] == [
        ["h", "g", "r"],
        ["h", "g", "o", "r"],
        ["up", "h", "g", "down", "o", "r"],
    ]


def test_an_order_in_a_file_gives_what_its_name_gives(block: str, tmp_path: Path) -> None:
    """Each built-in order written as TOML gives the same bytes on the program of the page."""
    for name, schedule in BUILTIN.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(format_schedule(schedule), encoding="utf-8")
        assert sdy.propagate(block, schedule=path).text == sdy.propagate(block, schedule=name).text

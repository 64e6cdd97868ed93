"""The walk of the module through the package: each stop exists, and is called where the page says."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from inspect import isclass, unwrap

import pytest

import shardy_py as sdy
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "explanation" / "walk.md"
SHARED = {"frontends", "ir", "errors"}
TEXT = """func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.negate %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}"""


def stops():
    """Return file, name and parent of each stop; the parent is the number of another stop."""
    actual, above = [], {}
    for match in re.finditer(
        r"^( *)- `([\w/]+\.py)` `([\w.]+)`: (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    ):
        depth = len(match[1]) // 4
        above[depth] = len(actual)
        actual.append((match[2], match[3], above.get(depth - 1)))
    return actual


def code_of(file, name):
    """Return the code that runs when a stop is called."""
    value = import_module("shardy_py." + file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    for part in name.split("."):
        value = getattr(value, part)
    return unwrap(value.__init__ if isclass(value) else value).__code__


def test_every_line_of_the_walk_is_a_stop():
    """Each stop is one line with an existing file."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.lstrip().startswith("- ")]
    assert len(lines) == len(stops()) > 15
    assert [file for file, _, _ in stops() if not (ROOT / "shardy_py" / file).is_file()] == []


def test_the_walk_enters_no_room_twice():
    """A room is entered from another one once, but for those that every room uses."""
    all_stops = stops()
    entered = []
    for file, _, parent in all_stops:
        room = file.split("/")[0]
        last = None if parent is None else all_stops[parent][0].split("/")[0]
        if room != last and room not in SHARED:
            entered.append(room)
    assert sorted(entered) == sorted(set(entered))
    assert {"api", "transforms", "propagation"} <= set(entered)


def test_the_stops_are_called_in_the_order_of_the_walk():
    """A propagation calls each stop, in this order, from the stop above it."""
    pytest.importorskip("jaxlib", reason="the module is MLIR text")
    numbers: dict = {}
    for number, (file, name, _) in enumerate(stops()):
        numbers.setdefault(code_of(file, name), []).append(number)
    called, inside = [], []

    def watch(frame, event, argument):
        if frame.f_code not in numbers:
            return
        if event == "call":
            called.append((frame.f_code, inside[-1] if inside else None))
            inside.append(frame.f_code)
        elif event == "return":
            inside.pop()

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        sdy.propagate(TEXT, {"a": 2}, in_shardings={0: ("a",)})
    finally:
        sys.setprofile(before)
    position = 0
    for file, name, parent in stops():
        code = code_of(file, name)
        caller = None if parent is None else code_of(*stops()[parent][:2])
        rest = [index for index in range(position, len(called)) if called[index] == (code, caller)]
        assert rest, f"{file} {name} is not called here"
        position = rest[0] + 1

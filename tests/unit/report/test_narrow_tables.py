"""Tables of eighty columns and on pipes: names and places are folded, never cut."""

from __future__ import annotations

import io

import pytest

import shardy_py as sdy
from shardy_py.report.summary import print_report

pytest.importorskip("jaxlib")
pytest.importorskip("rich")

OP = "toy.an_op_with_a_name_that_is_longer_than_its_column"
MODULE = f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> tensor<8xf32> {{
  %0 = "{OP}"(%a) : (tensor<8xf32>) -> tensor<8xf32> loc("a_folder_of_it/another_folder/model.py":1234:5)
  return %0 : tensor<8xf32>
}}
"""


def test_no_name_and_no_place_is_cut() -> None:
    """An op and its place that cannot stand beside each other stand in two tables."""
    stream = io.StringIO()
    print_report(sdy.propagate(MODULE), file=stream)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "\u2026" not in stream.getvalue()
    assert any(OP in line.split() for line in lines)
    rows = lines[max(number for number, line in enumerate(lines) if OP in line) :]
    place = "a_folder_of_it/another_folder/model.py:1234:5"
    assert "".join(row.split()[-1] for row in rows if row.strip()) == place

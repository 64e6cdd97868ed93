"""Upstream's lit tests of the passes for local programs; docs/explanation/upstream.md says why some lines differ."""

import json
import os
import sys

import pytest

pytest.importorskip("jaxlib", reason="lit files are MLIR")
pytest.importorskip("filecheck", reason="lit files check their output")

from tests.conformance import lit_here
from tests.conformance.conformance_data import DATA, need, script

need("lit_local", "run_lit.py", "lit_local_status.json")

TOOL = [sys.executable, "-m", "shardy_py.cli.opt"]
RUNNER = script("run_lit")
STATUS = json.loads((DATA / "lit_local_status.json").read_text())
DIFFERENT = {
    "convert_global_to_local/stablehlo_gather.mlir": (0,),
    "convert_global_to_local/stablehlo_scatter.mlir": (0,),
    "pad_for_divisibility/stablehlo_convolution.mlir": (0,),
    "pad_for_divisibility/stablehlo_pad.mlir": (0,),
    "resolve_permutation_factors.mlir": (0, 1),
}
"""The RUN lines that do not pass, by file; the reference passes none of them."""
FILES = sorted(STATUS) if os.environ.get("SHARDY_ALL_PROGRAMS") else sorted(STATUS)[2::4]


def test_no_required_line_is_left_out() -> None:
    """What the reference passes has to pass here; 6 of the other 30 lines differ."""
    required = {(name, number) for name, lines in STATUS.items() for number, line in enumerate(lines) if line == "ok"}
    left_out = {(name, number) for name, numbers in DIFFERENT.items() for number in numbers}
    assert not required & left_out
    assert (len(required), sum(map(len, STATUS.values())) - len(required), len(left_out)) == (17, 30, 6)


@pytest.mark.conformance
@pytest.mark.parametrize("name", FILES)
def test_lines_pass_but_for_those_that_are_listed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each RUN line of a file passes; a line that is listed and passes is no longer different."""
    monkeypatch.setattr(RUNNER, "run_tool", lit_here.run_tool)
    rows = list(RUNNER.check(TOOL, DATA / "lit_local" / name))
    failed = {number: detail for number, (_, state, detail) in enumerate(rows) if state != "ok"}
    assert tuple(failed) == DIFFERENT.get(name, ()), failed

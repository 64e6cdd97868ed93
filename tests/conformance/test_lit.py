"""Upstream's lit tests through `shardy-opt`; only the lines that the reference passes are required."""

import json
import sys

import pytest

pytest.importorskip("jaxlib", reason="lit files are MLIR")
pytest.importorskip("filecheck", reason="lit files check their output")

from tests.conformance import lit_here
from tests.conformance.conformance_data import DATA, need, script

need("lit", "run_lit.py", "lit_status.json")

TOOL = [sys.executable, "-m", "shardy_py.cli.opt"]
RUNNER = script("run_lit")
STATUS = json.loads((DATA / "lit_status.json").read_text())
BY_COMMAND = "ir/sharding_rule_parse_print.mlir"
FAST = (
    "export/insert_explicit_reshards/dot_dot_general.mlir",
    "ir/reshard_canonicalization.mlir",
    BY_COMMAND,
    "propagation/basic_propagation_keep_sharding_rules.mlir",
    "propagation/op_priority_propagation.mlir",
    "propagation/op_sharding_rule_registry.mlir",
    "propagation/user_priority_propagation.mlir",
)
AREAS = (
    "export/insert_explicit_reshards",
    "export/sharding_constraint_to_reshard",
    "ir/",
    "propagation/aggressive",
    "propagation/basic",
    "propagation/op_",
    "propagation/sharding_group",
    "propagation/user_priority",
)
SLOW = tuple(name for name in sorted(STATUS) if name.startswith(AREAS) and name not in FAST)


def _problems(name):
    rows = list(RUNNER.check(TOOL, DATA / "lit" / name))
    required = [row for row, status in zip(rows, STATUS[name], strict=True) if status == "ok"]
    return [f"{state}: {detail}" for _, state, detail in required if state != "ok"]


def test_a_lit_file_passes_by_the_command():
    """The command passes a file, in a process for each run."""
    assert _problems(BY_COMMAND) == []


@pytest.fixture
def tool_here(monkeypatch):
    """The tool runs in this process, as the start of a process takes longer than most runs."""
    monkeypatch.setattr(RUNNER, "run_tool", lit_here.run_tool)


@pytest.mark.usefixtures("tool_here")
@pytest.mark.parametrize("name", FAST)
def test_a_chosen_lit_file_passes(name):
    """One file or two of every area pass on every run."""
    assert _problems(name) == []


@pytest.mark.conformance
@pytest.mark.usefixtures("tool_here")
@pytest.mark.parametrize("name", SLOW)
def test_every_required_lit_file_passes(name):
    """All files of the areas that are complete pass."""
    assert _problems(name) == []

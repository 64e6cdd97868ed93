"""The scripts of the gallery that need PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.gallery import EXAMPLES, run_python

pytestmark = pytest.mark.torch


def test_plan_layer(tmp_path: Path) -> None:
    """Two annotated weights give the plan of the whole layer."""
    printed = run_python([EXAMPLES / "pytorch" / "plan_layer.py"], tmp_path)
    lines = [line.split() for line in printed.splitlines()]
    styles = {line[0]: line[1] for line in lines if len(line) > 1 and line[1].endswith("wiseParallel()")}
    rowwise = {name for name, style in styles.items() if style == "RowwiseParallel()"}
    assert rowwise == {"o_proj", "down_proj"}
    assert len(styles) == 7
    assert "all_reduce after down_proj: 8192 bytes" in printed


def test_run_mlp_on_four_processes(tmp_path: Path) -> None:
    """Four processes compute what the module computes."""
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 4]
    printed = run_python([*command, EXAMPLES / "pytorch" / "run_mlp.py"], tmp_path)
    assert "as the module computes: True\n" in printed
    assert "collectives of a process: {'all_reduce': 1}" in printed

"""``shardy cost``: counted in the local program, estimated where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jaxlib")

from tests.unit.cost.test_result_cost import ONE_SUM_SENT, TWO_SUMS, WITHOUT_LOCAL_FORM


def test_the_command_counts_or_says_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shardy: Any) -> None:
    """``shardy cost`` counts; ``--partitioner xla`` estimates; ``--local`` refuses to estimate."""
    monkeypatch.chdir(tmp_path)
    Path("sums.mlir").write_text(TWO_SUMS)
    Path("outfeed.mlir").write_text(WITHOUT_LOCAL_FORM)

    def cost(*options: str) -> dict[str, Any]:
        done = shardy("cost", *options, "--machine", "cpu-8", "--json", "--transfers")
        assert done.exit_code == 0, done.output
        collected: dict[str, Any] = json.loads(done.stdout)
        return collected

    data = cost("sums.mlir")
    assert (data["is_counted"], data["communication_bytes"]["value"]) == (True, ONE_SUM_SENT)
    assert not cost("sums.mlir", "--partitioner", "xla")["is_counted"]
    data = cost("outfeed.mlir")
    assert not data["is_counted"]
    assert "there is no local program" in data["notes"][-1]
    done = shardy("cost", "outfeed.mlir", "--machine", "cpu-8", "--local")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "[side-effects]" in done.stderr
    done = shardy("cost", "sums.mlir", "--machine", "cpu-8", "--local", "--partitioner", "xla")
    assert done.exit_code == 2
    assert "--local has no effect together with --partitioner xla" in done.stderr


def test_collectives_that_stay_have_the_numbers_of_explanations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shardy: Any
) -> None:
    """A collective where a reshard was has its number; one that was moved has its location only."""
    monkeypatch.chdir(tmp_path)
    alone = TWO_SUMS.replace("stablehlo.add %0, %1", "stablehlo.multiply %0, %1")
    Path("apart.mlir").write_text(alone)
    Path("sums.mlir").write_text(TWO_SUMS)
    apart, moved = (
        json.loads(shardy("cost", name, "--machine", "cpu-8", "--json", "--transfers").stdout)["transfers"]
        for name in ("apart.mlir", "sums.mlir")
    )
    assert [item["number"] for item in apart] == [0, 1]
    assert all("stablehlo.dot_general" in item["where"] for item in apart)
    assert [(item["number"], bool(item["location"])) for item in moved] == [(-1, True)]

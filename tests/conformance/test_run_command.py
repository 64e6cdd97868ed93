"""``shardy run --compare`` on real programs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conformance_data import DATA, need

pytest.importorskip("jax", reason="running needs the extra 'jax'")
testing = pytest.importorskip("click.testing")

ONE_DEVICE = "one device, without shardings"
PROGRAMS = (
    ("beam_search_while", (), ONE_DEVICE),
    ("calls_nested_in_loops_grad", (), ONE_DEVICE),
    ("calls_nested_in_loops_grad", ("--inline-calls",), ONE_DEVICE),
    ("dlrm_train", (), ONE_DEVICE),
    ("gp_cg_solver", ("--inline-calls",), ONE_DEVICE),
    ("scatter_gather_zoo", (), ONE_DEVICE),
    ("shardmap_partial_auto", (), "the same devices, with nothing sharded but the manual computations"),
)


@pytest.mark.conformance
@pytest.mark.parametrize(("name", "options", "compared_with"), PROGRAMS)
def test_programs_compute_the_same(name: str, options: tuple[str, ...], compared_with: str, tmp_path: Path) -> None:
    """On made-up inputs all results are finite, and those of the program without shardings."""
    from shardy_py.cli.app import shardy

    need(f"programs/{name}.mlir.gz")
    path = tmp_path / f"{name}.mlir"
    path.write_bytes(gzip.decompress((DATA / "programs" / f"{name}.mlir.gz").read_bytes()))
    done = testing.CliRunner().invoke(shardy, ["run", str(path), "--compare", "--json", *options])
    assert done.exit_code == 0, done.output
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["compared_with"] == compared_with
    assert report["devices"] == 16
    assert [item["name"] for item in report["results"] if item["not_finite"]] == []
    assert any(item["largest"] for item in report["results"])

"""``shardy diff``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cost.programs import BARE, LAYER, TOY_PLUGIN


def test_two_schedules(module: str, shardy: Any) -> None:
    """The decisions that part the runs come with their places; one schedule is compared with the default."""
    Path(module).write_text(LAYER)
    done = shardy("diff", module, "--schedule", "default", "--schedule", "contractions-first")
    assert done.exit_code == 0
    assert "stablehlo.add %1 at in.mlir:6:8 gives %0" in done.stdout
    assert shardy("diff", module, "--schedule", "contractions-first").stdout == done.stdout
    assert len(shardy("diff", module, "--schedule", "flat", "--limit", "0").stdout) < len(done.stdout)


def test_json(module: str, shardy: Any) -> None:
    """JSON has the divergences and the tensors."""
    Path(module).write_text(LAYER)
    data = json.loads(shardy("diff", module, "--schedule", "contractions-first", "--json").stdout)
    assert (data["first"], data["second"], data["tensors"]) == ("default", "contractions-first", 6)
    assert [item["decision"]["value"] for item in data["divergences"]] == ["%0", "%0"]
    assert len(data["values"]) == 4


def test_files_meshes_shardings_and_plugins(module: str, shardy: Any) -> None:
    """Whatever `shardy propagate` takes for a program is taken here, too."""
    Path(module).write_text(BARE)
    Path("toy.py").write_text(TOY_PLUGIN)
    Path("back.toml").write_text('then = "nothing"\n[[level]]\nentries = [{ direction = "backward" }]\n')
    arguments = ("--mesh", "a=2", "--in-sharding", "arg0=a,None", "--plugin", "toy.py", "--schedule", "back.toml")
    values = json.loads(shardy("diff", module, *arguments, "--json").stdout)["values"]
    assert [item["value"] for item in values] == ["result0", "%0", "%1"]
    assert values[0]["second"] is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--schedule", "best"], "best: error: the schedule cannot be read"),
        (["--schedule", "flat"] * 3, "3 schedules are given"),
        (["--schedule", "flat", "--schedule", "flat"], "two schedules are named 'flat'"),
        (["--schedule", "flat", "--strategy", "basic"], "'basic' is not one of"),
        (["--schedule", "flat", "--mesh", "a=4"], "the module has the mesh"),
        (["--schedule", "flat", "--plugin", "in.mlir"], "not a Python file"),
        ([], "Missing option '--schedule'"),
    ],
)
def test_bad_options(module: str, shardy: Any, options: list[str], expected: str) -> None:
    """Options that do not fit end in a message and exit code 2."""
    done = shardy("diff", module, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert expected in done.stderr


def test_bad_modules(module: str, shardy: Any) -> None:
    """A module that cannot be read is named with its place."""
    Path(module).write_text("func.func @main(")
    done = shardy("diff", module, "--schedule", "flat")
    assert done.exit_code == 2
    assert done.stderr.startswith("in.mlir:1:")

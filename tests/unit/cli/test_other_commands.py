"""``shardy rules``, ``shardy plugins`` and the entry point."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from shardy_py.cli.main import main
from shardy_py.support.files import write_atomically


def test_rules(module: str, shardy: Any) -> None:
    """Each op stands on a line of its own with its rule, in program order."""
    assert shardy("rules", module).stdout.splitlines() == [
        "in.mlir:4:8  stablehlo.dot_general  <([i, k], [k, j])->([i, j]) {i=8, j=4, k=16} reduction={k}>",
        "in.mlir:6:8  toy.window  no rule",
    ]


def test_rules_show_no_number_for_a_dynamic_size(shardy: Any, tmp_path: Path) -> None:
    """A factor of a size that is not known has a question mark."""
    path = tmp_path / "dynamic.mlir"
    path.write_text("""func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = stablehlo.tanh %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}""")
    assert "{i=?, j=8}" in shardy("rules", str(path)).stdout


def test_rules_as_json(module: str, shardy: Any) -> None:
    """JSON has the same."""
    rules = json.loads(shardy("rules", module, "--json").stdout)
    assert [(item["op"], item["location"], item["rule"]) for item in rules] == [
        ("stablehlo.dot_general", "in.mlir:4:8", "<([i, k], [k, j])->([i, j]) {i=8, j=4, k=16} reduction={k}>"),
        ("toy.window", "in.mlir:6:8", None),
    ]


def test_plugins(shardy: Any) -> None:
    """The bundled plugins are listed as loaded, in both forms."""
    plugins = {item["name"]: item for item in json.loads(shardy("plugins", "--json").stdout)}
    assert {plugins[name]["status"] for name in ("func", "sdy", "stablehlo")} == {"loaded"}
    assert "stablehlo" in shardy("plugins").stdout


def test_missing_libraries(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the libraries of the command line it says what to install."""
    monkeypatch.setattr("shardy_py.cli.main.find_spec", lambda name: None)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert "pip install 'shardy_py[cli]'" in capsys.readouterr().err


def test_replaced_files_keep_their_mode(tmp_path: Path) -> None:
    """A file that is replaced keeps its permissions, and a link to it stays a link."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_atomically(str(link), "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_failed_writes_leave_nothing(tmp_path: Path) -> None:
    """Text that cannot be encoded leaves the old file and no other."""
    target = tmp_path / "target"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(str(target), "\ud800")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]

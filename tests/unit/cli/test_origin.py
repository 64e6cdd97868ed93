"""Records of commands say what they are of, and how to get them again."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from shardy_py.cli.app import shardy

PROGRAM = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
COMMANDS = [
    ("propagate", "--json", "--quiet"),
    ("cost", "--machine", "cpu-8", "--json"),
    ("cost", "--machine", "cpu-8", "--json", "--local"),
    ("compare", "--json", "-", "--jobs", "1", "--machine", "cpu-8"),
    ("advise", "--json", "--machine", "cpu-8", "--trials", "2"),
    ("advise", "--json", "--inputs", "--machine", "cpu-8"),
    ("diff", "--json", "--schedule", "flat"),
    ("local", "--json", "--quiet"),
]


def record(*words: str, text: str | None = None) -> dict[str, Any]:
    """Return what a command prints."""
    done = CliRunner().invoke(shardy, words, input=text)
    assert done.exit_code == 0, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    return data


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_record_has_its_origin(words: tuple[str, ...], tmp_path: Path) -> None:
    """Versions, program and machine come first, so that a reader sees them."""
    path = tmp_path / "p.mlir"
    path.write_text(PROGRAM)
    data = record(words[0], str(path), *words[1:])
    origin = data["origin"]
    assert next(iter(data)) == "origin"
    assert origin["shardy_py"] == importlib.metadata.version("shardy_py")
    assert origin["jaxlib"] == importlib.metadata.version("jaxlib")
    assert (origin["command"], origin["program"]) == (words[0], str(path))
    assert origin["sha256"] == hashlib.sha256(PROGRAM.encode()).hexdigest()
    assert origin["machine"] == ("cpu-8" if "cpu-8" in words else None)


def test_options_that_change_figures_are_in_a_record(tmp_path: Path) -> None:
    """Seeds are named also where nobody gave one; files are known by their digests, and outputs are left out."""
    path = tmp_path / "p.mlir"
    path.write_text(PROGRAM)
    order = tmp_path / "order.toml"
    order.write_text('[[level]]\nname = "all"\nentries = [{}]\n')
    words = ("compare", str(path), "--json", "-", "--random", "1", "--schedule", str(order))
    first, second = (record(*words, "--jobs", jobs) for jobs in ("1", "2"))
    assert first == second
    options = first["origin"]["options"]
    assert (options["seed"], options["random"], options["schedules"]) == (0, 1, [str(order)])
    assert first["origin"]["files"] == {str(order): hashlib.sha256(order.read_bytes()).hexdigest()}
    assert record(*words, "--jobs", "1", "--seed", "97531")["origin"]["options"]["seed"] == 97531


def test_a_program_of_stdin_is_known_by_its_digest() -> None:
    """A dash stands for it, as on the command line."""
    origin = record("propagate", "-", "--json", "--quiet", text=PROGRAM)["origin"]
    assert (origin["program"], origin["sha256"]) == ("-", hashlib.sha256(PROGRAM.encode()).hexdigest())

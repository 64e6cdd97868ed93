"""Progress of long commands: on a terminal a bar with a total, elsewhere nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rich")
pytest.importorskip("jaxlib", reason="the commands read MLIR modules")

from shardy_py.cli import child
from shardy_py.cli.progress import progress_bar, step_bar
from tests.unit.cli.terminals import run_in_terminal, terminal

COMMANDS = {
    "propagate": ("in.mlir", "-o", "out.mlir"),
    "local": ("in.mlir", "-o", "out.mlir"),
    "cost": ("in.mlir", "--machine", "cpu-8"),
    "compare": ("in.mlir", "--jobs", "1"),
    "compare-reference": ("in.mlir",),
    "diff": ("in.mlir", "--schedule", "flat"),
    "explain": ("in.mlir", "--reshard", "0"),
    "explore": ("in.mlir", "-o", "out.html"),
    "advise": ("in.mlir", "--trials", "4"),
    "emit": ("kernel.mlir", "--list"),
    "emit --coverage": ("kernel.mlir", "--coverage"),
}
KERNEL = """\
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_shows_steps_with_a_total(command: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of steps that are done go up, of a total that is larger than nothing, and no line is too long."""
    Path("kernel.mlir").write_text(KERNEL)
    screen = run_in_terminal(monkeypatch, 80, command.split()[0], *COMMANDS[command])
    drawn = [line for line in screen.lines if "━" in line and "/" in line]
    matches = [tuple(map(int, pair)) for line in drawn for pair in re.findall(r" (\d+)/(\d+) ?", line)]
    assert matches, screen.text
    assert all(0 <= done <= total and total for done, total in matches)
    assert max(map(len, drawn)) <= 80


@pytest.mark.parametrize("command", ["propagate", "explain"])
def test_a_pipe_shows_nothing_and_needs_no_library(command: str, module: str) -> None:
    """Where stderr is no terminal no bar is drawn, and what draws bars is not imported."""
    Path(module).write_text(Path(module).read_text().replace("toy.window", "stablehlo.tanh"))
    arguments = {"propagate": [module], "explain": [module, "--value", "%0"]}[command]
    code = (
        "import sys; from shardy_py.cli.app import shardy\n"
        f"shardy({[command, *arguments]!r}, standalone_mode=False)\n"
        "print('rich' in sys.modules, 'rich.progress' in sys.modules)"
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path, "FORCE_COLOR": ""},
    )
    assert done.stdout.endswith("False False\n")
    assert "\x1b" not in done.stdout + done.stderr
    assert "━" not in done.stderr


def test_long_descriptions_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a narrow terminal cannot show in one line goes on in the next; no word is cut."""
    words = "a description that is much longer than what is left of a line beside the bar"
    with terminal(monkeypatch, 60) as screen, progress_bar("", total=3) as show:
        show(1, 3, words)
    assert "…" not in screen.text
    assert all(word in screen.text for word in words.split())
    assert max(map(len, screen.lines)) <= 60


def test_own_steps_follow_those_of_a_propagation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The total has both kinds; each step of the command is one more."""
    with terminal(monkeypatch, 80) as screen, step_bar(2) as steps:
        steps.on_progress(0, 5, "import")
        steps.on_progress(5, 5, "write")
        steps.start("Compiling")
        steps.start("Running")
        assert (steps.done, steps.total) == (7, 7)
    assert "6/7" in screen.text
    assert "Running" in screen.text


def test_the_steps_of_another_process_are_shown() -> None:
    """A process of its own reports its steps before its answer."""
    shown: list[Any] = []
    answer = child.ask_child(
        "tests.unit.cli.reporting_worker", "asked", timeout=60, show=lambda *step: shown.append(step)
    )
    assert answer == ["asked", "done"]
    assert shown == [(1, 4, "Compiling"), (2, 4, "Running")]

"""Output of commands on a terminal of eighty columns and in a pipe: whole words, short lines, colour on terminals."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("rich")
pytest.importorskip("jaxlib", reason="the commands read MLIR modules")

from shardy_py.cli import opt
from shardy_py.cli.app import shardy as group
from tests.unit.cli.all_commands import all_commands
from tests.unit.cli.terminals import run_in_terminal

NAMES = ("", "mpmd", *all_commands())
MODULE = """\
sdy.mesh @a_mesh = <["a_first_axis"=2, "a_second_axis"=2]>
func.func @main(
    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@a_mesh, [{"a_first_axis"}, {"a_second_axis"}]>},
    %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@a_mesh, [{"a_first_axis"}, {"a_second_axis"}]>})
    -> (tensor<8x4xf32> {jax.result_info = "result['a_long_name']['of_a_layer']['weights']"}) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> loc("a_folder/of_a_package/model.py":12:3)
  %1 = stablehlo.tanh %0 : tensor<8x4xf32> loc("a_folder/of_a_package/model.py":13:3)
  return %1 : tensor<8x4xf32>
}
"""
TABLES = {
    "propagate": ("-o", "out.mlir", "--layout", "tpu-v5e"),
    "local": ("-o", "out.mlir", "--layout", "tpu-v5e"),
    "cost": ("--machine", "cpu-4.toml"),
    "compare": ("--machine", "cpu-4.toml", "--jobs", "1", "--random", "3"),
    "search": ("--budget", "3", "-o", "out.toml"),
    "advise": ("--machine", "cpu-4.toml", "--inputs"),
    "emit": ("--list",),
}
LINES = {
    "explain": ("--value", "%1"),
    "diff": ("--schedule", "flat"),
    "rules": (),
    "compare-reference": (),
}


@pytest.fixture
def long_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with names that do not fit beside each other, and a machine for it."""
    from importlib.resources import files

    monkeypatch.chdir(tmp_path)
    Path("in.mlir").write_text(MODULE)
    known = files("shardy_py.cost.machines") / "specs" / "cpu-8.toml"
    Path("cpu-4.toml").write_text(known.read_text().replace("8", "4"))
    return "in.mlir"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [60, 80, 100])
def test_help_has_whole_words(name: str, width: int) -> None:
    """The words of a narrow help are those of a wide one: nothing is cut, nothing broken, no line too long."""

    def shown(width: int) -> str:
        arguments = [*name.split(), "--help"]
        sizes: dict[str, Any] = {"terminal_width": width, "max_content_width": width}
        return CliRunner().invoke(group, arguments, prog_name="shardy", **sizes).output

    assert shown(width).split() == shown(1000).split()
    assert max(map(len, shown(width).splitlines())) <= width
    assert "..." not in re.sub(r"\[\w+\]\.\.\.", "", shown(width))


def test_the_help_of_passes_fits(capsys: pytest.CaptureFixture[str]) -> None:
    """The usage and the names of all passes fit eighty columns."""
    assert opt.main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("sdy-propagation-pipeline," in line.split() for line in lines)


@pytest.mark.parametrize("command", [*TABLES, *LINES])
def test_terminals_have_colour_and_short_lines(command: str, long_names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eighty columns are enough, with nothing cut; headings have a colour."""
    arguments = (command, long_names, *(TABLES | LINES)[command])
    screen = run_in_terminal(monkeypatch, 80, *arguments)
    assert max(map(len, screen.lines)) <= 80
    assert "\u2026" not in screen.text
    if command in TABLES or command == "explain":
        assert "\x1b[1;36m" in screen.raw
    if command in LINES:
        wide = run_in_terminal(monkeypatch, 1000, *arguments)
        drawn = [[line for line in item.lines if "━" not in line] for item in (screen, wide)]
        assert " ".join(drawn[0]).split() == " ".join(drawn[1]).split()


@pytest.mark.parametrize("command", TABLES)
def test_tables_in_a_pipe_are_short_and_plain(command: str, long_names: str, shardy: Any) -> None:
    """A pipe gets the width of a usual terminal, and no escape code."""
    done = shardy(command, long_names, *TABLES[command])
    assert done.exit_code == 0, done.output
    assert max(map(len, done.output.splitlines())) <= 80
    assert "\x1b" not in done.output
    assert "\u2026" not in done.output
    assert done.output.count("\n") > 2


def test_a_pipe_gets_one_line_per_item(long_names: str, shardy: Any) -> None:
    """What other programs read line by line is not wrapped."""
    lines = shardy("rules", long_names).stdout.splitlines()
    assert len(lines) == 2
    assert all("([" in line for line in lines)


def test_warnings_and_errors_have_colour_on_terminals(
    long_names: str, monkeypatch: pytest.MonkeyPatch, shardy: Any
) -> None:
    """The severity is coloured, the hint too; not where ``NO_COLOR`` is set, and not in a pipe."""
    from tests.unit.cli.terminals import terminal

    arguments = ["cost", long_names, "--machine", "nothing"]
    shown = []
    for colour in (True, False):
        with terminal(monkeypatch, 80) as screen:
            if not colour:
                monkeypatch.setenv("NO_COLOR", "1")
            with pytest.raises(SystemExit) as ended:
                group.main(arguments, prog_name="shardy", standalone_mode=True)
        assert ended.value.code == 2
        shown.append(screen)
    assert "\x1b[1;31merror:\x1b[0m there is no machine" in shown[0].raw
    assert "\x1b[36mhint:\x1b[0m" in shown[0].raw
    assert "\x1b" not in shown[1].raw
    assert shown[0].text == shown[1].text
    assert max(map(len, shown[0].lines)) <= 80
    assert shardy(*arguments).output.startswith("error: there is no machine")

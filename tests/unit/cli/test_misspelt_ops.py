"""Names that do not exist: of ops in the schedules of commands, of commands, options, schedules and devices."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from shardy_py.cli.app import shardy

pytest.importorskip("jaxlib", reason="the program is an MLIR module")

TEXT = """sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.negate %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
SCHEDULE = '[[level]]\nname = "first"\nentries = ["stablehlo.negat"]\n'
COMMANDS = {
    "propagate": ["propagate", "-q"],
    "explain a value": ["explain", "--value", "%0"],
    "explain reshards": ["explain", "--reshards"],
    "compare": ["compare", "--jobs", "1"],
    "cost": ["cost", "--machine", "tpu-v5e-4x4"],
    "diff": ["diff"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_misspelt_op_is_told_by_every_command(command: list[str], tmp_path: Path) -> None:
    """The warning has the name that was meant, and stands on stderr once."""
    module, schedule = tmp_path / "m.mlir", tmp_path / "s.toml"
    module.write_text(TEXT)
    schedule.write_text(SCHEDULE)
    done = CliRunner().invoke(shardy, [command[0], str(module), "--schedule", str(schedule), *command[1:]])
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("names 'stablehlo.negat'") == 1
    assert "did you mean stablehlo.negate" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["propagat", "m.mlir"], "No such command 'propagat': did you mean propagate?"),
        (["m.mlir"], "No such command 'm.mlir': a command comes before the file"),
        (["mpmd", "nothing"], "No such command 'nothing': the commands are "),
        (["propagate", "--in", "arg0=a"], "'--in'. Did you mean '--in-sharding' or '--inline-calls'?"),
        (["propagate", "m.mlir", "--schedule", "deflt"], "hint: did you mean default or flat?"),
        (["propagate", "m.mlir", "-o", "nowhere/m.mlir"], "nowhere/m.mlir: error: there is no folder nowhere"),
        (["emit", "m.mlir", "--device", "h100"], "'h100' is not the number of a device of the mesh"),
    ],
)
def test_an_error_says_what_may_have_been_meant(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names that are close, or what belongs in that place."""
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(TEXT)
    done = CliRunner().invoke(shardy, arguments)
    assert done.exit_code == 2
    assert message in done.stderr

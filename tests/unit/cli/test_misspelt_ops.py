"""Names of ops that do not exist, in the schedules of commands."""

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
    assert done.stderr.count("speaks of 'stablehlo.negat'") == 1
    assert "did you mean stablehlo.negate" in done.stderr

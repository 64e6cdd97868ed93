"""``shardy compare-reference``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardy_py.oracle.reference import ReferenceOutcome

REFUSED = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @main(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""

OF_XLA = """sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<32x4xf32> {
  %c = mhlo.copy %a : tensor<32x16xf32>
  %s = stablehlo.add %c, %c : tensor<32x16xf32>
  %0:2 = "mhlo.topk"(%s) <{k = 4 : i64, largest = true}> : (tensor<32x16xf32>) -> (tensor<32x4xf32>, tensor<32x4xi32>)
  return %0#0 : tensor<32x4xf32>
}
"""


def test_ops_of_mhlo(module: str, shardy: Any) -> None:
    """Modules from XLA's dumps are read on both sides; the reference's passes have no rules for their ops of MHLO."""
    Path(module).write_text(OF_XLA)
    done = shardy("compare-reference", module)
    assert (done.exit_code, done.output) == (0, "text-equal\n")


def test_equal(module: str, shardy: Any) -> None:
    """Equal results end with exit code 0, whatever the pipeline."""
    for options in ((), ("--pipeline", "sdy-basic-propagate,sdy-close-shardings")):
        done = shardy("compare-reference", module, *options)
        assert (done.exit_code, done.output) == (0, "text-equal\n")


@pytest.mark.parametrize(
    ("outcome", "code", "expected"),
    [
        (ReferenceOutcome("ok", "module {\n}\n"), 1, "different, first differences:"),
        (ReferenceOutcome("crash", "it died"), 1, "different: the reference gives no result (crash)"),
    ],
)
def test_different(
    module: str, shardy: Any, monkeypatch: pytest.MonkeyPatch, outcome: ReferenceOutcome, code: int, expected: str
) -> None:
    """Other results, or none, end with exit code 1 and say what differs."""
    monkeypatch.setattr("shardy_py.oracle.reference.Reference.run", lambda *arguments: outcome)
    done = shardy("compare-reference", module)
    assert done.exit_code == code
    assert done.stdout.startswith(expected)


@pytest.mark.parametrize(
    ("outcome", "code", "expected"),
    [
        (ReferenceOutcome("ok", "module {\n}\n"), 1, "different: the reference gives a result"),
        (ReferenceOutcome("error", "no"), 0, "both"),
    ],
)
def test_refusals(
    module: str, shardy: Any, monkeypatch: pytest.MonkeyPatch, outcome: ReferenceOutcome, code: int, expected: str
) -> None:
    """Where both refuse a module they agree."""
    monkeypatch.setattr("shardy_py.oracle.reference.Reference.run", lambda *arguments: outcome)
    Path(module).write_text(REFUSED)
    done = shardy("compare-reference", module)
    assert done.exit_code == code
    assert done.stdout.startswith(expected)
    assert "here: " in done.stdout or "here there is none" in done.stdout


def test_modules_that_cannot_be_read(module: str, shardy: Any) -> None:
    """What is no module or no pipeline is an error, with exit code 2."""
    assert shardy("compare-reference", module, "--pipeline", "sdy-nothing").exit_code == 2
    Path(module).write_text("nothing")
    done = shardy("compare-reference", module)
    assert done.exit_code == 2
    assert done.stderr.startswith("in.mlir:1:1: error:")


def test_both_sides_get_the_inlined_module(tmp_path: Path, shardy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --inline-calls neither side sees a call."""
    arguments: list[str] = []

    def run(reference: object, text: str, pipeline: str) -> ReferenceOutcome:
        arguments.append(text)
        return ReferenceOutcome("ok", text)

    monkeypatch.setattr("shardy_py.oracle.reference.Reference.run", run)
    path = tmp_path / "calls.mlir"
    path.write_text(
        "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n"
        "  %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n"
        "func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {\n"
        "  %0 = stablehlo.tanh %a : tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n"
    )
    done = shardy("compare-reference", str(path), "--inline-calls")
    assert (done.exit_code, done.output) == (0, "text-equal\n")
    assert "call @f" not in arguments[0]
    assert "stablehlo.tanh" in arguments[0]


def test_programs_of_pytorch_are_refused(tmp_path: Path, shardy: Any) -> None:
    """The error says that the reference reads MLIR, and what compares instead."""
    file = tmp_path / "model.pt2"
    file.write_bytes(b"PK")
    done = shardy("compare-reference", str(file))
    assert done.exit_code != 0
    assert "is no MLIR module" in done.stderr
    assert "shardy run FILE --compare" in done.stderr


@pytest.mark.parametrize("timeout", ["inf", "1e300"])
def test_no_limit_of_time(module: str, shardy: Any, timeout: str) -> None:
    """A time without an end, and one beyond all times of the platform, are waited for."""
    done = shardy("compare-reference", module, "--timeout", timeout)
    assert (done.exit_code, done.output) == (0, "text-equal\n")


@pytest.mark.parametrize("options", [("compare-reference", "--timeout"), ("run", "--tolerance"), ("cost", "--timeout")])
@pytest.mark.parametrize("value", ["nan", "-1"])
def test_times_and_tolerances_that_are_none(module: str, shardy: Any, options: tuple[str, str], value: str) -> None:
    """What is no number, and what is negative, is an error of the command line."""
    command, option = options
    done = shardy(command, module, option, value)
    assert done.exit_code == 2
    assert "is not in the range x>=0" in done.stderr

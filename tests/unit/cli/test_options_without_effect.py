"""No option of a command is accepted and ignored: where it would have no effect the command says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py.cli.options import option_of
from shardy_py.values import frozen
from tests.unit.cli.all_commands import all_commands

UNEVEN = """sdy.mesh @mesh = <["x"=4]>
func.func @main(%w: tensor<125x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<8x4xf32>)
    -> tensor<125x4xf32> {
  %0 = stablehlo.dot_general %w, %b, contracting_dims = [1] x [0]
      : (tensor<125x8xf32>, tensor<8x4xf32>) -> tensor<125x4xf32>
  return %0 : tensor<125x4xf32>
}
"""
SPLIT_SUM = """sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0]
      : (tensor<8x16xf32>, tensor<f32>) -> tensor<16xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<16xf32>
  return %1 : tensor<16xf32>
}
"""


@pytest.fixture
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.mlir").write_text(UNEVEN)
    Path("sum.mlir").write_text(SPLIT_SUM)
    Path("x.npz").write_bytes(b"")


pytestmark = pytest.mark.usefixtures("_files")

WITHOUT_EFFECT = [
    ("propagate p.mlir --json --for xla", "--for"),
    ("propagate p.mlir -q --layout row-major", "--layout"),
    ("propagate p.mlir -q --copies", "--copies"),
    ("local p.mlir --seed 3", "--seed"),
    ("local p.mlir --inputs x.npz", "--inputs"),
    ("local p.mlir --compare", "--compare"),
    ("local p.mlir --outputs y.npz", "--outputs"),
    ("local p.mlir --run --tolerance 0.1", "--tolerance"),
    ("local p.mlir --run --layout row-major", "--layout"),
    ("local p.mlir --json --device 1", "--device"),
    ("local p.mlir --run --inputs x.npz --seed 3", "--seed"),
    ("run p.mlir --tolerance 0.1", "--tolerance"),
    ("run p.mlir --inputs x.npz --seed 3", "--seed"),
    ("cost p.mlir --machine cpu-8 --transfers", "--transfers"),
    ("cost p.mlir --machine cpu-8 --ops", "--ops"),
    ("cost p.mlir --machine cpu-8 --json --top 3", "--top"),
    ("cost p.mlir --machine cpu-8 --timeout 3", "--timeout"),
    ("cost p.mlir --against-xla --axis x=host", "--axis"),
    ("cost p.mlir --profile xla-cpu", "--profile"),
    ("cost p.mlir --partitioner xla", "--partitioner"),
    ("cost p.mlir --json --ops", "--ops"),
    ("advise p.mlir --inputs --limit 2", "--limit"),
    ("advise p.mlir --axis x=host", "--axis"),
    ("explain p.mlir --op %0 --limit 3", "--limit"),
    ("explore p.mlir --model-explorer d --against flat", "--against"),
    ("explore p.mlir -o p.html --random 3", "--random"),
    ("compare p.mlir --seed 3", "--seed"),
    ("compare p.mlir --json - --limit 3", "--limit"),
    ("compare p.mlir --axis x=host", "--axis"),
    ("search p.mlir --axis x=host", "--axis"),
    ("diff p.mlir --schedule flat --json --limit 3", "--limit"),
    ("emit p.mlir --seed 3", "--seed"),
    ("emit p.mlir --outputs y.npz", "--outputs"),
    ("emit p.mlir --block 1", "--block"),
    ("emit p.mlir --run --target ptx", "--target"),
    ("emit p.mlir --explain --stage 3", "--stage"),
    ("emit p.mlir --list --stages d", "--stages"),
    ("emit p.mlir --coverage --device-spec a100", "--device-spec"),
    ("emit p.mlir --tile-sizes 4", "--tile-sizes"),
    ("emit p.mlir --level tile --explain", "--level"),
    ("emit p.mlir --level tile --stage initial", "--level"),
    ("emit p.mlir --level tile --target ptx", "--level"),
]


@pytest.mark.parametrize(("line", "option"), WITHOUT_EFFECT, ids=[line for line, _ in WITHOUT_EFFECT])
def test_an_option_without_effect_is_refused(line: str, option: str, shardy: Any) -> None:
    """Before any work is done, with the option and what would make it count."""
    done = shardy(*line.split())
    assert done.exit_code == 2
    assert f"{option} has no effect" in done.stderr
    assert "[option-conflict]" in done.stderr
    assert "hint: " in done.stderr


def test_all_commands_check_their_options() -> None:
    """Each command refuses what its declarations say; a default that nobody gave is no option."""
    for command in all_commands().values():
        parameters = {item.name for item in command.params}
        for need in getattr(command.callback, "option_needs", ()):
            assert set(need.names) <= parameters


@frozen(kw_only=True)
class _Own:
    """Options of a test.

    Args:
        check: Check what comes in.
        trace: Record what happens.
    """

    check: bool = True
    trace: bool = False


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((), True), (("--no-check",), False), (("--check",), True), (("--no-check", "--check"), True)],
)
def test_a_flag_that_is_on_can_be_turned_off(arguments: tuple[str, ...], expected: bool) -> None:
    """The last of both forms counts; a flag that is off by default has one form."""

    @click.command()
    @option_of(_Own, "check")
    @option_of(_Own, "trace")
    def command(check: bool, trace: bool) -> bool:
        return check

    assert command.main(list(arguments), standalone_mode=False) is expected
    flags = {item.name: (item.opts, item.secondary_opts) for item in command.params}
    assert flags == {"check": (["--check"], ["--no-check"]), "trace": (["--trace"], [])}


@pytest.mark.parametrize(
    "line",
    [
        "propagate p.mlir --json",
        "local p.mlir --json",
        "cost p.mlir --machine cpu-8 --json",
        "advise p.mlir --trials 2 --json",
        "diff p.mlir --schedule flat --json",
        "compare p.mlir --jobs 1 --schedule flat --json -",
    ],
)
def test_warnings_are_on_stderr_and_in_the_json(line: str, shardy: Any) -> None:
    """A sharding that is reduced is spoken of by every command that propagates."""
    done = shardy(*line.split())
    assert done.exit_code == 0, done.stderr
    assert "argument arg0" in done.stderr
    assert "p.mlir:2:" in done.stderr
    assert [item["code"] for item in json.loads(done.stdout)["warnings"]] == ["sharding-reduced"]
    uneven = shardy(*line.split(), "--keep-uneven-shardings")
    assert "sharding-reduced" not in uneven.stderr
    assert json.loads(uneven.stdout)["warnings"] == []


def test_the_report_names_ops_of_the_module_only(shardy: Any) -> None:
    """What a partitioner will add is in words; what is in the module by the names of its ops."""
    done = shardy("propagate", "sum.mlir", "-o", "out.mlir")
    assert "all-reduce, by a partitioner" in done.stderr
    assert "sdy.all_reduce" not in done.stderr
    assert "  sdy.reshard " in done.stderr
    assert "sdy.reshard" in Path("out.mlir").read_text()
    form = shardy("propagate", "sum.mlir", "--for", "gspmd", "-o", "gspmd.mlir")
    assert "sdy." not in form.stderr
    explicit = shardy("propagate", "sum.mlir", "--explicit-collectives", "-o", "explicit.mlir")
    assert "by a partitioner" not in explicit.stderr
    data = json.loads(shardy("propagate", "sum.mlir", "--json").stdout)
    assert data["communications"] == {"sdy.reshard": 1}
    assert data["left_to_partitioner"]["all_reduce"] == 1
    assert "given shardings reduced" in shardy("propagate", "p.mlir", "-o", "out.mlir").stderr


@pytest.mark.parametrize("line", ["propagate p.mlir -q", "cost p.mlir --machine cpu-8", "explain p.mlir --reshards"])
def test_each_warning_is_printed_once(line: str, shardy: Any) -> None:
    """What the registry and the program both warn of, too."""
    Path("toy.py").write_text(
        "import shardy_py as sdy\ntoy = sdy.Dialect('toy')\ntoy.op('toy.f', rule='i k -> i')\n\n"
        "@sdy.hookimpl\ndef shardy_register_dialects():\n    return [toy]\n"
    )
    done = shardy(*line.split(), "--plugin", "toy.py")
    assert done.exit_code == 0
    assert done.stderr.count("toy.py:3: warning: 'toy.f' op: no result has the factor k") == 1
    assert done.stderr.count("[unmarked-factor]") == 1
    assert done.stderr.count("[sharding-reduced]") == 1


def test_a_warning_of_a_rule_that_a_function_returns_is_printed_as_others_are(shardy: Any) -> None:
    """It has the line of the function, and no words of Python's own."""
    Path("toy.py").write_text(
        "import shardy_py as sdy\ntoy = sdy.Dialect('toy')\ntoy.op('toy.f', rule=lambda op: sdy.rule('i k -> i'))\n\n"
        "@sdy.hookimpl\ndef shardy_register_dialects():\n    return [toy]\n"
    )
    op = """func.func @main(%x: tensor<8x4xf32>) -> tensor<8xf32> {
      %0 = "toy.f"(%x) : (tensor<8x4xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }"""
    done = shardy("rules", "-", "--plugin", "toy.py", stdin=op)
    assert done.stderr.startswith("toy.py:3: warning: 'toy.f' op: no result has the factor k")
    assert "RuleWarning" not in done.stderr


@pytest.mark.parametrize(
    ("line", "strategy"),
    [
        ("propagate p.mlir", "basic"),
        ("propagate p.mlir", "aggressive"),
        ("propagate p.mlir", "op-priority"),
        ("propagate p.mlir", "user-priority"),
        ("cost p.mlir --machine cpu-8", "op-priority"),
        ("cost p.mlir --machine cpu-8", "user-priority"),
        ("compare p.mlir --jobs 1 --schedule flat", "op-priority"),
        ("compare p.mlir --jobs 1 --schedule flat", "user-priority"),
    ],
)
def test_user_priorities_without_effect_are_a_warning(line: str, strategy: str, shardy: Any) -> None:
    """Only one strategy follows them; the others name the first sharding with one, be it of a constraint, once."""
    Path("p.mlir").write_text(SPLIT_SUM.replace('%0 <@mesh, [{"x"}]>', '%0 <@mesh, [{"x"}p1]>'))
    done = shardy(*line.split(), "--strategy", strategy)
    assert done.exit_code == 0, done.stderr
    expected = """p.mlir:6:8: warning: 'sdy.sharding_constraint' op: result 0: the user priority p1 in [{"x"}p1]"""
    assert done.stderr.count(f"{expected} has no effect with the strategy {strategy}") == (strategy != "user-priority")
    assert done.stderr.count("[ignored-user-priority]") == (strategy != "user-priority")

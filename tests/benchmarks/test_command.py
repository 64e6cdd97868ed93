"""The command that measures; what it measures is never looked at, only that it does, and that results are equal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

pytest.importorskip("jaxlib", reason="the other side is in jaxlib")

from benchmarks.__main__ import main
from benchmarks.markdown import tables
from benchmarks.measure import Measurement, Settings, Skipped, measure
from benchmarks.programs import Program
from benchmarks.programs.distinct import OPS_PER_BLOCK, distinct_program
from benchmarks.runs import STAGES, Run
from benchmarks.starts import Starts
from benchmarks.targets import targets

ABORTING = """
sdy.mesh @mesh = <["a"=2]>
func.func private @other(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
"""A call of a declaration, at which the C++ passes abort."""
QUICK = Settings(1, memory=False, again=False, seconds=0.0)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a whole run writes."""
    folder = tmp_path_factory.mktemp("benchmark")
    (folder / "tiny.mlir").write_text(distinct_program(2 * OPS_PER_BLOCK))
    arguments = ["--alternations", "2", "--passes", "--json", str(folder / "out.json"), "--date", "2026-01-31"]
    plot = folder / "out.svg"
    if _has_matplotlib():
        arguments += ["--plot", str(plot)]
    assert main([str(folder / "tiny.mlir"), *arguments]) == 0
    assert plot.exists() == _has_matplotlib()
    data: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return data


def _has_matplotlib() -> bool:
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


@pytest.mark.slow
def test_both_sides_run_as_often_as_asked(report: dict[str, Any]) -> None:
    """Each alternation times both, and both give the same module."""
    [program] = report["programs"]
    assert program["name"] == "tiny"
    assert program["ops"] == 2 * OPS_PER_BLOCK + 4
    assert program["equal"] is True
    assert [len(program["runs"][side]) for side in ("ours", "reference", "unverified")] == [2] * 3


def test_short_programs_run_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless one says how often, a program that takes little time is measured again and again, up to a limit."""
    monkeypatch.setattr("benchmarks.measure.MANY", 2)
    program = Program("tiny", lambda: distinct_program(2 * OPS_PER_BLOCK))
    actual = measure(program, evolve(QUICK, seconds=3600.0))
    assert isinstance(actual, Measurement)
    assert len(actual.ours) == len(actual.reference) == 2


@pytest.mark.slow
def test_stages_add_up(report: dict[str, Any]) -> None:
    """The stages of a run are all of it: nothing is timed outside of them."""
    [program] = report["programs"]
    assert list(program["stages"]) == list(STAGES)
    for run in program["runs"]["ours"]:
        assert sum(run["stages"].values()) == pytest.approx(run["seconds"])
        assert run["passes"] == {}
    for run in program["runs"]["by_pass"]:
        assert sum(run["passes"].values()) < run["seconds"]
    assert {"sdy-propagate", "sdy-insert-explicit-reshards"} <= set(program["passes"])


@pytest.mark.slow
def test_everything_else_is_measured(report: dict[str, Any]) -> None:
    """Memory, solving again, starting, and what was measured where are in the report."""
    [program] = report["programs"]
    assert min(program["runs"]["memory"].values()) >= 0
    assert {"flat", "elementwise-first"} <= set(program["runs"]["again"]["again"])
    assert min(report["starts"].values()) > 0
    assert min(report["fixed_costs"].values()) > 0
    assert report["date"] == "2026-01-31"
    assert {"python", "jaxlib", "shardy_py"} <= set(report["versions"])
    assert {"pass", "not measured"} <= {target["verdict"] for target in report["targets"]}


def _measurement(name: str, seconds: float, *, ops: int = 1000, is_file: bool = False) -> Measurement:
    """Return a program for which the C++ passes take a second."""
    return Measurement(
        name, is_file, ops, Run(9, 9), (Run(seconds, seconds),), (Run(1, 1),), ((Run(seconds, seconds), Run(1, 0.5)),)
    )


def _verdict(items: list[Measurement], what: str, starts: Starts | None = None) -> tuple[str, float | None]:
    [actual] = [target for target in targets(items, starts) if what in target.what]
    return actual.verdict, actual.measured


def test_targets_take_the_right_programs() -> None:
    """A ratio is that of the program made here, files count from 500 ops on, and the worst of them decides."""
    items = [
        _measurement("gpt-32", 0.5),
        _measurement("gpt-128", 2.2),
        _measurement("gpt-128", 9.0, is_file=True),
        _measurement("small", 99.0, ops=500, is_file=True),
    ]
    assert _verdict(items, "32 layers unrolled") == ("pass", 0.5)
    assert _verdict(items, "128 layers unrolled") == ("FAIL", 2.2)
    assert _verdict(items, "in a file") == ("FAIL", 9.0)
    assert _verdict(items, "growth") == ("FAIL", pytest.approx(4.4))
    assert _verdict(items, "no two alike") == ("not measured", None)
    assert _verdict([], "shardy --help", Starts(0.1, 0.2, 0.4, 0.01, 0.9, 0.3)) == ("pass", pytest.approx(400))


def test_targets_without_the_verifier_are_those_of_processor_time() -> None:
    """Each large program in a file, their median and each small program are compared by processor time."""
    items = [_measurement(str(ratio), ratio / 2, is_file=True) for ratio in (0.4, 0.8, 2.0)]
    small = [_measurement("small", 1.0, ops=ops) for ops in (49, 500)]
    assert _verdict(items + small, "each of the programs in files") == ("FAIL", 2.0)
    assert _verdict(items + small, "median of the programs in files") == ("pass", 0.8)
    assert _verdict(small[:1], "50 to 500") == ("not measured", None)
    assert _verdict(small, "50 to 500") == ("FAIL", 2.0)


def test_a_command_is_compared_with_a_script() -> None:
    """The whole process of ours is divided by that of the C++ passes."""
    assert _verdict([], "shardy propagate", Starts(0.1, 0.2, 0.4, 0.01, 0.9, 0.3)) == ("FAIL", pytest.approx(3.0))


def test_a_ratio_compares_runs_that_follow_each_other() -> None:
    """A machine that is half as fast for some of the alternations changes times, but no ratio."""
    fast, slow = _measurement("fast", 0.9), _measurement("slow", 0.9)
    slow = evolve(slow, ours=(Run(0.9, 1.2), Run(1.8, 2.4), Run(0.8, 1.2)), reference=(Run(1, 2), Run(2, 4), Run(2, 2)))
    assert slow.ratio == pytest.approx(fast.ratio)
    assert slow.cpu_ratio == pytest.approx(0.6)


def test_unequal_results_fail() -> None:
    """A difference fails the target, however fast it was made."""
    wrong = evolve(_measurement("gpt-2", 0.1), difference="here")
    assert _verdict([wrong], "unlike") == ("FAIL", 1)
    assert _verdict([_measurement("gpt-2", 0.1)], "unlike") == ("pass", 0)


def test_what_cannot_be_measured_is_left_out() -> None:
    """A program with too few ops, one that does not parse, and one that the C++ passes refuse are named, not hidden."""
    text = distinct_program(OPS_PER_BLOCK)
    small = measure(Program("small", lambda: text, is_file=True), evolve(QUICK, min_ops=500))
    assert small == Skipped("small", f"{OPS_PER_BLOCK + 4} ops, fewer than 500")
    broken = measure(Program("broken", lambda: "func.func"), QUICK)
    assert isinstance(broken, Skipped)
    assert "not valid" in broken.reason
    declared = measure(Program("declared", lambda: ABORTING), evolve(QUICK, memory=True))
    assert isinstance(declared, Skipped)
    assert "reference: the process died" in declared.reason


def test_an_unknown_program_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is none is refused before anything runs."""
    with pytest.raises(SystemExit) as error:
        main(["gpt-7"])
    assert error.value.code == 2
    assert "gpt-7" in capsys.readouterr().err


@pytest.mark.slow
def test_tables_of_the_documentation(report: dict[str, Any]) -> None:
    """The report as Markdown has a row per program and per target, all as long as the head."""
    place, programs, lines = tables(report).split("\n\n")
    assert place.startswith("2026-01-31, ")
    assert programs.splitlines()[2].startswith(f"| tiny | {2 * OPS_PER_BLOCK + 4} | ")
    assert len(lines.splitlines()) == 2 + len(report["targets"])
    for table in (programs, lines):
        assert len({line.count("|") for line in table.splitlines()}) == 1

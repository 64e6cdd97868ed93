"""The command that measures; what it measures is never looked at, only that it does, and that results are equal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

pytest.importorskip("jaxlib", reason="the other side is in jaxlib")

from benchmarks.__main__ import main
from benchmarks.markdown import BEGIN, END, tables, write_tables
from benchmarks.measure import Measurement, Settings, Skipped, Unverified, measure
from benchmarks.processes import LargeRun, SweptSchedules, measure_large, measure_sweep
from benchmarks.programs import PROGRAMS, Program
from benchmarks.programs.distinct import OPS_PER_BLOCK, distinct_program
from benchmarks.runs import STAGES, TINY, Run, bytecode_of, copy_module, give_new_tables
from benchmarks.starts import Starts
from benchmarks.targets import Measured, targets
from shardy_py.frontends.mlir import parse_module
from shardy_py.frontends.mlir.bytecode import BytecodeReader

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
    """Return a program for which the C++ passes take a second, and half of it without the verifier."""
    unverified = Unverified(Run(seconds, seconds), Run(seconds, seconds / 2), Run(1, 0.5))
    return Measurement(name, is_file, ops, Run(9, 9), (Run(seconds, seconds),), (Run(1, 1),), (unverified,))


def _verdict(measured: Measured, what: str) -> tuple[str, float | None]:
    [actual] = [target for target in targets(measured) if what in target.what]
    return actual.verdict, actual.measured


def test_targets_take_the_right_programs() -> None:
    """A ratio is that of the program made here, by processor time without the verifier."""
    measured = Measured(
        [_measurement("gpt-32", 0.25), _measurement("gpt-128", 1.1), _measurement("gpt-128", 9.0, is_file=True)]
    )
    assert _verdict(measured, "GPT of 32 layers") == ("pass", 0.5)
    assert _verdict(measured, "memory, GPT of 128") == ("not measured", None)
    [large] = [target for target in targets(measured) if target.what == "GPT of 128 layers"]
    assert (large.verdict, large.measured) == ("FAIL", 2.2)
    assert _verdict(measured, "growth") == ("FAIL", pytest.approx(4.4))
    assert _verdict(measured, "no two alike") == ("not measured", None)
    assert _verdict(measured, "with MLIR's verifier") == ("FAIL", 9.0)


def test_targets_by_size() -> None:
    """The worst and the median of large files, of small programs, and of small ones that come again."""
    files = [_measurement(str(ratio), ratio / 2, is_file=True) for ratio in (0.4, 0.8, 2.0)]
    small = [_measurement("small", seconds, ops=ops) for seconds, ops in ((9.0, 49), (0.7, 50), (0.7, 60), (1.0, 500))]
    measured = Measured(files + small)
    assert _verdict(measured, "more than 500 ops: each") == ("FAIL", 2.0)
    assert _verdict(measured, "more than 500 ops: median") == ("pass", 0.8)
    assert _verdict(measured, "50 to 500 ops: each") == ("FAIL", 2.0)
    assert _verdict(measured, "50 to 500 ops: median") == ("FAIL", 1.4)
    assert _verdict(measured, "come again, with the same tables: each") == ("pass", 1.0)
    assert _verdict(measured, "come again, with the same tables: median") == ("pass", 0.7)
    assert _verdict(Measured(small[:1]), "50 to 500 ops: each") == ("not measured", None)


def test_targets_of_processes() -> None:
    """Starts, a sweep and a large program have their own, which smaller ones neither meet nor miss."""
    measured = Measured(
        starts=Starts(0.1, 0.2, 0.4, 0.01, 0.9, 0.3, 1.6),
        sweep=SweptSchedules(1000, 45.1, 90.0),
        large=LargeRun(1_000_100, 59.0, 11 * 1024**3),
    )
    assert _verdict(measured, "shardy propagate") == ("FAIL", 1.6)
    assert _verdict(measured, "shardy --help") == ("pass", pytest.approx(400))
    assert _verdict(measured, "1,000 schedules") == ("FAIL", 45.1)
    assert _verdict(measured, "a million ops, memory") == ("FAIL", 11)
    assert [target.verdict for target in targets(measured) if target.what == "a million ops"] == ["pass"]
    smaller = Measured(sweep=SweptSchedules(100, 4.6, 9.0), large=LargeRun(5000, 0.1, 1024**3))
    for what in ("1,000 schedules", "a million ops, memory"):
        assert _verdict(smaller, what) == ("not measured", None)


def test_new_tables_are_not_kept_tables() -> None:
    """A module with new tables is written into other bytes around its ops, and the same module is not."""
    module = parse_module(TINY)
    bytecode, context = bytecode_of(module), module.context
    assert bytecode_of(copy_module(bytecode, context)) == bytecode
    tables = [BytecodeReader(give_new_tables(copy_module(bytecode, context), number)).tables for number in (0, 1)]
    assert tables[0] != tables[1]


@pytest.mark.slow
def test_a_large_program_has_processes_of_its_own() -> None:
    """It has as many ops as were asked for at least, hardly more, and a peak with the whole process in it."""
    pytest.importorskip("jax", reason="the program is a JAX function")
    actual = measure_large(1000)
    assert 1000 <= actual.ops < 1500
    assert actual.seconds > 0
    assert actual.peak_bytes > 1e7


def test_a_sweep_needs_its_program(capsys: pytest.CaptureFixture[str]) -> None:
    """Without the file there is nothing to sweep, which the command says before it measures anything."""
    assert measure_sweep(PROGRAMS, 2) is None
    with pytest.raises(SystemExit):
        main(["gpt-2", "--sweep", "2"])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hf_llama16_train, which is not among the programs" in captured.err


def test_a_ratio_compares_runs_that_follow_each_other() -> None:
    """A machine that is half as fast for some of the alternations changes times, but no ratio."""
    fast, slow = _measurement("fast", 0.9), _measurement("slow", 0.9)
    slow = evolve(slow, ours=(Run(0.9, 1.2), Run(1.8, 2.4), Run(0.8, 1.2)), reference=(Run(1, 2), Run(2, 4), Run(2, 2)))
    assert slow.ratio == pytest.approx(fast.ratio)
    assert slow.cpu_ratio == pytest.approx(0.6)


def test_unequal_results_fail() -> None:
    """A difference fails the target, however fast it was made."""
    wrong = evolve(_measurement("gpt-2", 0.1), difference="here")
    assert _verdict(Measured([wrong]), "unlike") == ("FAIL", 1)
    assert _verdict(Measured([_measurement("gpt-2", 0.1)]), "unlike") == ("pass", 0)


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
    place, lines, _, programs = tables(report).split("\n\n")
    assert place.startswith("2026-01-31, ")
    assert programs.splitlines()[2].startswith(f"| tiny | {2 * OPS_PER_BLOCK + 4} | ")
    assert len(lines.splitlines()) == 2 + len(report["targets"])
    for table in (programs, lines):
        assert len({line.count("|") for line in table.splitlines()}) == 1
    page = f"Before.\n{BEGIN}\nold\n{END}\nAfter.\n"
    assert write_tables(report, page) == f"Before.\n{BEGIN}\n\n{tables(report)}\n\n{END}\nAfter.\n"
    assert write_tables(report, write_tables(report, page)) == write_tables(report, page)
    with pytest.raises(ValueError, match="no <!-- end"):
        write_tables(report, BEGIN)

"""Schedules side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from attrs import evolve

import shardy_py as sdy
from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import PluginFile, ProgramSource, SessionOptions
from shardy_py.cost.session import Session
from shardy_py.cost.sweeps.comparison import compare_schedules, make_comparison
from shardy_py.cost.sweeps.named_schedules import NamedSchedule, without_entries
from shardy_py.cost.sweeps.outcomes import Outcome, RefusedSchedule
from shardy_py.errors import OptionError, ShardyError
from shardy_py.ir.interfaces.ops import Contraction
from shardy_py.schedule.builtin import BUILTIN, EVERYTHING
from shardy_py.schedule.model import Entry, Level, Schedule, Selector
from shardy_py.schedule.toml import format_schedule
from tests.unit.cost.programs import BARE, LAYER, MLP, TOY_PLUGIN

MACHINE = "cpu-8"
TOY = SessionOptions(plugin_files=(PluginFile("toy.py", TOY_PLUGIN),))


def test_a_row_says_what_evaluating_its_schedule_says() -> None:
    """Each number of a row is that of the session's own evaluation; changed tensors are those of the solutions."""
    comparison = compare_schedules(LAYER, machine=MACHINE)
    session = Session.open(LAYER)
    assert {row.name for row in comparison.rows} == set(BUILTIN)
    for row in comparison.rows:
        cost = session.evaluate(row.name, MACHINE, partitioner="xla").cost
        assert row.seconds == cost.seconds.value
        assert row.communication_bytes == cost.communication_bytes.value
        assert row.peak_bytes == cost.peak_bytes.value
        assert row.balance == cost.balance.value
        assert {item.kind: item.count for item in row.collectives} == cost.counts
        assert row.parsed_schedule() == BUILTIN[row.name]
    assert comparison.first == "default"
    changed = {"default": 0, "elementwise-first": 0, "forward-only": 1, "flat": 4, "reversed": 4}
    assert changed.items() <= {row.name: row.values_changed for row in comparison.rows}.items()


def test_schedules_have_the_names_that_are_given() -> None:
    """A mapping names its schedules; the text of the comparison has a line for each, and marks the first."""
    comparison = compare_schedules(LAYER, {"mine": BUILTIN["flat"], "usual": "default"}, machine=MACHINE)
    assert comparison.first == "mine"
    assert {row.name: row.parsed_schedule() for row in comparison.rows} == {
        "mine": BUILTIN["flat"],
        "usual": BUILTIN["default"],
    }
    head, *lines = str(comparison).splitlines()
    assert head.split()[:2] == ["schedule", "seconds"]
    assert {line.split("  ")[0].strip() for line in lines} == {"mine *", "usual"}


def test_the_schedule_of_a_row_is_what_propagate_takes(tmp_path: Path) -> None:
    """Written to a file, it gives a program with the row's collectives."""
    for row in compare_schedules(LAYER, [], random=4, machine=MACHINE).rows:
        (tmp_path / "s.toml").write_text(row.schedule)
        result = sdy.propagate(LAYER, schedule=tmp_path / "s.toml", explicit_collectives=True)
        assert result.summary.reshards == row.num_collectives


@pytest.mark.parametrize("measure", ["time", "bytes", "memory"])
def test_rows_are_sorted(measure: Any) -> None:
    """The best comes first; equally good rows are in the order in which the schedules were given."""
    comparison = compare_schedules(MLP, random=8, machine=MACHINE, sorted_by=measure)
    take = {"time": "seconds", "bytes": "communication_bytes", "memory": "peak_bytes"}[measure]
    values = [getattr(row, take) for row in comparison.rows]
    assert values == sorted(values)
    names = [*BUILTIN, *(f"random-0-{i}" for i in range(8))]
    for first, second in zip(comparison.rows, comparison.rows[1:], strict=False):
        assert getattr(first, take) < getattr(second, take) or names.index(first.name) < names.index(second.name)


def test_without_a_machine_there_are_no_times() -> None:
    """Rows are sorted by bytes then; asking for the time is an error."""
    comparison = compare_schedules(LAYER)
    assert comparison.sorted_by == "bytes"
    assert {row.seconds for row in comparison.rows} == {None}
    with pytest.raises(OptionError, match="no time without a machine"):
        compare_schedules(LAYER, sorted_by="time")


def test_several_processes_give_the_same_rows() -> None:
    """The result does not depend on who evaluates what, nor on who is done first."""
    pytest.importorskip("joblib")
    alone = compare_schedules(LAYER, random=6, machine=MACHINE)
    assert compare_schedules(LAYER, random=6, machine=MACHINE, jobs=2) == alone


def test_a_cluster_gives_the_same_rows() -> None:
    """A dask.distributed cluster of two processes gives what one process gives."""
    distributed = pytest.importorskip("dask.distributed")
    joblib = pytest.importorskip("joblib")
    options = {"random": 6, "machine": MACHINE, "in_shardings": {0: ("a",)}, "options": TOY}
    alone = compare_schedules(BARE, None, {"a": 2}, **options)
    cluster_options = {"n_workers": 2, "threads_per_worker": 2, "dashboard_address": None}
    with (
        distributed.LocalCluster(**cluster_options) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        assert compare_schedules(BARE, None, {"a": 2}, **options) == alone


def test_a_sweep_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """What is in the store is not evaluated again, and the rows are those of a sweep that was never stopped."""
    evaluated: list[str] = []

    def stop(done: int, total: int, outcome: Outcome) -> None:
        evaluated.append(outcome.name)
        if done == 4:
            raise KeyboardInterrupt

    options = {"random": 3, "machine": MACHINE, "store": tmp_path / "s.jsonl"}
    with pytest.raises(KeyboardInterrupt):
        compare_schedules(LAYER, **options, progress=stop)
    assert (tmp_path / "s.jsonl").read_text().count("\n") == 5
    reports: list[tuple[int, int]] = []
    comparison = compare_schedules(LAYER, **options, progress=lambda done, total, _: reports.append((done, total)))
    assert comparison == compare_schedules(LAYER, random=3, machine=MACHINE)
    total = len(BUILTIN) + 3
    assert reports == [(i, total) for i in range(1, total + 1)]
    assert (tmp_path / "s.jsonl").read_text().count("\n") == total + 1


def test_what_is_in_a_store_is_not_evaluated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all outcomes in the store nothing is solved."""
    options = {"random": 3, "machine": MACHINE, "store": tmp_path / "s.jsonl"}
    comparison = compare_schedules(LAYER, **options)
    monkeypatch.setattr("shardy_py.cost.sweeps.evaluator.SessionEvaluator.__call__", None)
    assert compare_schedules(LAYER, **options) == comparison


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"module": LAYER.replace("8x16", "8x32").replace("16x4", "32x4")}, "program"),
        ({"machine": "h100-8"}, "machine"),
        ({"machine": None}, "machine"),
        ({"layout": "tpu-v5e"}, "machine"),
        ({"schedules": ["flat", "default"]}, "first"),
        ({"options": SessionOptions(conservative=True)}, "program"),
        ({"options": TOY}, "program"),
        ({"in_shardings": {1: (None, "a")}}, "program"),
    ],
)
def test_a_store_of_another_sweep_is_refused(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    """Whatever could change a row is compared, and named."""
    options: dict[str, Any] = {"module": LAYER, "machine": MACHINE, "store": tmp_path / "s.jsonl"}
    compare_schedules(**options)
    with pytest.raises(OptionError, match=f"of another sweep, with another {what}"):
        compare_schedules(**{**options, **change})


def test_equal_schedules_are_evaluated_once_and_keep_their_names() -> None:
    """Two names of one schedule have equal rows."""
    twice = [NamedSchedule(name, BUILTIN["flat"]) for name in ("a", "b")]
    first, second = compare_schedules(LAYER, twice, machine=MACHINE).rows
    assert (first.name, second.name) == ("a", "b")
    assert evolve(second, name="a") == first


def test_a_session_may_be_given() -> None:
    """An open session is used as it is; it can be neither sent nor stored."""
    session = Session.open(LAYER)
    assert compare_schedules(session, machine=MACHINE) == compare_schedules(LAYER, machine=MACHINE)
    with pytest.raises(OptionError, match="cannot be sent"):
        compare_schedules(session, machine=MACHINE, store="s.jsonl")


def refuse_flat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the result of the flat schedule be refused, and so that of all schedules with the same shardings."""
    price = Session.price

    def refuse(self: Session, solution: Any, *rest: Any, **options: Any) -> Any:
        if solution.shardings == self.solve("flat").shardings:
            raise ShardyError(sdy.Diagnostic("odd", "it is odd"))
        return price(self, solution, *rest, **options)

    monkeypatch.setattr(Session, "price", refuse)


def test_a_schedule_without_result_does_not_end_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a later pass refuses is listed with the reason; all others have rows."""
    refuse_flat(monkeypatch)
    names = ("default", "flat", "elementwise-first", "contractions-first", "forward-only", "reversed")
    comparison = compare_schedules(LAYER, names, machine=MACHINE)
    assert {row.name for row in comparison.rows} == {"default", "elementwise-first", "forward-only"}
    assert [item.name for item in comparison.refused] == ["flat", "contractions-first", "reversed"]
    assert {item.problems for item in comparison.refused} == {("error: it is odd [odd]",)}
    assert comparison.refused[0].schedule == format_schedule(BUILTIN["flat"])
    assert comparison.sorted("bytes").refused == comparison.refused


def test_equal_solutions_are_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every schedule is solved, but only those with shardings of their own are finished and priced."""
    session = Session.open(MLP)
    priced: list[tuple[int, ...]] = []
    price = Session.price

    def count(self: Session, solution: Any, *rest: Any, **options: Any) -> Any:
        priced.append(tuple(solution.shardings))
        return price(self, solution, *rest, **options)

    monkeypatch.setattr(Session, "price", count)
    comparison = compare_schedules(session, machine=MACHINE, random=20)
    solutions = {tuple(session.solve(row.parsed_schedule()).shardings) for row in comparison.rows}
    assert len(comparison.rows) == len(BUILTIN) + 20
    assert len(priced) == len(set(priced)) == len(solutions)
    assert set(priced) == solutions


def test_a_machine_that_does_not_fit_is_an_error() -> None:
    """No schedule could have a row, so that nothing is compared."""
    with pytest.raises(OptionError, match="mesh"):
        compare_schedules(LAYER.replace('"a"=2', '"a"=16').replace("8x", "16x"), machine=MACHINE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedules": []}, "no schedule to compare"),
        ({"schedules": ["best"]}, "no schedule named 'best'"),
        ({"machine": "best"}, "no machine 'best'"),
        ({"sorted_by": "beauty"}, "no measure 'beauty'"),
        ({"options": SessionOptions(strategy="basic")}, "has no levels"),
        ({"jobs": 0}, "jobs is 0"),
        ({"random": -1}, "random is -1"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    """Each is named."""
    with pytest.raises(OptionError, match=message):
        compare_schedules(LAYER, **{"machine": MACHINE, **options})


def test_rows_are_found_by_name() -> None:
    """The first row is the best; a comparison of nothing but refusals has none."""
    comparison = compare_schedules(LAYER, machine=MACHINE)
    assert comparison.best is comparison.rows[0]
    assert comparison.row("flat").name == "flat"
    with pytest.raises(OptionError, match="no schedule named 'best'"):
        comparison.row("best")
    refused = make_comparison([RefusedSchedule("a", "", ("it is odd",))], first="a")
    with pytest.raises(OptionError, match="a: it is odd"):
        _ = refused.best


def test_a_source_opens_the_same_program_elsewhere() -> None:
    """Mesh, shardings and plugins travel with the text; a module that is given as an object stays as it is."""
    source = ProgramSource.of(ProgramInput(BARE, {"a": 2}, in_shardings=[("a",)]), TOY)
    here = TOY.open(ProgramInput(BARE, {"a": 2}, in_shardings=[("a",)]))
    there = source.open()
    assert [str(item) for item in there.problem.table.values] == [str(item) for item in here.problem.table.values]
    assert there.solve().shardings == here.solve().shardings
    assert ProgramSource.of(ProgramInput(BARE, {"a": 2}, in_shardings=[("a",)]), TOY).key == source.key
    assert ProgramSource.of(ProgramInput(BARE, {"a": 4}, in_shardings=[("a",)]), TOY).key != source.key
    assert ProgramSource.of(ProgramInput(BARE, {"a": 2}, out_shardings=[("a",)]), TOY).key != source.key
    from shardy_py.frontends.mlir import parse_module, print_module

    module = parse_module(LAYER)
    before = print_module(module)
    assert ProgramSource.of(ProgramInput(module, in_shardings={1: (None, "a")})).open().problem.num_steps
    assert print_module(module) == before


def test_programs_of_xdsl_travel_too(tmp_path: Path) -> None:
    """A file that xDSL reads is read by xDSL in other processes."""
    pytest.importorskip("xdsl")
    path = tmp_path / "layer.xdsl"
    path.write_text(
        '"func.func"() <{"sym_name" = "main", "function_type" = (tensor<8xf32>) -> tensor<8xf32>}> ({\n'
        '^bb0(%x : tensor<8xf32>):\n  "func.return"(%x) : (tensor<8xf32>) -> ()\n}) : () -> ()\n'
    )
    for mesh in (None, {"a": 2}):
        source = ProgramSource.of(ProgramInput(path, mesh))
        assert source.frontend == "xdsl"
        assert "main" in source.open().program.functions


def test_programs_that_were_built_travel_too() -> None:
    """A program of a Builder arrives with the shardings it was given, and stays as it was."""
    builder = sdy.Builder(mesh={"a": 2})
    with builder.function("main", [sdy.tensor(8)]) as (x,):
        builder.shard(x, '[{"a"}]')
        builder.return_(builder.op("stablehlo.negate", [x], [sdy.tensor(8)]))
    built_shardings = dict(builder.program.shardings)
    program = ProgramSource.of(ProgramInput(builder.build())).open().program
    assert [str(sharding) for sharding in program.shardings.values()] == ['<@mesh, [{"a"}]>']
    assert builder.program.shardings == built_shardings
    result = sdy.propagate(builder.build())
    again = ProgramSource.of(ProgramInput(result.program, in_shardings={0: ("a",)})).open().program
    assert len(again.shardings) == 3


def test_entries_that_are_dropped_one_at_a_time_tell_which_matter() -> None:
    """Sums come first and decide: without them other tensors are sharded; all else changes nothing."""
    schedule = Schedule(
        (
            Level("sums", (Entry(Selector(names=("stablehlo.add",))),)),
            Level("products", (Entry(Selector(traits=(Contraction,))), Entry(Selector(names=("toy.none",))))),
            Level("all", (EVERYTHING.entries[0],)),
        )
    )
    comparison = compare_schedules(LAYER, [NamedSchedule("mine", schedule)], drop_entries=True)
    changed = {row.name: row.values_changed for row in comparison.rows}
    assert [name for name, count in changed.items() if count] == ["without 0.0 stablehlo.add -> BOTH"]
    assert len(changed) == 5


def test_the_last_entry_is_not_dropped() -> None:
    """A schedule has at least one level, so that one of a single entry stands alone."""
    single = NamedSchedule("flat", Schedule((EVERYTHING,)))
    assert list(without_entries(single)) == []


@pytest.mark.parametrize("schedules", [True, "default", 3, Schedule((EVERYTHING,))])
def test_schedules_that_are_no_list_are_told(schedules: Any) -> None:
    """One schedule, or no schedule at all, is an error that says how a list of it is written."""
    with pytest.raises(OptionError, match="schedules are a list") as raised:
        compare_schedules(LAYER, schedules)
    assert "schedules=[" in (raised.value.diagnostics[0].hint or "")

"""Searching for a schedule."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")
pytest.importorskip("optuna")

import shardy_py as sdy
from shardy_py.cost.report.plots import draw_comparison
from shardy_py.cost.session import Session
from shardy_py.cost.sweeps.comparison import compare_schedules
from shardy_py.cost.sweeps.named_schedules import named_schedules
from shardy_py.cost.sweeps.outcomes import Outcome
from shardy_py.cost.sweeps.random_schedules import SweepOpKind
from shardy_py.cost.sweeps.search import SearchSpace, search_schedule
from shardy_py.errors import Diagnostic, OptionError, ShardyError
from shardy_py.ir.interfaces.ops import Contraction
from shardy_py.schedule.builtin import BUILTIN
from shardy_py.schedule.model import Direction, Entry, Level, Schedule, Selector
from shardy_py.sharding.rule import FactorKind
from tests.unit.cost.programs import LAYER, MLP

MACHINE = "cpu-8"
KINDS = (
    SweepOpKind("toy.add", (), (FactorKind.PASS_THROUGH,)),
    SweepOpKind("toy.matmul", (Contraction,), (FactorKind.PASS_THROUGH, FactorKind.REDUCTION)),
)


def test_the_space_holds_the_schedules_to_begin_with() -> None:
    """With everything left to it, each is in the space exactly as it is."""
    space = SearchSpace(KINDS, named_schedules(BUILTIN))
    for base in space.bases:
        assert space.schedule(space.start(base)) == base.schedule


def test_ops_move_to_the_front_as_chosen() -> None:
    """Each op gets its level, its direction, its uses and its factors; empty levels are left out."""
    space = SearchSpace(KINDS, named_schedules(["flat"]))
    assert "toy.add factors" not in space.parameters
    assert space.parameters["toy.matmul factors"] == ("all", "pass_through", "reduction")
    chosen = {
        **space.start(space.bases[0]),
        "toy.add": "2",
        "toy.add direction": "forward",
        "toy.matmul": "0",
        "toy.matmul factors": "reduction",
        "toy.matmul uses": "single",
    }
    assert set(chosen) == set(space.parameters)
    reduction = Selector(names=("toy.matmul",), factor_kinds=(FactorKind.REDUCTION,), uses="single")
    first = Level("level 0", (Entry(reduction),))
    second = Level("level 1", (Entry(Selector(names=("toy.add",)), Direction.FORWARD),))
    assert space.schedule(chosen) == Schedule((first, second, *BUILTIN["flat"].levels))


def test_the_first_trials_are_the_built_in_schedules() -> None:
    """They come in their order with their names, then the optimiser chooses; there are as many trials as allowed."""
    count = len(BUILTIN)
    search = search_schedule(LAYER, machine=MACHINE, budget=count + 3)
    assert [trial.name for trial in search.trials] == [*BUILTIN, *(f"trial {count + i}" for i in range(3))]
    assert search.default is search.trials[0]
    assert len(search_schedule(LAYER, machine=MACHINE, budget=1).trials) == 1


@pytest.mark.parametrize("measure", ["time", "bytes", "memory"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_best_is_never_worse_than_the_default(measure: Any, seed: int) -> None:
    """The best trial has the smallest measure of all, and the default schedule is one of them."""
    search = search_schedule(MLP, machine=MACHINE, minimise=measure, budget=12, seed=seed)
    take = {"time": "seconds", "bytes": "communication_bytes", "memory": "peak_bytes"}[measure]
    assert getattr(search.best, take) == min(getattr(row, take) for row in search.comparison.rows)
    assert getattr(search.best, take) <= getattr(search.default, take)
    assert search.best == next(row for row in search.trials if getattr(row, take) == getattr(search.best, take))
    assert search.comparison.best == search.best


def test_a_seed_gives_the_same_trials(tmp_path: Path) -> None:
    """The same seed chooses the same schedules, whether or not outcomes come from a store; another one others."""
    options: dict[str, Any] = {"machine": MACHINE, "budget": 14}
    single = search_schedule(MLP, seed=1, **options)
    assert search_schedule(MLP, seed=1, **options) == single
    for _ in range(2):
        assert search_schedule(MLP, seed=1, store=tmp_path / "s.jsonl", **options) == single
    assert [row.schedule for row in search_schedule(MLP, seed=2, **options).trials] != [
        row.schedule for row in single.trials
    ]


def test_several_processes_give_the_same_trials_every_time() -> None:
    """Trials of a batch are chosen before any of them is done, so that it does not matter which is done first."""
    pytest.importorskip("joblib")
    options: dict[str, Any] = {"machine": MACHINE, "budget": 10, "jobs": 2}
    reports: list[tuple[int, int]] = []

    def report(done: int, total: int, outcome: Outcome) -> None:
        reports.append((done, total))

    assert search_schedule(LAYER, progress=report, **options) == search_schedule(LAYER, **options)
    assert reports == [(i, 10) for i in range(1, 11)]


def test_the_best_schedule_is_what_propagate_takes(tmp_path: Path) -> None:
    """Written to a file, it gives the program with the collectives of the best trial."""
    search = search_schedule(LAYER, machine=MACHINE, budget=8)
    (tmp_path / "best.toml").write_text(search.best.schedule)
    result = sdy.propagate(LAYER, schedule=tmp_path / "best.toml", explicit_collectives=True)
    assert result.summary.reshards == search.best.num_collectives
    assert search.best.communication_bytes < search.default.communication_bytes


def test_the_optimiser_says_nothing(capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder) -> None:
    """Neither logs nor warnings, and its verbosity is as before."""
    import optuna

    before = optuna.logging.get_verbosity()
    search_schedule(LAYER, machine=MACHINE, budget=8)
    assert optuna.logging.get_verbosity() == before
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


def test_trials_without_result_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search goes on after a refusal; without a result of the default schedule there is nothing to compare with."""
    price = Session.price
    refused = ["flat"]

    def refuse(self: Session, solution: Any, *rest: Any, **options: Any) -> Any:
        if any(solution.shardings == self.solve(name).shardings for name in refused):
            raise ShardyError(Diagnostic("odd", "it is odd"))
        return price(self, solution, *rest, **options)

    monkeypatch.setattr(Session, "price", refuse)
    search = search_schedule(LAYER, machine=MACHINE, budget=8)
    assert "flat" in [item.name for item in search.comparison.refused]
    assert search.best.name in ("default", "elementwise-first", "forward-only")
    refused.append("default")
    with pytest.raises(OptionError, match="the default schedule has no result: error: it is odd"):
        search_schedule(LAYER, machine=MACHINE, budget=8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "the budget is 0"),
        ({"minimise": "beauty"}, "no measure 'beauty'"),
        ({"minimise": "time", "machine": None}, "no time without a machine"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    """Each is named."""
    with pytest.raises(OptionError, match=message):
        search_schedule(LAYER, **{"machine": MACHINE, **options})


@pytest.mark.parametrize(
    ("library", "use", "extra"),
    [
        ("optuna", lambda: search_schedule(LAYER), "search"),
        ("joblib", lambda: compare_schedules(LAYER, jobs=2), "parallel"),
        ("matplotlib", lambda: draw_comparison(compare_schedules(LAYER)), "plot"),
    ],
)
def test_a_missing_library_is_named(
    monkeypatch: pytest.MonkeyPatch, library: str, use: Callable[[], object], extra: str
) -> None:
    """The error says which extra brings it."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(OptionError, match=library) as caught:
        use()
    assert caught.value.diagnostics[0].hint == f"pip install 'shardy_py[{extra}]'"


def test_the_process_makes_no_difference(tmp_path: Path) -> None:
    """Another hash seed chooses the same trials."""
    (tmp_path / "in.mlir").write_text(MLP)
    command = [sys.executable, "-m", "shardy_py.cli.main", "search", "in.mlir", "--budget", "16", "--json", "-"]
    outputs = {
        subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1

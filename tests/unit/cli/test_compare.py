"""``shardy compare`` and ``shardy search``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shardy_py.schedule.builtin import BUILTIN
from tests.unit.cost.programs import BARE, LAYER, MLP, TOY_PLUGIN

MACHINE = ("--machine", "cpu-8", "--jobs", "1")
INTERRUPTED = """
import signal
from shardy_py.cost.sweeps.store import SweepStore
from shardy_py.cli.main import main

add = SweepStore.add

def add_and_interrupt(store, outcome):
    add(store, outcome)
    if len(store) == 8:
        signal.raise_signal(signal.{signal})

# The shell of a test runner may have left interrupts to be ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
SweepStore.add = add_and_interrupt
main()
"""
"""The command line, with Ctrl-C pressed once eight outcomes are in the store."""


@pytest.fixture
def layer(module: str) -> str:
    """A file on which schedules make a difference."""
    Path(module).write_text(LAYER)
    return module


def test_a_table_of_the_built_in_schedules(layer: str, shardy: Any) -> None:
    """Without schedules all built-in ones are compared, on stdout."""
    done = shardy("compare", layer, *MACHINE)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{len(BUILTIN)} schedules by time, the best first")
    assert all(name in done.stdout for name in BUILTIN)
    assert "default *" in done.stdout


def test_files_random_schedules_and_outputs(layer: str, shardy: Any) -> None:
    """The first schedule is what the others are compared with; JSON, picture and the best schedule are written."""
    Path("sums.toml").write_text('[[level]]\nentries = ["stablehlo.add"]\n')
    arguments = ("--schedule", "sums.toml", "--schedule", "flat", "--random", "3", "--seed", "5", "--sort", "memory")
    outputs = ("--json", "out.json", "--plot", "out.svg", "--save", "best.toml", "--store", "sweep.jsonl")
    done = shardy("compare", layer, *MACHINE, *arguments, *outputs)
    assert done.exit_code == 0
    data = json.loads(Path("out.json").read_text())
    assert (data["first"], data["sorted_by"]) == ("sums.toml", "memory")
    names = {"sums.toml", "flat", "random-5-0", "random-5-1", "random-5-2"}
    assert {row["name"] for row in data["rows"]} == names
    assert Path("best.toml").read_text() == data["rows"][0]["schedule"]
    assert "</svg>" in Path("out.svg").read_text()
    assert len(Path("sweep.jsonl").read_text().splitlines()) == 6
    assert shardy("propagate", layer, "-q", "--schedule", "best.toml").exit_code == 0


def test_json_on_stdout_is_all_there_is(layer: str, shardy: Any) -> None:
    """A dash prints the JSON in the place of the table."""
    done = shardy("compare", layer, *MACHINE, "--json", "-")
    assert {row["name"] for row in json.loads(done.stdout)["rows"]} == set(BUILTIN)


def test_whatever_propagate_takes_for_a_program(module: str, shardy: Any) -> None:
    """Mesh, shardings and plugin files reach the program, in other processes, too, and stdin may be it."""
    Path("toy.py").write_text(TOY_PLUGIN)
    arguments = (
        "--machine",
        "cpu-8",
        "--mesh",
        "a=2",
        "--in-sharding",
        "arg0=a,None",
        "--plugin",
        "toy.py",
        "--json",
        "-",
    )
    alone = shardy("compare", "-", *arguments, "--jobs", "1", stdin=BARE)
    assert alone.exit_code == 0
    assert json.loads(alone.stdout)["rows"][0]["values_changed"] == 0
    assert shardy("compare", "-", *arguments, "--jobs", "2", stdin=BARE).stdout == alone.stdout


def test_no_schedule_has_a_result(module: str, shardy: Any) -> None:
    """A program whose cost cannot be told is an error, and nothing is written."""
    cost = "class Cost(CostOpInterface):\n    def get_flops(self, op):\n        return -1\n\n\n"
    plugin = TOY_PLUGIN.replace("toy = ", f"from shardy_py.plugins import CostOpInterface\n\n{cost}toy = ")
    Path("toy.py").write_text(plugin.replace('rule="i j -> i j")', 'rule="i j -> i j", cost=Cost())'))
    Path(module).write_text(BARE)
    arguments = (module, *MACHINE, "--mesh", "a=2", "--in-sharding", "arg0=a,None", "--plugin", "toy.py")
    done = shardy("compare", *arguments, "--json", "out.json")
    assert (done.exit_code, done.stdout, Path("out.json").exists()) == (2, "", False)
    assert done.stderr.count("get_flops returned -1") == len(BUILTIN)


def test_without_a_machine(layer: str, shardy: Any) -> None:
    """Bytes are counted then, and no times."""
    assert shardy("compare", layer, "--jobs", "1").stdout.startswith(f"{len(BUILTIN)} schedules by bytes")


def test_a_backend_of_joblib(layer: str, shardy: Any) -> None:
    """Any backend gives the same table."""
    pytest.importorskip("joblib")
    done = shardy("compare", layer, "--machine", "cpu-8", "--backend", "threading")
    assert done.exit_code == 0
    assert done.stdout == shardy("compare", layer, *MACHINE).stdout


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--schedule", "best"], "best: error: the schedule cannot be read"),
        (["--machine", "best"], "best"),
        (["--plot", "out.pdf"], "no picture of the format 'pdf'"),
        (["--sort", "beauty"], "'beauty' is not one of"),
        (["--jobs", "0"], "jobs is 0"),
        (["--backend", "magic"], "the backend 'magic' cannot be used"),
        (["--dask-address", "tcp://x:1"], "--dask-address is for --backend dask"),
        (["--mesh", "a=4"], "the module has the mesh"),
        (["--store", "missing/s.jsonl"], "the store cannot be opened"),
        (["--store", "in.mlir"], "in.mlir:1: error: this is no store"),
        (["--json", "missing/out.json"], "missing/out.json: error: there is no folder missing"),
        (["--sort", "time"], "no time without a machine"),
    ],
)
def test_bad_options(layer: str, shardy: Any, options: list[str], expected: str) -> None:
    """Options that do not fit end in a message and exit code 2, and print no table."""
    done = shardy("compare", layer, *(() if "--jobs" in options else ("--jobs", "1")), *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert expected in done.stderr
    assert Path("in.mlir").read_text() == LAYER


@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_stopped_sweep_leaves_a_store_to_go_on_from(tmp_path: Path, signal: str, code: int) -> None:
    """Stopped by Ctrl-C or asked to end, it says where it can go on; the same command then ends as if never stopped."""
    (tmp_path / "in.mlir").write_text(MLP)
    arguments = ["compare", "in.mlir", "--random", "20", "--jobs", "1"]
    with_store = [*arguments, "--store", "s.jsonl", "--json", "out.json"]
    stopped = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(signal=signal), *with_store],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert stopped.returncode == code, stopped.stderr
    assert "stopped; s.jsonl has what is done" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    lines = (tmp_path / "s.jsonl").read_text().splitlines()
    assert 5 < len(lines) < 27
    assert all(json.loads(line) for line in lines)
    assert not (tmp_path / "out.json").exists()
    for line in (with_store, [*arguments, "--json", "new.json"]):
        subprocess.run(
            [sys.executable, "-m", "shardy_py.cli.main", *line], cwd=tmp_path, check=True, capture_output=True
        )
    assert (tmp_path / "out.json").read_text() == (tmp_path / "new.json").read_text()


def test_the_best_schedule_is_printed(layer: str, shardy: Any) -> None:
    """A search prints the schedule on stdout and the table on stderr, or writes it to a file."""
    pytest.importorskip("optuna")
    done = shardy("search", layer, *MACHINE, "--budget", "7")
    assert done.exit_code == 0
    assert done.stdout.startswith('then = "nothing"')
    assert done.stderr.startswith("7 schedules by time, the best first")
    Path("printed.toml").write_text(done.stdout)
    assert shardy("search", layer, *MACHINE, "--budget", "7", "-o", "best.toml", "--json", "all.json").stdout == ""
    assert Path("best.toml").read_text() == done.stdout
    assert len(json.loads(Path("all.json").read_text())["rows"]) == 7
    assert shardy("propagate", layer, "-q", "--schedule", "printed.toml").exit_code == 0


def test_a_search_minimises_what_it_is_told_to(layer: str, shardy: Any) -> None:
    """The measure is named in the table; without a machine it cannot be the time."""
    pytest.importorskip("optuna")
    done = shardy("search", layer, *MACHINE, "--budget", "7", "--minimise", "memory")
    assert done.stderr.startswith("7 schedules by memory")
    assert shardy("search", layer, "--budget", "7").stderr.startswith("7 schedules by bytes")
    assert shardy("search", layer, "--budget", "7", "--minimise", "time").exit_code == 2

"""Studies: what their files say, ranks with ties, and that a study that was stopped ends as one that was not."""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")

from attrs import evolve
from click.testing import CliRunner

from shardy_py.cli.app import shardy
from shardy_py.cost.studies import xla_column
from shardy_py.cost.studies.run import run_study
from shardy_py.cost.studies.settings import read_study
from shardy_py.cost.studies.table import spearman, tie_bands
from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from tests.unit.cost.programs import LAYER, MLP

STUDY = """\
schedules = ["default", "contractions-first"]
random = 2
seeds = [0, 7]
machines = ["h100-8", "cpu-8"]

[programs]
layer = "layer.mlir"
mlp = { file = "mlp.mlir" }
"""


@pytest.fixture
def file(tmp_path):
    """The file of a study, with its programs beside it."""
    (tmp_path / "layer.mlir").write_text(LAYER)
    (tmp_path / "mlp.mlir").write_text(MLP)
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


class _Stop(Exception):
    """What stops a study."""


def test_a_band_holds_what_the_estimator_does_not_tell_apart():
    """A band begins at its smallest number, not at the one before."""
    assert tie_bands([1.0, 1.04, 1.06, 2.0], 0.05) == {1.0: 1, 1.04: 1, 1.06: 2, 2.0: 3}
    assert tie_bands([0.0, 0.0, 1.0], 0.05) == {0.0: 1, 1.0: 2}


def test_ranks_are_correlated_with_equal_numbers_between_them():
    """Equal orders give 1, opposite ones -1, a flat one nothing; equal numbers have their mean rank."""
    assert spearman([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1, 1], [1, 2, 3]) is None
    assert spearman([1, 2, 2, 3], [1, 3, 2, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("random = 2", "random = -2", "random to be an integer from 0 on"),
        ("seeds", "seed", "'seed' is not a setting"),
        ('layer = "layer.mlir"', "layer = 3", r"programs\.layer to be a file"),
        ("{ file", '{ mesh = {a = "x"}, file', r"programs\.mlp\.mesh to be axes to sizes"),
        ("machines = ", "machines = = ", "not TOML"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name(file, old, new, message):
    """Nothing is ignored."""
    file.write_text(STUDY.replace(old, new))
    with pytest.raises(OptionError, match=message):
        read_study(file)


def test_a_study_warns_of_what_a_comparison_warns_of(file, tmp_path):
    """A name of no op in a schedule is a warning of the table, once, and the command prints it."""
    (tmp_path / "typo.toml").write_text('[[level]]\nentries = ["stablehlo.dot_genral"]\n')
    text = STUDY.replace('"default", "contractions-first"', '"typo.toml"').replace("random = 2", "random = 0")
    file.write_text(text.replace('"h100-8", ', ""))
    (warning,) = run_study(read_study(file), tmp_path / "study.study", jobs=1).warnings
    assert "stablehlo.dot_genral" in warning.message
    result = CliRunner().invoke(shardy, ["study", str(file), "--jobs", "1"])
    assert "stablehlo.dot_genral" in result.stderr


def test_machines_of_one_name_are_refused(file, tmp_path):
    """Rows are told apart by the names of machines, so two of them may not be equal."""
    with pytest.raises(OptionError, match="are both named"):
        run_study(evolve(read_study(file), machines=("cpu-8", "cpu-8")), tmp_path / "store", jobs=1)


def test_a_study_that_was_stopped_goes_on_and_has_the_same_table(file, tmp_path):
    """The stores have what is done; every row says where it comes from."""
    study = read_study(file)
    uninterrupted = run_study(study, tmp_path / "uninterrupted", jobs=1)

    def stop(done, total, outcome):
        if outcome.name == "random-7-0":
            raise _Stop

    with pytest.raises(_Stop):
        run_study(study, tmp_path / "stopped", jobs=1, progress=stop)
    assert run_study(study, tmp_path / "stopped", jobs=1) == uninterrupted
    assert len(uninterrupted.rows) == 2 * 2 * 6
    row = uninterrupted.rows[3].to_json()
    assert [row[name] for name in ("program", "schedule", "seed")] == ["layer", "random-0-1", 0]
    assert all(row[name] for name in ("machine", "profile", "shardy_py", "jaxlib"))
    assert len(row["program_sha256"]) == len(row["schedule_sha256"]) == 64
    assert {item.schedules for item in uninterrupted.correlations} == {6}


def test_the_command_writes_the_table_in_all_formats(file, tmp_path):
    """CSV goes to stdout where no file is given; a format without a writer is refused before the work."""
    file.write_text(STUDY.replace('machines = ["h100-8", "cpu-8"]', "").replace("mlp =", "# mlp ="))
    runner = CliRunner()
    printed = runner.invoke(shardy, ["study", str(file), "--jobs", "1"])
    assert printed.exit_code == 0, printed.output
    outputs = [str(tmp_path / f"table.{suffix}") for suffix in ("json", "tex", "csv")]
    words = [word for output in outputs for word in ("-o", output)]
    assert runner.invoke(shardy, ["study", str(file), "--jobs", "1", *words]).exit_code == 0
    assert (tmp_path / "table.csv").read_text() == printed.stdout
    assert len(json.loads((tmp_path / "table.json").read_text())["rows"]) == 6
    assert r"contractions-first & " in (tmp_path / "table.tex").read_text()
    assert runner.invoke(shardy, ["study", str(file), "-o", "table.xlsx"]).exit_code == 2


@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_pictures_of_equal_tables_are_equal(file, tmp_path, suffix):
    """They have no date."""
    pytest.importorskip("matplotlib")
    from shardy_py.cost.report.study_plot import draw_study

    file.write_text(STUDY.replace("mlp =", "# mlp =").replace("random = 2", "random = 0"))
    table = run_study(read_study(file), tmp_path / "store", jobs=1)
    assert draw_study(table, suffix) == draw_study(table, suffix)
    assert len(draw_study(table, suffix)) > 1000


@pytest.mark.parametrize("name", ["svg", "study.gif"])
def test_a_picture_needs_a_suffix_that_is_drawn(name):
    """A name without a dot has no suffix."""
    pytest.importorskip("matplotlib")
    from shardy_py.cost.report.study_plot import study_plot_format

    with pytest.raises(OptionError, match="there is no picture of the format"):
        study_plot_format(name)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are ended by a signal")
def test_a_study_with_a_killed_process_equals_the_one_without(file, tmp_path, monkeypatch):
    """The first process that opens a program is killed; the sweep goes on from its store."""
    pytest.importorskip("joblib")
    (tmp_path / "killed.py").write_text(
        "import os, signal\n"
        "import shardy_py as sdy\n"
        "@sdy.hookimpl\n"
        "def shardy_register_dialects():\n"
        "    return [sdy.Dialect('killed')]\n"
        "if os.environ.get('SHARDY_TEST_PARENT') not in (None, str(os.getpid())):\n"
        "    try:\n"
        "        os.close(os.open(os.environ['SHARDY_TEST_MARK'], os.O_CREAT | os.O_EXCL))\n"
        "    except FileExistsError:\n"
        "        pass\n"
        "    else:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    file.write_text('plugins = ["killed.py"]\n' + STUDY.replace("mlp =", "# mlp ="))
    uninterrupted = run_study(read_study(file), tmp_path / "uninterrupted", jobs=1)
    monkeypatch.setenv("SHARDY_TEST_PARENT", str(os.getpid()))
    monkeypatch.setenv("SHARDY_TEST_MARK", str(tmp_path / "mark"))
    killed = run_study(read_study(file), tmp_path / "killed", jobs=2)
    assert (tmp_path / "mark").exists()
    assert killed == uninterrupted


def _study_of_xla(tmp_path, sharding):
    """A study of one schedule and one program, whose argument has a sharding."""
    (tmp_path / "tanh.mlir").write_text(
        "func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {\n"
        "  %0 = stablehlo.tanh %x : tensor<8x8xf32>\n  return %0 : tensor<8x8xf32>\n}\n"
    )
    program = f'{{ file = "tanh.mlir", mesh = {{ a = 2 }}, in_shardings = {{ arg0 = "{sharding}" }} }}'
    (tmp_path / "tanh.toml").write_text(f'against_xla = true\nschedules = ["default"]\n[programs]\ntanh = {program}\n')
    for store in (tmp_path / "stores").glob("*.jsonl"):
        store.unlink()
    return run_study(read_study(tmp_path / "tanh.toml"), tmp_path / "stores", jobs=1)


def test_kept_bytes_of_xla_are_those_of_equal_shardings(tmp_path, monkeypatch):
    """Shardings that have the same numbers in two runs may be others, whose program is compiled."""
    numbers = iter((1.0, 2.0))
    monkeypatch.setattr(xla_column, "xla_figures", lambda *_: SimpleNamespace(communication_bytes=next(numbers)))
    tables = [_study_of_xla(tmp_path, sharding) for sharding in ("a,None", "None,a", "a,None")]
    assert [row.xla_bytes for table in tables for row in table.rows] == [1, 2, 1]


def test_a_program_that_xla_refuses_is_a_warning_and_is_tried_again(tmp_path, monkeypatch):
    """Time that was too short is no fact about the program."""
    answers = iter((UnsupportedError(Diagnostic("timeout", "too slow")), SimpleNamespace(communication_bytes=3.0)))

    def figures(*_):
        answer = next(answers)
        if isinstance(answer, UnsupportedError):
            raise answer
        return answer

    monkeypatch.setattr(xla_column, "xla_figures", figures)
    refused, compiled = (_study_of_xla(tmp_path, "a,None") for _ in range(2))
    assert ([row.xla_bytes for row in refused.rows], [row.xla_bytes for row in compiled.rows]) == ([None], [3])
    assert [item.message for item in refused.warnings if item.code == "timeout"] == ["too slow"]


def test_bytes_of_xla_need_jax(tmp_path, monkeypatch):
    """A column without numbers would say that XLA refuses all programs."""

    def figures(*_):
        raise OptionError(Diagnostic("jax-missing", "running a module needs jax"))

    monkeypatch.setattr(xla_column, "xla_figures", figures)
    with pytest.raises(OptionError, match="needs jax"):
        _study_of_xla(tmp_path, "a,None")


@pytest.mark.slow
def test_a_study_has_the_bytes_of_xla_beside_its_estimates(file, tmp_path, monkeypatch):
    """Equal shardings are compiled once, for all machines of one form; the numbers are kept for the next run."""
    pytest.importorskip("jax")
    compiled = []
    compile_program = xla_column.xla_figures
    monkeypatch.setattr(
        xla_column, "xla_figures", lambda *args: compiled.append(args) or compile_program(*args, timeout=100.0)
    )
    text = STUDY.replace("mlp =", "# mlp =").replace("random = 2", "random = 1").replace(', "cpu-8"', "")
    file.write_text("against_xla = true\n" + text)
    table = run_study(read_study(file), tmp_path / "stores", jobs=1)
    assert {row.xla_bytes > 0 for row in table.rows} == {True}
    assert 1 <= len(compiled) <= len({row.outcome.communication_bytes for row in table.rows}) + 1
    assert any("XLA" in item.first + item.second for item in table.correlations)
    count = len(compiled)
    assert run_study(read_study(file), tmp_path / "stores", jobs=1) == table
    assert len(compiled) == count

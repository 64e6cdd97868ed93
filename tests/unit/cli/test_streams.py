"""Commands whose standard streams are closed, full or without a reader."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the shell of these tests is sh")

MODULE = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
SHARDY = "from shardy_py.cli.main import main; main()"
OPT = "import sys; from shardy_py.cli.opt import main; sys.exit(main())"


def run(entry: str, arguments: str, folder: Path, *, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command by the shell, in a folder that has the module as m.mlir."""
    (folder / "m.mlir").write_text(MODULE)
    command = f'{before}"{sys.executable}" -c "{entry}" {arguments}'
    return subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False, timeout=100)


@pytest.mark.parametrize(("entry", "arguments"), [(SHARDY, "propagate -"), (OPT, "")])
def test_closed_input_is_an_error(entry: str, arguments: str, tmp_path: Path) -> None:
    """A command that reads standard input says that it is closed."""
    done = run(entry, f"{arguments} <&-", tmp_path)
    assert done.returncode == 2
    assert "standard input cannot be read: it is closed" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ("propagate m.mlir -q", "module"),
        ("local m.mlir -q", "module"),
        ("emit m.mlir", "builtin.module"),
        ("explore m.mlir", "<!doctype html>"),
        ("advise m.mlir --machine cpu-8", "module"),
    ],
)
def test_a_dash_is_standard_output(arguments: str, start: str, tmp_path: Path) -> None:
    """An output named - goes to stdout, and nothing else does; no file has this name."""
    done = run(SHARDY, f"{arguments} -o -", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(start)
    assert done.stdout.rstrip().endswith(("}", "</html>"))
    assert [path.name for path in tmp_path.iterdir()] == ["m.mlir"]


@pytest.mark.parametrize(
    ("arguments", "start", "report"),
    [
        ("run m.mlir --outputs -", "PK", "not compared"),
        ("emit m.mlir --run --outputs -", "PK", "result0"),
        ("propagate m.mlir --stubs -", "import shardy_py", "module"),
    ],
)
def test_reports_make_way_for_an_output(arguments: str, start: str, report: str, tmp_path: Path) -> None:
    """What a command prints besides an output on stdout goes to stderr."""
    done = run(SHARDY, f"{arguments} > out", tmp_path)
    assert done.returncode == 0, done.stderr
    content = (tmp_path / "out").read_bytes().decode("latin-1")
    assert content.startswith(start)
    assert report not in content.replace("result0.npy", "")
    assert report in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "propagate m.mlir --dump-dir -",
        "emit m.mlir --stages -",
        "explore m.mlir --model-explorer -",
        "compare m.mlir --jobs 1 --store -",
    ],
)
def test_folders_and_stores_are_not_standard_output(arguments: str, tmp_path: Path) -> None:
    """A dash in their place is an error that names the option, and nothing is written."""
    done = run(SHARDY, arguments, tmp_path)
    assert done.returncode == 2
    assert f"{arguments.split()[-2]} cannot be -, which is stdout" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m.mlir"]


def test_one_output_is_written_to_standard_output(tmp_path: Path) -> None:
    """Two of them there could not be told apart."""
    done = run(SHARDY, "propagate m.mlir -o - --json", tmp_path)
    assert done.returncode == 2
    assert "--output and --json write to stdout" in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("redirection", [">&-", "> /dev/full"])
@pytest.mark.parametrize(
    ("entry", "arguments"),
    [(SHARDY, "propagate -q m.mlir"), (SHARDY, "--help"), (SHARDY, "--version"), (OPT, "m.mlir")],
)
def test_output_that_is_lost_is_an_error(entry: str, arguments: str, redirection: str, tmp_path: Path) -> None:
    """A command whose output goes nowhere ends with a message of one line and exit code 2."""
    if "full" in redirection and not Path("/dev/full").exists():
        pytest.skip("there is no full device")
    done = run(entry, f"{arguments} {redirection}", tmp_path)
    assert done.returncode == 2
    assert "Bad file descriptor" in done.stderr or "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_closed_error_stream_leaves_the_output_alone(tmp_path: Path) -> None:
    """Messages that nobody reads change neither the exit code nor the file, whose number could be that of stderr."""
    done = run(OPT, "-sdy-basic-propagate m.mlir -o out.mlir 2>&-", tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "out.mlir").read_text().startswith("module {\n  sdy.mesh")


@pytest.mark.parametrize(
    ("entry", "arguments"),
    [(SHARDY, "propagate m.mlir"), (SHARDY, "plugins"), (SHARDY, "machines"), (SHARDY, "--help"), (OPT, "m.mlir")],
)
def test_a_reader_that_leaves_is_no_traceback(entry: str, arguments: str, tmp_path: Path) -> None:
    """A closed pipe ends a command quietly, with exit code 2: 1 would say that something differs."""
    done = run(entry, f"{arguments} 2> err; echo $? > code) | true", tmp_path, before="(")
    assert done.returncode == 0
    assert (tmp_path / "code").read_text() == "2\n"
    errors = (tmp_path / "err").read_text()
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors


def test_a_full_output_file_is_named(tmp_path: Path) -> None:
    """The error of a place without room has the name that was given."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no full device")
    done = run(SHARDY, "propagate -q m.mlir -o /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (2, "/dev/full: error: No space left on device [file]\n")


def test_standard_output_by_its_name(tmp_path: Path) -> None:
    """/dev/stdout is written to behind what is there, be it a pipe or a file."""
    done = run(OPT, "m.mlir -o /dev/stdout", tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("module {")
    run(OPT, "m.mlir -o /dev/stdout >> log", tmp_path)
    before = (tmp_path / "log").read_text()
    run(OPT, "m.mlir -o /dev/stdout >> log", tmp_path)
    assert (tmp_path / "log").read_text() == before + before

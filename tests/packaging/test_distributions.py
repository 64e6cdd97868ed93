"""The wheel and the sdist have what they must, and the wheel works in an environment that has nothing else."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGES = {"shardy_py": ROOT / "shardy_py", "shardy_dialects": ROOT / "dialects" / "shardy_dialects"}
LOOK = """
import json
from importlib.metadata import entry_points
import shardy_py, shardy_dialects
print(json.dumps({
    "files": [shardy_py.__file__, shardy_dialects.__file__],
    "dialects": sorted(entry.name for entry in entry_points(group="shardy_py.dialects")),
    "pytest": [entry.name for entry in entry_points(group="pytest11") if entry.value.startswith("shardy_py.")],
    "ops": len(shardy_py.Registry.from_entry_points().ops),
}))
"""
pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path) -> str:
    """Run a command as outside of the checkout, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist from the checkout."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", folder, cwd=ROOT)
    (path,) = folder.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the sdist."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        # Python 3.11 knows filters from 3.11.4 on.
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (source,) = folder.iterdir()
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=source)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel with the extras of README's first command into an empty environment."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    extras = _first_command()[0]
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    run(programs / "python", "-m", "pip", "install", "--quiet", f"{wheel}[{extras}]", cwd=folder)
    return programs


def _first_command() -> tuple[str, list[str]]:
    """Return the extras that README's first command installs, and the program that it runs then."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    match = re.search(r"^\$ pip install '\.\[(?P<extras>[\w,]+)\]' && (?P<program>.+)$", readme, re.MULTILINE)
    assert match
    return match["extras"], match["program"].split()


def test_the_wheel_has_the_packages_and_nothing_else(wheel: Path) -> None:
    """Every file of both packages is in the wheel: code, ``py.typed`` and data; no test, no example."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    files = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for package, folder in PACKAGES.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if ".dist-info/" not in name} == files
    assert {"shardy_py/py.typed", "shardy_dialects/py.typed"} <= files
    assert [name for name in files if name.endswith(".toml")]


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    """The metadata has the licence with its text, the version, README and every entry point of the project."""
    with zipfile.ZipFile(wheel) as archive:
        (info,) = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = archive.read(f"{info}/METADATA").decode()
        licence = archive.read(f"{info}/licenses/LICENSE").decode()
        points = configparser.ConfigParser()
        points.optionxform = str  # type: ignore[assignment, method-assign]
        points.read_string(archive.read(f"{info}/entry_points.txt").decode())
    assert f"\nVersion: {PROJECT['version']}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert (ROOT / "README.md").read_text(encoding="utf-8") in metadata
    assert licence == (ROOT / "LICENSE").read_text(encoding="utf-8")
    expected = {"console_scripts": PROJECT["scripts"], **PROJECT["entry-points"]}
    assert {group: dict(points[group]) for group in points.sections()} == expected


def test_the_sdist_has_what_tests_and_pages_need(sdist: Path) -> None:
    """Who unpacks the sdist finds the tests, the documentation, the examples, the licence and the changelog."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    single = {"LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml", "noxfile.py", "mkdocs.yml"}
    assert single - names == set()
    folders = {name.partition("/")[0] for name in names}
    assert {"shardy_py", "dialects", "tests", "docs", "examples", "benchmarks"} <= folders
    assert [name for name in names if "__pycache__" in name] == []


def test_the_first_command_of_the_readme_works(environment: Path, tmp_path: Path) -> None:
    """The installed program propagates the example, outside of the checkout."""
    program, *arguments = _first_command()[1]
    (tmp_path / "examples").mkdir()
    for name in arguments:
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, tmp_path / name)
    printed = run(environment / program, *arguments, cwd=tmp_path)
    assert "Propagated" in printed
    output = (tmp_path / arguments[arguments.index("-o") + 1]).read_text(encoding="utf-8")
    assert output.count("sdy.sharding") > 100


def test_entry_points_are_found(environment: Path, tmp_path: Path) -> None:
    """The installed package finds its dialects and the plugin for pytest, and every program starts."""
    actual = json.loads(run(environment / "python", "-c", LOOK, cwd=tmp_path))
    assert [path for path in actual["files"] if not Path(path).is_relative_to(environment.parent)] == []
    assert actual["dialects"] == sorted(PROJECT["entry-points"]["shardy_py.dialects"])
    assert actual["pytest"] == list(PROJECT["entry-points"]["pytest11"])
    assert actual["ops"] > 100
    for program in PROJECT["scripts"]:
        assert "usage" in run(environment / program, "--help", cwd=tmp_path).lower()

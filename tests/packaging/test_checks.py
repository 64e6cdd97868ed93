"""The checks of a change are the sessions of the noxfile, wherever they are started."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _sessions() -> dict[str, str]:
    """Return the docstring of each session."""
    pytest.importorskip("nox")
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.get_docstring(node) or "" for node in functions if node.decorator_list}


def test_nox_runs_every_session() -> None:
    """A bare ``nox`` runs each session of the file, in the environment in which it was started."""
    code = "import nox, noxfile; print(*nox.options.sessions); print(nox.options.default_venv_backend)"
    sessions = list(_sessions())
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    chosen, backend = done.stdout.splitlines()
    assert sorted(chosen.split()) == sorted(sessions)
    assert backend == "none"


def test_a_session_that_fails_fails_nox(tmp_path: Path) -> None:
    """A check that finds something makes ``nox`` fail, and the checks after it run all the same."""
    _sessions()
    for name in ("noxfile.py", "pyproject.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "bad.py").write_text('"""A module."""\n\nimport os\n', encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "nox", "--session", "lint", "format"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "* lint: failed" in done.stderr
    assert "* format: success" in done.stderr


def test_hooks_are_sessions() -> None:
    """Each hook of pre-commit is a session of the noxfile and has no command of its own."""
    yaml = pytest.importorskip("yaml")
    hooks = [
        hook
        for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
        for hook in repo["hooks"]
    ]
    assert [hook["entry"] for hook in hooks] == [f"nox --session {hook['id']}" for hook in hooks]
    assert {hook["id"] for hook in hooks} <= set(_sessions())


def test_ci_runs_nox() -> None:
    """The script of the CI has no check of its own, and the guide for contributors names every session."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert script.splitlines()[-1] == "nox"
    assert [tool for tool in ("ruff", "mypy", "lint-imports", "pytest") if tool in script] == []
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [name for name in _sessions() if f"`{name}`" not in guide] == []


def test_lowest_versions_are_those_of_the_package() -> None:
    """The versions of the session `lowest` are the lower bounds of the package, all of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ("cli", "stablehlo", "jax", "xdsl", "codegen", "parallel", "plot", "search", "testing")
    texts = [*project["dependencies"], *(text for extra in extras for text in project["optional-dependencies"][extra])]
    bounds: dict[str, list[int]] = {}
    for text in texts:
        match = re.match(r"([\w-]+)>=([\d.]+)", text)
        assert match, text
        bound = [int(part) for part in match[2].split(".")]
        bounds[match[1]] = max(bounds.get(match[1], [0]), bound)
    lines = (ROOT / ".ci" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = {
        name: [int(part) for part in version.split(".")]
        for name, _, version in (line.partition("==") for line in lines)
        if version
    }
    assert {name: version[: len(bounds.get(name, version))] for name, version in pinned.items()} == bounds


def test_the_core_tests_are_there() -> None:
    """Each line of the file is a folder or a file of tests, and the guide for contributors names the command."""
    lines = (ROOT / "tests" / "core.txt").read_text(encoding="utf-8").split()
    assert [line for line in lines if not (ROOT / line).exists()] == []
    assert "tests/lit" in lines
    assert "`python -m pytest @tests/core.txt`" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

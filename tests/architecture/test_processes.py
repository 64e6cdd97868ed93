"""Processes are started in one room only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOM = ROOT / "shardy_py" / "support" / "processes"
PACKAGES = (ROOT / "shardy_py", ROOT / "dialects" / "shardy_dialects")
MODULES = {"subprocess", "multiprocessing", "pty", "popen2", "commands", "loky"}
FUNCTIONS = {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"}
CLASSES = {
    "Popen",
    "Parallel",
    "ProcessPoolExecutor",
    "LocalCluster",
    "Client",
    "create_subprocess_exec",
    "create_subprocess_shell",
}

WORDS = re.compile(rf"\b({'|'.join(sorted(MODULES | FUNCTIONS | CLASSES))}|exec|spawn)")
"""What a file says that starts processes; the others need not be parsed."""


def starts_of(code: str) -> Iterator[str]:
    """Yield what starts processes in a code: modules, functions of `os` and classes of libraries."""
    if not WORDS.search(code):
        return
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names if item.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            is_module = node.module.partition(".")[0] in MODULES
            names = [item.name for item in node.names]
            yield from (name for name in names if is_module or name in CLASSES)
            yield from (name for name in names if node.module == "os" and _is_start(name))
        elif isinstance(node, ast.Attribute):
            is_os = isinstance(node.value, ast.Name) and node.value.id == "os"
            if node.attr in CLASSES or (is_os and _is_start(node.attr)):
                yield node.attr


def _is_start(name: str) -> bool:
    return name in FUNCTIONS or name.startswith(("exec", "spawn"))


def test_no_other_room_starts_processes() -> None:
    """A process that is started elsewhere has no time limit, or the current folder on its path."""
    files = [file for package in PACKAGES for file in package.rglob("*.py") if not file.is_relative_to(ROOM)]
    actual = {str(file.relative_to(ROOT)): list(starts_of(file.read_text())) for file in files}
    assert {name: starts for name, starts in actual.items() if starts} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "from subprocess import run",
        "import multiprocessing.pool",
        "import os\nos.system('ls')",
        "from os import execv",
        "from joblib import Parallel",
        "import joblib\njoblib.Parallel()",
        "from concurrent.futures import ProcessPoolExecutor",
        "from dask.distributed import Client",
        "import asyncio\nasyncio.create_subprocess_exec('ls')",
    ],
)
def test_each_way_to_start_a_process_is_known(code: str) -> None:
    """The test above would fail."""
    assert list(starts_of(code))


def test_the_room_starts_processes() -> None:
    """The room itself is where the test above finds them."""
    assert any(list(starts_of(file.read_text())) for file in ROOM.glob("*.py"))

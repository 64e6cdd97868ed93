"""Mutants in a copy of the checkout: applied one at a time, and hunted by default tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
QUICK_TESTS = ("tests/lit", "tests/unit/propagation", "tests/unit/sharding", "tests/unit/schedule")
"""Default tests that find every mutant."""
FIRST = ("[order/", "[propagation/", "unit/propagation/", "unit/sharding/", "unit/schedule/")
"""Parts of the names of those that find most."""
_COPIED = ("shardy_py", "dialects", "tests", "pyproject.toml")
_SECONDS = 300
_RUN = """
import sys
sys.path.insert(0, {copy!r})
import shardy_py
assert shardy_py.__file__.startswith({copy!r}), shardy_py.__file__
import pytest
from tests.mutants.run_mutant import Sorted
sys.exit(pytest.main({arguments!r}, plugins=[Sorted()]))
"""


class Sorted:
    """Runs those tests first that find most faults: a mutant costs what runs until the first that fails."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort the tests, those of one kind as they are."""
        items.sort(
            key=lambda item: min((FIRST.index(name) for name in FIRST if name in item.nodeid), default=len(FIRST))
        )


def copy_checkout(folder: Path) -> Path:
    """Copy what the tests need into a folder, without bytecode; return the root of the copy."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy2(source, folder / name)
    return folder


def run_tests(copy: Path, tests: tuple[str, ...] = QUICK_TESTS) -> tuple[int, str]:
    """Run tests of a copy up to the first that fails; return the exit code of pytest and its output."""
    arguments = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]
    # Bytecode tells the age of its source in seconds: a mutant of the same second would not be seen.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _RUN.format(copy=str(copy), arguments=arguments)],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def run_mutant(mutant: Mutant, copy: Path, tests: tuple[str, ...] = QUICK_TESTS) -> tuple[int, str]:
    """Run tests of a copy with a mutant in it; return the exit code of pytest and its output.

    Raises:
        ValueError: the file does not have the text of the mutant once.
    """
    path = copy / mutant.path
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.text) != 1:
        raise ValueError(
            f"expected the text of the mutant {mutant.fault!r} once in {mutant.path}, got {text.count(mutant.text)}"
        )
    path.write_text(text.replace(mutant.text, mutant.replacement), encoding="utf-8")
    try:
        return run_tests(copy, tests)
    finally:
        path.write_text(text, encoding="utf-8")

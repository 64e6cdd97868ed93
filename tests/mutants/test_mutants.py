"""The default tests find every mutant of the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jaxlib", reason="lit files are MLIR")
pytest.importorskip("filecheck", reason="lit files check their output")

from tests.mutants.mutant import Mutant
from tests.mutants.run_mutant import ROOT, copy_checkout, run_mutant, run_tests
from tests.mutants.table import MUTANTS

SURVIVES, KILLED = 0, 1
"""Exit codes of pytest; others say that there was nothing to run."""


def test_every_mutant_has_its_text() -> None:
    """The text of a mutant is in its file once, and the file is Python with the replacement, too."""
    for mutant in MUTANTS:
        text = (ROOT / mutant.path).read_text(encoding="utf-8")
        assert text.count(mutant.text) == 1, mutant
        compile(text.replace(mutant.text, mutant.replacement), mutant.path, "exec")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout in which the tests pass."""
    folder = copy_checkout(tmp_path_factory.mktemp("mutants"))
    code, output = run_tests(folder)
    assert code == SURVIVES, output
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.fault)
def test_default_tests_kill_the_mutant(mutant: Mutant, copy: Path) -> None:
    """A test without a marker fails where the engine has the fault."""
    code, output = run_mutant(mutant, copy)
    assert code == KILLED, f"{mutant.fault}: {output}"

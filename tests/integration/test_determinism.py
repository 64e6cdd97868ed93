"""The same input gives the same bytes, whatever the hash seed and the order in which plugins are found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jaxlib", reason="the example is an MLIR module")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gpt_train.mlir"
SCRIPT = """
import random, sys
from pathlib import Path

from shardy_py.plugins import manager

found = manager.entry_points

def shuffled(**selection):
    items = list(found(**selection))
    random.Random({seed}).shuffle(items)
    return items

manager.entry_points = shuffled

import shardy_py
from shardy_py.report.data import report_json

result = shardy_py.propagate(Path({example!r}))
sys.stdout.write(result.text + report_json(result))
"""


def _run(seed: int) -> bytes:
    script = SCRIPT.format(seed=seed, example=str(EXAMPLE))
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True).stdout


def test_same_bytes() -> None:
    """Runs with different hash seeds and shuffled plugins print the same module and the same report."""
    first = _run(1)
    assert b"sdy.sharding_per_value" in first
    assert first == _run(2) == _run(3)

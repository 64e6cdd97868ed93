"""Runs the scripts and the notebooks of the gallery in ``examples``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PICTURES = EXAMPLES / "pictures"
FOLDERS = ("compiler_pipeline", "dialect_author", "kernels", "pytorch", "researcher")
"""One folder per kind of user."""


def run_python(arguments: list[object], folder: Path, *, limit: int = 300) -> str:
    """Run Python in a folder as a user does, and return what it prints.

    Raises:
        AssertionError: it fails.
    """
    program_path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PATH": program_path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

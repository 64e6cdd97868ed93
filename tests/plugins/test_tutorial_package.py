"""The package that the tutorial makes, really installed, does what the tutorial says."""

from __future__ import annotations

import doctest
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jaxlib", reason="the tutorial propagates an MLIR module")
pytest.importorskip("click", reason="the tutorial uses the command line")

from tests.docs.pages import ROOT, commands, find_blocks

PAGE = ROOT / "docs" / "tutorial" / "your-first-dialect.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_the_package_of_the_tutorial(tmp_path: Path) -> None:
    """Installed as the page says it is found without naming its file; uninstalled it is not."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed")
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    blocks = find_blocks(PAGE)
    for block in blocks:
        if "file" in block.options:
            (source / block.options["file"]).write_text(block.body, encoding="utf-8")
    (shown,) = [block for block in blocks if block.options.get("test") == "installed"]
    install, *used, uninstall = commands(shown.body)
    assert (install, uninstall) == (("pip install .", ""), ("pip uninstall -y my-dialect", ""))
    build = [] if importlib.util.find_spec("hatchling") is None else ["--no-build-isolation"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *build]
    done = subprocess.run([*pip, "--target", site, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command, expected in used:
        output = run(command, source, site)
        assert doctest.OutputChecker().check_output(expected, output, FLAGS), output
    assert "my-dialect" not in run("shardy plugins", source)


def run(command: str, directory: Path, *sites: Path) -> str:
    """Run a command where the given site folders are seen, and return what it prints."""
    path = [*map(str, sites), str(ROOT), str(ROOT / "dialects")]
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(path),
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=directory, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

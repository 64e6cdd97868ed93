"""Who may import whom, and what a bare import brings along."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import shardy_py

ROOT = Path(__file__).resolve().parents[2]
FRONTENDS = ("shardy_py.frontends.mlir", "shardy_py.frontends.xdsl", "shardy_py.jax", "shardy_py.torch")
HEAVY = ("jax", "jaxlib", "xdsl", "networkx", "numpy", "shardy_dialects", "click", "rich", *FRONTENDS)
ROOMS_OF_OTHER_COMMANDS = (
    "shardy_py.cost",
    "shardy_py.explain",
    "shardy_py.kernels",
    "shardy_py.layout",
    "shardy_py.local",
    "shardy_py.oracle",
    "shardy_py.testing",
    "shardy_py.torch.modules",
    "shardy_py.torch.parallel",
)
NEEDED_BY_FEW_PROGRAMS = (
    "shardy_dialects.stablehlo.local.dynamic_parts",
    "shardy_dialects.stablehlo.local.writer",
    "shardy_dialects.stablehlo.simplify.shapes",
    "shardy_py.api.given_sizes",
    "shardy_py.api.rules",
    "shardy_py.api.run_again",
    "shardy_py.sharding.op_attributes",
)
LIBRARIES_OF_FEW_RUNS = ("concurrent", "hashlib", "tempfile")


SHOW_MODULES = "import atexit, sys; atexit.register(lambda: print('modules:', *sys.modules, file=sys.stderr))"


def _imported_by(statement: str) -> set[str]:
    """Return the names of all modules that a fresh interpreter has imported after a statement."""
    code = f"{SHOW_MODULES}; {statement}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stderr.rpartition("modules: ")[2].split())


def _among(names: set[str], packages: tuple[str, ...]) -> list[str]:
    return sorted(name for name in names if any(name == item or name.startswith(f"{item}.") for item in packages))


def test_layers() -> None:
    """Imports point down, and only the frontend knows jaxlib."""
    pytest.importorskip("importlinter")
    from importlinter.cli import lint_imports

    before = Path.cwd()
    os.chdir(ROOT)
    try:
        assert lint_imports(config_filename="pyproject.toml", no_cache=True) == 0
    finally:
        os.chdir(before)


def test_import_is_light() -> None:
    """Importing the package imports nothing else of it, nor any library."""
    names = _imported_by("import shardy_py")
    assert _among(names, ("shardy_py", "attr", "attrs", "pluggy", *HEAVY)) == ["shardy_py"]


def test_names_come_when_they_are_looked_up() -> None:
    """Every public name is found where it is said to be; what plugins need brings no frontend."""
    missing = [name for name in shardy_py.__all__ if getattr(shardy_py, name, None) is None]
    assert missing == []
    assert set(vars(shardy_py)["_HOME_OF"]) == set(shardy_py.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = shardy_py.nothing
    names = _imported_by("from shardy_py import Dialect, Registry, TensorSharding, rule")
    assert "shardy_py.plugins.registry" in names
    assert _among(names, HEAVY) == []


def test_propagate_is_light() -> None:
    """Looking up `propagate` imports the engine, but no frontend, no dialect, nor what only looks at results."""
    names = _imported_by("from shardy_py import propagate")
    assert "shardy_py.propagation.engine" in names
    assert _among(names, (*HEAVY, "shardy_py.explain", "shardy_py.layout")) == []


def test_help_is_light() -> None:
    """The help of the command line imports neither the engine nor rich."""
    pytest.importorskip("click")
    names = _imported_by("import sys; sys.argv = ['shardy', '--help']; from shardy_py.cli.main import main; main()")
    assert "shardy_py.cli.app" in names
    assert _among(names, ("jaxlib", "networkx", "shardy_dialects", "shardy_py.propagation", "rich")) == []


def test_a_command_imports_what_it_runs(tmp_path: Path) -> None:
    """`shardy propagate` imports no other command, no heavy library, and nothing that only others need.

    Nor numpy, which the bindings of jaxlib import by themselves.
    """
    pytest.importorskip("click")
    pytest.importorskip("jaxlib")
    module, written = tmp_path / "module.mlir", tmp_path / "written.mlir"
    module.write_text("func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }")
    command = f"sys.argv = ['shardy', 'propagate', '-o', {str(written)!r}, {str(module)!r}]"
    names = _imported_by(f"import sys; {command}; from shardy_py.cli.main import main; main()")
    assert written.exists()
    assert "shardy_dialects.stablehlo.dot" in names
    files = (ROOT / "shardy_py" / "cli" / "commands").glob("[a-z]*.py")
    commands = {f"shardy_py.cli.commands.{file.stem}" for file in files}
    assert names & commands == {"shardy_py.cli.commands.propagate"}
    assert _among(names, ("networkx", "numpy", "rich", *LIBRARIES_OF_FEW_RUNS, *ROOMS_OF_OTHER_COMMANDS)) == []
    assert _among(names, NEEDED_BY_FEW_PROGRAMS) == []

"""The example package, really installed, works as the bundled dialects do, and leaves nothing behind."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "toy_dialect"

USE = """
import json, sys
from pathlib import Path
import shardy_py as sdy
registry = sdy.Registry.from_entry_points(blocked=["stablehlo"])
found = {"ops": [name for name in registry.ops if name.startswith("toy.")]}
if found["ops"]:
    given = {0: ("data", None)}
    result = sdy.propagate(Path(sys.argv[1]), {"data": 2}, in_shardings=given, registry=registry)
    names = ("carried", "dot", "y", "more", "best")
    found["shardings"] = {name: str(result.sharding(name)) for name in names}
    found["zeros"] = result.text.count("toy.zeros")
found["banned"] = [name for name in sys.modules if name in ("jax", "jaxlib", "shardy_dialects.stablehlo")]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install a copy of the package into a folder of its own."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed")
    folder = tmp_path_factory.mktemp("toy")
    shutil.copytree(EXAMPLE, folder / "source")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    if importlib.util.find_spec("hatchling"):
        command.append("--no-build-isolation")
    done = subprocess.run(
        [*command, "--target", folder / "site", folder / "source"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


def run(*arguments: str, sites: tuple[Path, ...] = ()) -> str:
    """Run Python in a new interpreter that sees the given site folders, and return what it prints."""
    path = [*map(str, sites), str(ROOT), str(ROOT / "dialects")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_program_propagates(site: Path) -> None:
    """The package is found by its entry point, and its program is sharded without jaxlib and StableHLO."""
    pytest.importorskip("xdsl")
    actual = json.loads(run("-c", USE, str(EXAMPLE / "program.xdsl"), sites=(site,)))
    assert len(actual["ops"]) == 9
    assert set(actual["shardings"].values()) == {'<@mesh, [{"data"}, {}]>'}
    assert actual["zeros"] == 1
    assert actual["banned"] == []


def test_its_own_tests_pass(site: Path) -> None:
    """The tests that the package brings pass against the installed package."""
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(site), str(EXAMPLE / "tests"), sites=(site,))


def test_removing_it_leaves_no_trace(site: Path) -> None:
    """Without the folder nobody knows its ops."""
    assert json.loads(run("-c", USE, "-")) == {"ops": [], "banned": []}


def test_it_stays_short() -> None:
    """The package with its tests and its program is as short as promised."""
    files = [path for path in EXAMPLE.rglob("*") if path.suffix in (".py", ".toml", ".xdsl")]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 150

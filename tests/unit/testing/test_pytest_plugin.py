"""The plugin for pytest, in runs of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLUGIN = "shardy_py.testing.pytest_plugin"
SUITE = """
import pytest
import shardy_py as sdy
from shardy_py.ir import Builder, tensor


class Acme:
    __name__ = "acme"

    @sdy.hookimpl
    def shardy_register_dialects(self):
        acme = sdy.Dialect("acme")
        acme.op("acme.add", rule="..., ... -> ...")
        return [acme]


@pytest.fixture(scope="session")
def shardy_plugins():
    return [Acme()]


def program(axis):
    b = Builder(mesh=sdy.Mesh.of(x=2, y=2))
    with b.function("main", [tensor(8)]) as (a,):
        b.shard(a, '[{"%s"}]' % axis)
        b.return_(a)
    return b.program


def test_registry(shardy_registry):
    assert "acme.add" in shardy_registry.ops
    assert "sdy.reshard" in shardy_registry.ops


@pytest.mark.parametrize("case", ["a/b"])
def test_snapshot(sharding_snapshot, case):
    sharding_snapshot(program("AXIS"))
    sharding_snapshot(program("y"), "second one")


def test_twice(sharding_snapshot, request):
    request.config.option.shardy_update_snapshots = True
    sharding_snapshot(program("x"))
    with pytest.raises(ValueError, match="give them names"):
        sharding_snapshot(program("x"))
"""


def run(folder: Path, *arguments: str, plugin: bool = True) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder, with the plugin alone, or with those that are installed."""
    others = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} if plugin else {}
    path = os.pathsep.join([str(ROOT), str(ROOT / "dialects")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(("-p", PLUGIN) if plugin else ())]
    return subprocess.run(
        [*command, "--rootdir", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **others},
    )


def test_fixtures_in_a_suite(tmp_path):
    """The registry knows given plugins; snapshots are written with the option and compared without it."""
    suite = tmp_path / "test_acme.py"
    suite.write_text(SUITE.replace("AXIS", "x"))
    missing = run(tmp_path, "-k", "snapshot or registry")
    assert missing.returncode == 1
    assert "there is no snapshot" in missing.stdout
    assert "1 failed, 1 passed" in missing.stdout

    assert run(tmp_path, "--shardy-update-snapshots").returncode == 0
    written = sorted(path.name for path in (tmp_path / "snapshots" / "test_acme").iterdir())
    assert written == ["test_snapshot_a_b-second_one.txt", "test_snapshot_a_b.txt", "test_twice.txt"]
    assert run(tmp_path).returncode == 0

    suite.write_text(SUITE.replace("AXIS", "y"))
    changed = run(tmp_path, "-k", "snapshot")
    assert '+  %arg0: tensor<8xf32> <@mesh, [{"y"}]>' in changed.stdout
    assert "pytest --shardy-update-snapshots writes test_snapshot_a_b.txt" in changed.stdout


def test_plugins_can_be_left_out(tmp_path):
    """An installed plugin that is blocked is not in the registry."""
    body = "def test_it(shardy_registry):\n    assert 'stablehlo.add' not in shardy_registry.ops\n"
    (tmp_path / "test_it.py").write_text(body)
    assert run(tmp_path, "--shardy-block-plugin", "stablehlo").returncode == 0
    assert run(tmp_path).returncode == 1


def test_rules_that_differ_are_explained(tmp_path):
    """A failed comparison of two rules names the first difference."""
    body = """
    import shardy_py as sdy

    def test_it():
        bound = [sdy.rule("i k, k j -> i j", reduction=kind).bind([(8, 4), (4, 2)], [(8, 2)]) for kind in ("k", "")]
        assert bound[0] == bound[1]
    """
    (tmp_path / "test_it.py").write_text(textwrap.dedent(body))
    assert "first difference: the kind of factor j" in run(tmp_path).stdout


def test_loading_it_imports_nothing_heavy(tmp_path):
    """A plain run of pytest with the plugin imports no library of the extras, no dialect and no engine."""
    heavy = ("numpy", "hypothesis", "jax", "jaxlib", "xdsl", "networkx", "shardy_dialects", "shardy_py.propagation")
    body = f"import sys\n\ndef test_it():\n    assert not set(sys.modules) & set({heavy!r})\n"
    (tmp_path / "test_it.py").write_text(body)
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_entry_point_has_the_name_of_the_module():
    """The test runner loads the plugin once, by its entry point or by ``-p``."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert points == {PLUGIN: PLUGIN}


@pytest.mark.parametrize("arguments", [(), ("-p", PLUGIN)])
def test_an_installed_plugin_is_loaded_once(tmp_path, arguments):
    """With the entry point installed the fixtures are there, whether the plugin is asked for or not."""
    info = tmp_path / "shardy_plugin_probe-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shardy_plugin_probe\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\n{PLUGIN} = {PLUGIN}\n")
    (tmp_path / "test_it.py").write_text("def test_it(shardy_registry):\n    assert shardy_registry.ops\n")
    done = run(tmp_path, *arguments, plugin=False)
    assert done.returncode == 0, done.stdout + done.stderr

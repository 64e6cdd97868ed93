"""Packages of somebody else, one of them installed with pip, are found by their entry points."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parents[2]

DESCRIBE = """
import json, sys
from shardy_py.plugins import PluginError, Registry
arguments = json.loads(sys.argv[1])
try:
    registry = Registry.from_entry_points(**arguments)
except PluginError as error:
    print(json.dumps({"error": str(error)}))
else:
    print(json.dumps({
        "ops": [name for name in registry.ops if name.startswith("acme.")],
        "status": {item.name: item.status for item in registry.plugins},
        "origin": {item.name: item.origin for item in registry.plugins},
    }))
"""

USE = """
from shardy_py.ir import Builder, tensor
from shardy_py.ir.graph.data_flow import shardable_value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Elementwise, Registry
from shardy_py.transforms.prepare.add_data_flow_edges import AddDataFlowEdgesPass

registry = Registry.from_entry_points()
b = Builder()
with b.function("main", [tensor(8, 4)]) as (x,):
    y = b.op("acme.add", [x, x], [tensor(8, 4)])
    z = b.op("acme.flip", [y], [tensor(4, 8)])
    with b.region_op("acme.repeat", [z], [tensor(4, 8)]) as loop:
        with b.region(loop, [tensor(4, 8)]) as (argument,):
            b.op("acme.yield", [argument])
    b.return_(loop.result)
print(registry.has_trait(y.owner, Elementwise))
print(registry.get_sharding_rule(y.owner))
print(registry.get_sharding_rule(z.owner))
AddDataFlowEdgesPass().run(b.program, PassContext(registry))
print([op.name for op in b.program.walk()])
print(shardable_value(argument, registry).owner.name)
"""


@pytest.fixture(scope="module")
def install(tmp_path_factory):
    """Return a function that pip-installs a package of the data folder and returns where it went."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed")
    places = {}

    def once(name):
        if name not in places:
            places[name] = _pip_install(name, tmp_path_factory.mktemp(name))
        return places[name]

    return once


def _installed_by_hand(name, folder):
    """Return a folder with a package as pip leaves it, but for what only pip reads."""
    shutil.copytree(DATA / name / f"{name}_shardy", folder / f"{name}_shardy")
    info = folder / f"{name}_shardy-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-shardy\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(f"[shardy_py.dialects]\n{name} = {name}_shardy\n")
    return folder


def _pip_install(name, folder):
    source, target = folder / "source", folder / "site"
    shutil.copytree(DATA / name, source)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    if importlib.util.find_spec("hatchling"):
        command.append("--no-build-isolation")
    done = subprocess.run([*command, "--target", target, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def run(code, *arguments, sites=()):
    """Run code in a new interpreter that sees the given site folders, and return what it prints."""
    path = [*map(str, sites), str(ROOT), str(ROOT / "dialects"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def describe(*sites, **arguments):
    """Return what a new interpreter finds."""
    return json.loads(run(DESCRIBE, json.dumps(arguments), sites=sites))


def test_an_installed_package_is_found_by_its_entry_point(install):
    """Installing a package is all it takes to make its ops known."""
    assert describe()["ops"] == []
    actual = describe(install("acme"))
    assert actual["ops"] == ["acme.add", "acme.flip", "acme.repeat"]
    assert actual["status"]["acme"] == "loaded"
    assert actual["origin"]["acme"].replace("-", "_") == "acme_shardy 0.1"


def test_an_installed_dialect_is_used_like_a_bundled_one(install):
    """Traits, rules and data-flow edges of a third party's ops work without any change of the core."""
    lines = run(USE, sites=[install("acme")]).splitlines()
    assert lines == [
        "True",
        "<([i, j], [i, j])->([i, j]) {i=8, j=4}>",
        "<([i, j])->([j, i]) {i=8, j=4}>",
        "['func.func', 'acme.add', 'acme.flip', 'acme.repeat', 'acme.yield', 'sdy.data_flow_edge', 'func.return']",
        "sdy.data_flow_edge",
    ]


def test_a_broken_package_is_named_and_can_be_blocked(tmp_path):
    """A plugin that fails to import is one clear error, and blocking it by name helps."""
    broken = _installed_by_hand("broken", tmp_path)
    error = describe(broken)["error"]
    assert "plugin 'broken' from broken" in error
    assert "a_module_that_nobody_has" in error
    assert describe(broken, blocked=["broken"])["status"]["broken"] == "blocked"
    assert describe(broken, skip_broken=True)["status"]["broken"] == "broken"


def test_two_packages_that_claim_one_op_are_both_named(install, tmp_path):
    """The error names the op and both packages, whichever is found first."""
    acme, rival = install("acme"), _installed_by_hand("rival", tmp_path)
    first, second = describe(acme, rival)["error"], describe(rival, acme)["error"]
    assert first == second
    for part in ("'acme.add'", "plugin 'acme'", "plugin 'rival'", "0.1)"):
        assert part in first
    assert describe(acme, rival, blocked=["rival"])["ops"] == ["acme.add", "acme.flip", "acme.repeat"]

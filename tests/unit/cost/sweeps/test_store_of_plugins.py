"""Outcomes in a store are those of the plugins as they are now, with all that they import."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shardy_py.api.program_source import SessionOptions
from shardy_py.cost.sweeps.comparison import Comparison, compare_schedules
from shardy_py.plugins.plugin_files import PluginFile

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(
    %a: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>},
    %b: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {?}]>}) -> tensor<64x64xf32> {
  %0 = "my.mm"(%a, %b) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
"""
UNUSED = ("aten", "linalg", "mpmd", "onnx", "stablehlo", "tosa")
"""Plugins without an op in the program: each new version of a plugin makes a registry of all."""
OLD, NEW = 'RULE = "i k, k j -> i j"\n', 'RULE = "i k, i j -> i j"\n'
HOOK = """
@sdy.hookimpl
def shardy_register_dialects():
    return [my]
"""
EAGER = (
    'import shardy_py as sdy\n{imports}\nmy = sdy.Dialect("my")\nmy.op("my.mm", rule={rule}, reduction="k")\n' + HOOK
)
LAZY = (
    'import shardy_py as sdy\nmy = sdy.Dialect("my")\n@my.op("my.mm")\ndef rule(op):\n    {imports}\n'
    '    return sdy.rule({rule}, reduction="k")\n' + HOOK
)
SPELLINGS = [
    ("helper.py", "import helper", "helper.RULE"),
    ("helper.py", "from helper import RULE as R", "R"),
    ("helpers/rules.py", "import helpers.rules", "helpers.rules.RULE"),
    ("helpers/rules.py", "from helpers import rules", "rules.RULE"),
    ("helpers/deep/rules.py", "from helpers.deep.rules import *", "RULE"),
    ("helper.py", "import importlib; h = importlib.import_module('helper')", "h.RULE"),
    ("helper.py", "import importlib; h = importlib.import_module('hel' + 'per')", "h.RULE"),
    ("second.py", "import first", "first.second.RULE"),
    ("helpers/rules.py", "import helpers.relative", "helpers.relative.RULE"),
]


@pytest.fixture(autouse=True)
def _loaded_plugins_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    _forget(tmp_path)


def _forget(folder: Path) -> None:
    """Let this process be like a new one."""
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(folder)) or name in ("helpers", "helpers.deep"):
            del sys.modules[name]


def _write(folder: Path, helper: str, text: str) -> None:
    path = folder / helper
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (folder / "first.py").write_text("import second\n")
    if helper.startswith("helpers"):
        (folder / "helpers/relative.py").write_text("from .rules import RULE\n")


def _compare(plugin: Path, **options: Any) -> Comparison:
    session_options = SessionOptions(plugin_files=(PluginFile.read(plugin),), blocked=UNUSED)
    return compare_schedules(PROGRAM, ["flat"], options=session_options, **options)


@pytest.mark.parametrize("is_new_process", [True, False])
@pytest.mark.parametrize("template", [EAGER, LAZY], ids=["eager", "lazy"])
@pytest.mark.parametrize(("helper", "imports", "rule"), SPELLINGS)
def test_an_edited_helper_counts(
    tmp_path: Path, helper: str, imports: str, rule: str, template: str, is_new_process: bool
) -> None:
    """However a plugin imports a module, and whenever, outcomes are those of the module as it is now."""
    if template is LAZY and "*" in imports:
        pytest.skip("this import is not possible in a function")
    _write(tmp_path, helper, OLD)
    plugin = tmp_path / "plug.py"
    plugin.write_text(template.format(imports=imports, rule=rule))
    store = tmp_path / "s.jsonl"
    first = _compare(plugin, store=store)
    _write(tmp_path, helper, NEW)
    if is_new_process:
        _forget(tmp_path)
    second, fresh = _compare(plugin, store=store), _compare(plugin)
    assert second.rows == fresh.rows != first.rows
    assert [item.code for item in second.warnings] == ["store-plugins"]
    assert _compare(plugin, store=store) == fresh


READ_FILES = [
    ("rules.txt", "text = open(__file__.replace('plug.py', 'rules.txt')).read()", "text.split(chr(34))[1]"),
    (
        "rules.txt",
        "import pathlib; text = pathlib.Path(__file__).with_name('rules.txt').read_bytes()",
        "str(text)[10:-4]",
    ),
    ("source.py", "names = {}; exec(open(__file__.replace('plug', 'source')).read(), names)", "names['RULE']"),
]


@pytest.mark.parametrize("is_new_process", [True, False])
@pytest.mark.parametrize(("file", "reading", "rule"), READ_FILES)
def test_an_edited_file_that_a_plugin_reads_counts(
    tmp_path: Path, file: str, reading: str, rule: str, is_new_process: bool
) -> None:
    """A table of rules is as much of a plugin as a module is; a file that nobody reads is not."""
    _write(tmp_path, file, OLD)
    plugin, store = tmp_path / "plug.py", tmp_path / "s.jsonl"
    plugin.write_text(EAGER.format(imports=reading, rule=rule))
    first = _compare(plugin, store=store)
    _write(tmp_path, file, NEW)
    if is_new_process:
        _forget(tmp_path)
    second, fresh = _compare(plugin, store=store), _compare(plugin)
    assert second.rows == fresh.rows != first.rows
    assert [item.code for item in second.warnings] == ["store-plugins"]


def test_an_unchanged_plugin_finds_its_outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is evaluated again where nothing that counts has changed; other files beside the plugin do not count."""
    _write(tmp_path, "helper.py", OLD)
    plugin = tmp_path / "plug.py"
    plugin.write_text(LAZY.format(imports="import helper", rule="helper.RULE"))
    first = _compare(plugin, store=tmp_path / "s.jsonl")
    (tmp_path / "other.py").write_text("X = 1\n")
    _forget(tmp_path)
    monkeypatch.setattr("shardy_py.cost.sweeps.evaluator.SessionEvaluator.__call__", None)
    assert _compare(plugin, store=tmp_path / "s.jsonl") == first


def test_a_package_counts_with_its_relative_imports(tmp_path: Path) -> None:
    """A plugin that is a package is run again where one of its modules has changed."""
    plugin = tmp_path / "plug"
    _write(tmp_path, "plug/rules.py", OLD)
    (plugin / "__init__.py").write_text(EAGER.format(imports="from .rules import RULE", rule="RULE"))
    first = _compare(plugin, store=tmp_path / "s.jsonl")
    _write(tmp_path, "plug/rules.py", NEW)
    second = _compare(plugin, store=tmp_path / "s.jsonl")
    assert first.rows != second.rows == _compare(plugin).rows


def test_a_module_object_counts_with_its_file_and_imports(tmp_path: Path) -> None:
    """A plugin given as a module is known by the files of its code, in a process that has loaded them anew."""
    _write(tmp_path, "helper.py", OLD)
    (tmp_path / "plug.py").write_text(EAGER.format(imports="import helper", rule="helper.RULE"))
    sys.path.insert(0, str(tmp_path))

    def compare() -> Comparison:
        _forget(tmp_path)
        module: ModuleType = __import__("plug")
        return compare_schedules(
            PROGRAM, ["flat"], options=SessionOptions(plugins=(module,)), store=tmp_path / "s.jsonl"
        )

    first = compare()
    assert compare() == first
    _write(tmp_path, "helper.py", NEW)
    assert compare().rows != first.rows


def test_versions_of_installed_packages_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that a plugin imports is known by its version."""
    plugin = tmp_path / "plug.py"
    plugin.write_text(EAGER.format(imports="import networkx", rule='"i k, k j -> i j"'))
    file = PluginFile.read(plugin)
    assert file.imported_modules()[1].keys() == {"networkx"}
    before = _compare(plugin, store=tmp_path / "s.jsonl")
    assert before.warnings == ()
    version = importlib.metadata.version("shardy_py")
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9")
    monkeypatch.setattr("shardy_py.cost.sweeps.sweep.version", lambda name: version)
    assert [item.code for item in _compare(plugin, store=tmp_path / "s.jsonl").warnings] == ["store-plugins"]

"""Each mistake in a plugin is one clear error that names the plugin and the line, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

import shardy_py as sdy
from shardy_py.analysis.session import Session
from shardy_py.errors import Diagnostic, ShardyError
from shardy_py.plugins.files import load_plugin_file
from tests.unit.plugins.mistakes import COSTS, MISTAKES

pytest.importorskip("jaxlib", reason="the programs are MLIR modules")

pytestmark = pytest.mark.usefixtures("_loaded_plugins_go")

PRELUDE = """import shardy_py as sdy
from shardy_py.plugins import CostOpInterface, Entry, OpOperand, OpPriority, OwnCollective, Selector
toy = sdy.Dialect('toy')
"""
HOOK = """

known = [item.name for item in toy.definitions]
if "toy.f" not in known:
    toy.op("toy.f", traits=[sdy.Elementwise])
if "toy.loop" not in known:
    toy.op("toy.loop", data_flow=sdy.LoopDataFlow())
if "toy.yield" not in known:
    toy.op("toy.yield", traits=[sdy.IsTerminator])


@sdy.hookimpl
def shardy_register_dialects():
    return [toy]
"""
T = "tensor<8x16xf32>"
PROGRAM = f"""
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{}}]>}}) -> {T} {{
  %0 = "toy.f"(%x) : ({T}) -> {T}
  %1 = "toy.loop"(%0) ({{
  ^bb0(%c: {T}):
    "toy.yield"(%c) : ({T}) -> ()
  }}) {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"a", ?}}, {{?}}]>]>}} : ({T}) -> {T}
  return %1 : {T}
}}
"""


def written(body: str, folder: Path) -> Path:
    """Return the file of a plugin with a mistake."""
    path = folder / "toy_plugin.py"
    path.write_text(PRELUDE + body + HOOK)
    return path


def only_error(body: str, folder: Path, *, with_cost: bool = False) -> Diagnostic:
    """Return what is said of a mistake: one error, of ours; a rule may have several faults at one op."""
    path = written(body, folder)
    with pytest.raises(ShardyError) as caught:
        run(path, with_cost=with_cost)
    problem, *others = caught.value.diagnostics
    assert all(other.op == problem.op and other.code == problem.code for other in others)
    return problem


def run(path: Path, *, with_cost: bool) -> None:
    """Propagate the program with the plugin of a file, and perhaps ask for its cost."""
    module = load_plugin_file(path)
    sdy.propagate(PROGRAM, plugins=[module])
    if with_cost:
        Session.open(PROGRAM, plugins=[module]).evaluate(machine="cpu-8")


def check(problem: Diagnostic, said: str, folder: Path) -> None:
    """Check that a problem says something, and names the plugin and a line of its file, once."""
    text = str(problem)
    assert said in text
    assert "toy_plugin" in text.replace(str(folder / "toy_plugin.py"), "") or problem.code == "plugin-import"
    assert f"{folder / 'toy_plugin.py'}:" in text
    assert len(text) < 1500


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_error(name: str, tmp_path: Path) -> None:
    """The error says what is wrong, in which plugin, and where."""
    body, said = MISTAKES[name]
    check(only_error(body, tmp_path), said, tmp_path)


@pytest.mark.parametrize("name", COSTS)
def test_a_mistake_about_costs_is_one_error(name: str, tmp_path: Path) -> None:
    """What a plugin says of costs is met by estimates only."""
    body, said = COSTS[name]
    check(only_error(body, tmp_path, with_cost=True), said, tmp_path)


def test_a_plugin_without_mistakes(tmp_path: Path) -> None:
    """The program and the lines around the mistakes are fine."""
    module = load_plugin_file(written("", tmp_path))
    result = sdy.propagate(PROGRAM, plugins=[module], strict=True)
    assert result.warnings == ()
    assert str(result.results[0]) == '<@mesh, [{"a"}, {}]>'

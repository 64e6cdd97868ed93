"""Each mistake in a plugin is one clear error that names the plugin and the line, never a traceback."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.api.registries import load_registry
from shardy_py.cost.session import Session
from shardy_py.errors import Diagnostic, ShardyError
from shardy_py.plugins.plugin_files import load_plugin_file
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
    # The large dialects are not needed, and take most of the time.
    blocked = ["aten", "linalg", "mpmd", "onnx", "stablehlo", "tosa"]
    registry = load_registry(plugins=[load_plugin_file(path)], blocked=blocked, options=sdy.RuleOptions())
    sdy.propagate(PROGRAM, registry=registry)
    if with_cost:
        Session.open(PROGRAM, registry=registry).evaluate(machine="cpu-8")


def check(problem: Diagnostic, message: str, folder: Path) -> None:
    """Check that a problem says something, and names the plugin and a line of its file, once."""
    text = str(problem)
    # The folder's name has a number of its own.
    elsewhere = text.replace(str(folder / "toy_plugin.py"), "")
    assert message
    assert message in elsewhere
    assert "toy_plugin" in elsewhere or problem.code == "plugin-import"
    assert f"{folder / 'toy_plugin.py'}:" in text
    assert len(text) < 1500


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_error(name: str, tmp_path: Path) -> None:
    """The error says what is wrong, in which plugin, and where."""
    body, message = MISTAKES[name]
    check(only_error(body, tmp_path), message, tmp_path)


@pytest.mark.parametrize("name", COSTS)
def test_a_mistake_about_costs_is_one_error(name: str, tmp_path: Path) -> None:
    """What a plugin says of costs is met by estimates only."""
    body, message = COSTS[name]
    check(only_error(body, tmp_path, with_cost=True), message, tmp_path)


def test_a_forgotten_return_is_told(tmp_path: Path) -> None:
    """A rule function that does something and returns nothing gives a warning, as nothing is wrong for sure."""
    body = "@toy.op('toy.f')\ndef f(op):\n    sdy.rule('i j -> i j')\n"
    module = load_plugin_file(written(body, tmp_path))
    with pytest.warns(sdy.RuleWarning, match="the rule function f never returns a rule"):
        result = sdy.propagate(PROGRAM, plugins=[module])
    (warning,) = result.warnings
    assert (warning.code, warning.op) == ("no-return", "toy.f")


@pytest.mark.parametrize(
    "body",
    [
        "return sdy.rule('i j -> i j') if len(op.operands) == 1 else None",
        "return None if len(op.operands) == 2 else sdy.rule('i j -> i j')",
        "try:\n        return sdy.rule('i j -> i j')\n    except ValueError:\n        return None",
    ],
)
def test_a_rule_in_one_case_only_is_no_mistake(body: str, tmp_path: Path) -> None:
    """A function that gives a rule to some ops, and none to others, has a return."""
    module = load_plugin_file(written(f"@toy.op('toy.f')\ndef f(op):\n    {body}\n", tmp_path))
    assert not sdy.propagate(PROGRAM, plugins=[module]).warnings


@pytest.mark.parametrize(
    "body",
    [
        "@toy.op('toy.f')\ndef f(op: Op) -> Rule:\n    return sdy.rule('i j -> i j')\n",
        "@toy.op('toy.f')\ndef f(op: Op, options: Options) -> Rule:\n    return sdy.rule('i j -> i j')\n",
        "@toy.op('toy.f')\ndef f(op: Op, *, more: Size = 3) -> Rule:\n    return sdy.rule('i j -> i j')\n",
    ],
)
def test_annotations_may_name_what_only_a_type_checker_knows(body: str, tmp_path: Path) -> None:
    """They are never evaluated: not as texts, nor as Python 3.14 makes them when they are asked for."""
    path = written(body, tmp_path)
    if sys.version_info < (3, 14):
        path.write_text("from __future__ import annotations\n" + path.read_text())
    result = sdy.propagate(PROGRAM, plugins=[load_plugin_file(path)])
    assert str(result.sharding("%0")) == '<@mesh, [{"a"}, {}]>'


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"plugins": "toy.py"}, "not a list"),
        ({"plugins": ["toy.py"]}, "'toy.py' is not a plugin"),
        ({"plugins": sdy}, "not a list"),
        ({"plugins": [sdy.Dialect("toy")]}, "it is the dialect 'toy', not a plugin"),
        ({"plugins": [None]}, "None is not a plugin"),
        ({"plugins": [type("Plugin", (), {})]}, "it is the class Plugin, not an object"),
        ({"plugins": [object()]}, "it implements no hook"),
        ({"registry": [sdy.Dialect("toy")]}, "not a Registry"),
    ],
)
def test_what_is_given_in_the_place_of_plugins(wrong: dict[str, Any], message: str) -> None:
    """A file name, a dialect, a class or nothing in the place of a plugin is one error, too."""
    with pytest.raises(ShardyError) as caught:
        sdy.propagate(PROGRAM, **wrong)
    (problem,) = caught.value.diagnostics
    assert message in str(problem)


@pytest.mark.parametrize("wrong", [sdy.Dialect("toy"), "toy", ["toy"], [None], 3, [sdy]])
def test_a_registry_is_made_of_dialects(wrong: Any) -> None:
    """Anything else is an error."""
    with pytest.raises(sdy.PluginError):
        sdy.Registry.of(wrong)


def test_misspelt_names_in_orders_are_told(tmp_path: Path) -> None:
    """An order that speaks of an op that is nowhere gives a warning with the closest names."""
    module = load_plugin_file(written("", tmp_path))
    result = sdy.propagate(PROGRAM, plugins=[module], op_priorities=[["toy.lop", "toy.*", "Elementwise"]])
    assert [(item.code, item.hint) for item in result.warnings] == [
        ("unknown-op", "did you mean toy.loop or toy.f or tosa.log?"),
        ("unknown-op", "a trait is given as a marker: sdy.Elementwise"),
    ]


def test_a_plugin_without_mistakes(tmp_path: Path) -> None:
    """The program and the lines around the mistakes are fine."""
    module = load_plugin_file(written("", tmp_path))
    result = sdy.propagate(PROGRAM, plugins=[module], strict=True)
    assert result.warnings == ()
    assert str(result.results[0]) == '<@mesh, [{"a"}, {}]>'

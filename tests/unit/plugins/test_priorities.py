"""Op priorities of plugins, and plugins that get in each other's way without taking the rest down."""

from __future__ import annotations

import types
from typing import Any

import pytest

import shardy_py.plugins.manager as manager_module
from shardy_py.errors import OptionError, PluginError
from shardy_py.plugins import Dialect, Direction, Elementwise, Entry, OpPriority, Registry, Selector, hookimpl


def _plugin(name: str, *ops: str, priorities: Any = ()) -> types.ModuleType:
    module = types.ModuleType(name)
    dialect = Dialect(name)
    for op in ops:
        dialect.op(op, traits=[Elementwise])

    @hookimpl
    def shardy_register_dialects() -> list[Dialect]:
        return [dialect]

    @hookimpl
    def shardy_register_schedules() -> Any:
        return list(priorities)

    module.shardy_register_dialects = shardy_register_dialects  # type: ignore[attr-defined]
    module.shardy_register_schedules = shardy_register_schedules  # type: ignore[attr-defined]
    return module


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_module, "entry_points", lambda group: [])


def test_a_registry_has_the_priorities_of_its_plugins() -> None:
    """Priorities come from all plugins, by plugin name, and each plugin's own are shown with it."""
    first = OpPriority(0, Entry(Selector(names=("one.f",))))
    second = OpPriority(2, Entry(Selector(names=("two.*",)), Direction.FORWARD))
    registry = Registry.from_entry_points(
        plugins=[_plugin("two", "two.g", priorities=[second]), _plugin("one", "one.f", priorities=[first])]
    )
    assert registry.priorities == (first, second)
    assert [str(info.priorities[0]) for info in registry.plugins] == [
        "level 0: one.f -> BOTH",
        "level 2: two.* -> FORWARD",
    ]


@pytest.mark.parametrize(
    ("priority", "reason"),
    [
        (OpPriority(0, Entry(Selector(names=("other.f",)))), "other.f, which is not an op of the plugin"),
        (OpPriority(0, Entry(Selector())), "does not choose its ops by names only"),
        (OpPriority(0, Entry(Selector(names=("one.f",), traits=(Elementwise,)))), "by names only"),
        ("one.f first", "not a list of op priorities"),
    ],
)
def test_a_plugin_speaks_of_its_own_ops_only(priority: Any, reason: str) -> None:
    """Priorities for the ops of others, or for all of a trait, are refused."""
    with pytest.raises(PluginError, match=reason):
        Registry.from_entry_points(plugins=[_plugin("one", "one.f", priorities=[priority])])


def test_levels_begin_at_zero() -> None:
    """A negative level does not exist."""
    with pytest.raises(OptionError, match=">= 0"):
        OpPriority(-1, Entry(Selector(names=("one.f",))))


def test_a_clash_takes_nothing_else_down() -> None:
    """Where broken plugins are skipped, an op of two plugins is the first one's, and both show the problem."""
    plugins = [_plugin("two", "same.f", "two.g"), _plugin("one", "same.f"), _plugin("three", "three.h")]
    registry = Registry.from_entry_points(plugins=plugins, skip_broken=True)
    assert registry.ops == ("same.f", "three.h", "two.g")
    assert registry.owners["same.f"] == "plugin 'one', dialect 'one'"
    (problem,) = [item for item in registry.problems if item.code == "op-clash"]
    assert problem.message == "the op is defined by plugin 'one', dialect 'one' and by plugin 'two', dialect 'two'"
    assert problem.hint.endswith("until then that of plugin 'one', dialect 'one' is used")
    assert {info.name for info in registry.plugins if problem in info.problems} == {"one", "two"}
    with pytest.raises(PluginError, match=r"same\.f"):
        Registry.from_entry_points(plugins=plugins)


def test_two_plugins_of_one_name_take_nothing_else_down() -> None:
    """Where broken plugins are skipped, the second plugin of a name is left out."""
    plugins = [_plugin("one", "one.f"), _plugin("one", "one.g")]
    registry = Registry.from_entry_points(plugins=plugins, skip_broken=True)
    assert registry.ops == ("one.f",)
    assert [info.status for info in registry.plugins] == ["loaded", "broken"]
    with pytest.raises(PluginError, match="two plugins are named 'one'"):
        Registry.from_entry_points(plugins=plugins)


def test_a_broken_rule_text_is_shown_with_its_place() -> None:
    """A plugin that fails at a rule text is reported with the op, the text and the place."""

    class Broken:
        @hookimpl
        def shardy_register_dialects(self) -> list[Dialect]:
            Dialect("toy").op("toy.f", rule="i j -> i $")
            return []

    (info,) = Registry.from_entry_points(plugins=[Broken()], skip_broken=True).plugins
    (problem,) = info.problems
    assert "'toy.f' op: unexpected '$'" in problem.message
    assert problem.excerpt == "i j -> i $\n         ^"


def test_a_plugin_shows_what_it_has() -> None:
    """Names of ops and traits and the source are known without asking the plugin again."""
    module = _plugin("one", "one.g", "one.f")
    module.__file__ = "one.py"
    (info,) = Registry.from_entry_points(plugins=[module]).plugins
    assert (info.op_names, info.traits, info.source) == (("one.f", "one.g"), ("Elementwise",), "one.py")

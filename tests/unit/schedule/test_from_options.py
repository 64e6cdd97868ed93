"""Schedules by name, as a file, as lists of ops and by plugins."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.errors import Diagnostic, OptionError, PluginError
from shardy_py.ir.interfaces.ops import Contraction, Elementwise
from shardy_py.oracle.generate import generate
from shardy_py.plugins import Dialect, Entry, OpPriority, Selector, hookimpl
from shardy_py.schedule.builtin import DEFAULT, FLAT, builtin_schedule
from shardy_py.schedule.from_options import order_ops, with_plugin_priorities
from shardy_py.schedule.model import Direction, Level
from shardy_py.schedule.toml import format_schedule

pytest.importorskip("jaxlib", reason="the programs are MLIR modules")

TEXT = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}, %w: tensor<16x4xf32>,
                %y: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) -> tensor<8x4xf32> {
  %0 = "toy.dot"(%x, %w) : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = "toy.add"(%0, %y) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""
BY_ADD, BY_DOT = '<@mesh, [{}, {"a"}]>', '<@mesh, [{"a"}, {}]>'


def _toy(*priorities: OpPriority) -> types.ModuleType:
    module = types.ModuleType("toy")
    toy = Dialect("toy")
    toy.op("toy.add", traits=[sdy.Elementwise], rule="i j, i j -> i j")
    toy.op("toy.dot", traits=[Contraction], rule="i k, k j -> i j", reduction=("k",))

    @hookimpl
    def shardy_register_dialects() -> list[Dialect]:
        return [toy]

    @hookimpl
    def shardy_register_schedules() -> list[OpPriority]:
        return list(priorities)

    module.shardy_register_dialects = shardy_register_dialects  # type: ignore[attr-defined]
    module.shardy_register_schedules = shardy_register_schedules  # type: ignore[attr-defined]
    return module


def _sum(*priorities: OpPriority, **options: Any) -> str:
    return str(sdy.propagate(TEXT, plugins=[_toy(*priorities)], **options).sharding("%1"))


def test_built_in_schedules_go_by_name() -> None:
    """The op that comes first decides: the sum by default, the product under other schedules."""
    expected = {
        "default": BY_ADD,
        "flat": BY_DOT,
        "elementwise-first": BY_ADD,
        "contractions-first": BY_DOT,
        "forward-only": BY_ADD,
        "reversed": BY_DOT,
    }
    assert _sum() == BY_ADD
    assert {name: _sum(schedule=name) for name in expected} == expected


def test_forward_only_never_goes_back() -> None:
    """The operand that only its result could shard stays as it is."""
    module = _toy()
    assert str(sdy.propagate(TEXT, plugins=[module]).sharding("arg1")) == BY_ADD
    assert sdy.propagate(TEXT, plugins=[module], schedule="forward-only").sharding("arg1") is None


def test_listed_ops_propagate_first() -> None:
    """Names, globs and traits choose the ops of a level; what is not listed comes after."""
    assert _sum(op_priorities=[["toy.dot"], ["toy.add"]]) == BY_DOT
    assert _sum(op_priorities=[["toy.d*"]]) == BY_DOT
    assert _sum(op_priorities=[[Contraction]]) == BY_DOT
    assert _sum(op_priorities=[[lambda op: op.name == "toy.dot"]]) == BY_DOT
    assert _sum(op_priorities=[["toy.add"], ["toy.dot"]], schedule="reversed") == BY_ADD


def test_a_file_orders_ops(tmp_path: Path) -> None:
    """A path, and a text that ends in .toml, is a file."""
    path = tmp_path / "dots.toml"
    path.write_text('[[level]]\nentries = ["toy.dot"]\n')
    assert _sum(schedule=path) == BY_DOT
    assert _sum(schedule=str(path)) == BY_DOT


def test_users_come_before_plugins_and_plugins_before_the_default() -> None:
    """A plugin changes the order of its ops; what the user says, whatever its form, comes before that."""
    late_sums = (OpPriority(3, Entry(Selector(names=("toy.add",)))), OpPriority(0, Entry(Selector(names=("toy.dot",)))))
    assert _sum() == BY_ADD
    assert _sum(*late_sums) == BY_DOT
    assert _sum(*late_sums, op_priorities=[["toy.add"]]) == BY_ADD
    assert _sum(*late_sums, schedule="elementwise-first") == BY_ADD
    assert _sum(*late_sums, schedule=DEFAULT) == BY_ADD


def test_orders_need_levels() -> None:
    """A strategy without levels takes no order of ops."""
    with pytest.raises(OptionError, match="no levels"):
        _sum(op_priorities=[["toy.add"]], strategy="basic")
    with pytest.raises(OptionError, match="built-in"):
        _sum(schedule="no-such-order")


def test_a_plugin_cannot_name_a_level_that_is_not_there() -> None:
    """The error lists the levels."""
    with pytest.raises(PluginError, match="the levels of the default schedule are 0 to 4"):
        _sum(OpPriority(5, Entry(Selector(names=("toy.add",)))))


def test_the_default_written_as_data_is_the_default(tmp_path: Path) -> None:
    """Random programs come out the same to the byte, whether the default is built in or read from a file."""
    path = tmp_path / "default.toml"
    path.write_text(format_schedule(DEFAULT))
    for seed in range(8):
        text = generate(seed, size=30)
        assert sdy.propagate(text, schedule=path).text == sdy.propagate(text).text


def test_a_broken_plugin_is_a_warning_unless_plugins_are_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong with an installed plugin is in the result; a plugin that is given has to work."""
    from shardy_py.plugins import manager

    class Broken:
        name = value = "broken"
        dist = types.SimpleNamespace(name="dist", version="1.0")

        def load(self) -> None:
            raise ImportError("no such thing")

    installed = manager.find_entry_points()
    monkeypatch.setattr(manager, "entry_points", lambda group: [*installed, Broken()])
    result = sdy.propagate(TEXT, plugins=[_toy()])
    assert [item.code for item in result.warnings] == ["broken-plugin"]
    assert isinstance(result.warnings[0], Diagnostic)
    assert str(result.sharding("%1")) == BY_ADD
    with pytest.raises(PluginError, match="no such thing"):
        sdy.propagate(TEXT, plugins=[_toy()], strict_plugins=True)
    with pytest.raises(PluginError, match="implements no hook"):
        sdy.propagate(TEXT, plugins=[types.ModuleType("empty")])


def test_what_comes_first_settles_with_the_rest() -> None:
    """Levels of users and plugins keep that the rest settles; it is printed."""
    schedule = order_ops([["toy.add"]], rest=builtin_schedule("settled"))
    assert schedule.settles
    assert str(schedule).endswith("the last level again, until nothing changes")
    priority = OpPriority(0, Entry(Selector(names=("toy.add",))))
    assert with_plugin_priorities(builtin_schedule("settled"), [priority]).settles


def test_listed_ops_come_first() -> None:
    """Each list is a level of its own before the levels of the rest."""
    entry = Entry(Selector(names=("toy.f",)), Direction.FORWARD)
    level = Level("mine", (entry,))
    schedule = order_ops([["toy.add", Elementwise], [entry, Selector(uses="single")], level], rest=FLAT)
    assert schedule.levels == (
        Level("given level 0", (Entry(Selector(names=("toy.add",), traits=(Elementwise,))),)),
        Level("given level 1", (entry, Entry(Selector(uses="single")))),
        level,
        *FLAT.levels,
    )


def test_an_op_outside_a_list_is_a_level() -> None:
    """An ordered list of ops needs no lists in it."""
    alone = ["toy.f", Elementwise, Selector(uses="single"), Entry(Selector(names=("toy.g",)))]
    assert order_ops(alone, rest=FLAT) == order_ops([[item] for item in alone], rest=FLAT)
    assert order_ops(["toy.f", ["toy.g", "toy.h"]]) == order_ops([["toy.f"], ["toy.g", "toy.h"]])


@pytest.mark.parametrize("priorities", ["toy.add", 3, [3], [[3]], [None], {"toy.add"}, {"toy.add": 0}])
def test_anything_else_is_refused(priorities: object) -> None:
    """What is no list, or chooses no ops, is an error that shows the form."""
    with pytest.raises(OptionError, match="op_priorities") as caught:
        order_ops(priorities)  # type: ignore[arg-type]
    assert caught.value.diagnostics[0].hint


def test_a_plugin_replaces_what_the_default_says_of_its_ops() -> None:
    """The named ops leave all levels but the last and enter the plugin's."""
    entry = Entry(Selector(names=("toy.late",)))
    schedule = with_plugin_priorities(DEFAULT, [OpPriority(2, entry)])
    assert schedule.levels[-1] == DEFAULT.levels[-1]
    assert schedule.levels[2].entries[-1] == entry
    for level in schedule.levels[:-1]:
        assert all("toy.late" in item.selector.excluded_names for item in level.entries if item != entry)
    assert with_plugin_priorities(DEFAULT, []) is DEFAULT


def test_a_level_the_default_does_not_have_is_refused() -> None:
    """A priority past the last level is an error of the plugin."""
    with pytest.raises(PluginError, match="there is no level 9"):
        with_plugin_priorities(DEFAULT, [OpPriority(9, Entry(Selector(names=("toy.f",))))])


def test_what_can_be_read_once_only_is_no_list() -> None:
    """The order is read several times, so that a generator is refused, and not found empty later."""
    with pytest.raises(OptionError, match="not a list"):
        order_ops(name for name in ["toy.f"])  # type: ignore[arg-type]

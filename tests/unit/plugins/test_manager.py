"""Plugins are found, asked, blocked, and blamed by name."""

import random
import sys
import types

import pytest

import shardy_py.plugins.manager as manager_module
from shardy_py.errors import PluginError
from shardy_py.plugins import Dialect, Elementwise, Registry, hookimpl

BUNDLED = {"func", "sdy", "stablehlo"}


def plugin(name, *ops, hook="shardy_register_dialects", answer=None):
    """Return a module that registers a dialect of the given ops under its own name."""
    module = types.ModuleType(name)
    dialect = Dialect(name)
    for op in ops:
        dialect.op(op, traits=[Elementwise])

    def function():
        return [dialect] if answer is None else answer

    function.__name__ = hook
    setattr(module, hook, hookimpl(function))
    return module


class FakeEntryPoint:
    """An entry point of a distribution that is not installed."""

    def __init__(self, module, *, dist="dist", broken=False):
        self.name = module if isinstance(module, str) else module.__name__
        self.value = self.name
        self.dist = types.SimpleNamespace(name=dist, version="1.0")
        self._module = module
        self._broken = broken

    def load(self):
        """Return the module."""
        if self._broken:
            raise ImportError("no module named 'missing'")
        return self._module


@pytest.fixture
def install(monkeypatch):
    """Return a function that replaces all installed plugins."""

    def replace(*points):
        monkeypatch.setattr(manager_module, "entry_points", lambda group: list(points))

    return replace


def test_plugins_are_found_by_entry_point_and_by_argument(install):
    """A registry has the ops of installed plugins and of those it is given, and says where they come from."""
    install(FakeEntryPoint(plugin("one", "one.f"), dist="package-one"))
    registry = Registry.from_entry_points(plugins=[plugin("two", "two.f", "two.g")])
    assert registry.ops == ("one.f", "two.f", "two.g")
    assert [(item.name, item.origin, item.dialects, item.ops) for item in registry.plugins] == [
        ("one", "package-one 1.0", ("one",), 1),
        ("two", "", ("two",), 2),
    ]


def test_a_module_takes_the_place_of_its_installed_plugin(install):
    """Its author gives the file of a plugin that is installed, perhaps in another version: there is no clash."""
    install(FakeEntryPoint(plugin("one", "one.f"), dist="package-one"))
    (info,) = Registry.from_entry_points(plugins=[plugin("one", "one.f", "one.g")]).plugins
    assert (info.origin, info.ops) == ("", 2)


def test_a_package_that_raises_is_a_broken_plugin_beside_a_module_of_its_name(install, tmp_path, monkeypatch):
    """Whether a module is that of an installed plugin is asked of its package, which may fail."""
    (tmp_path / "raising_package").mkdir()
    (tmp_path / "raising_package" / "__init__.py").write_text("raise RuntimeError('no license')")
    monkeypatch.syspath_prepend(tmp_path)
    point = FakeEntryPoint("raising", broken=True)
    point.value = "raising_package.plugin"
    install(point)
    with pytest.raises(PluginError, match="'raising'"):
        Registry.from_entry_points(plugins=[plugin("elsewhere.plugin", "one.f")])


def test_the_order_of_discovery_does_not_matter(install):
    """Shuffled entry points give an equal registry."""
    points = [FakeEntryPoint(plugin(name, f"{name}.f", f"{name}.*")) for name in ("c", "a", "b")]
    install(*points)
    first = Registry.from_entry_points()
    for seed in range(5):
        random.Random(seed).shuffle(points)
        install(*points)
        assert Registry.from_entry_points() == first


def test_a_broken_plugin_is_an_error_that_says_how_to_block_it(install):
    """A plugin that cannot be imported stops discovery with its name, its reason and the way out."""
    install(FakeEntryPoint("broken", dist="package-b", broken=True), FakeEntryPoint(plugin("good", "good.f")))
    with pytest.raises(PluginError, match="no module named 'missing'") as error:
        Registry.from_entry_points()
    assert "plugin 'broken' from package-b 1.0" in error.value.diagnostics[0].message
    assert "no rules without it; mend it, block it by its name 'broken'" in error.value.diagnostics[0].hint


def test_a_blocked_plugin_is_not_imported(install):
    """Blocking by name keeps a broken plugin out and the rest working."""
    install(FakeEntryPoint("broken", broken=True), FakeEntryPoint(plugin("good", "good.f")))
    registry = Registry.from_entry_points(blocked=["broken"])
    assert registry.ops == ("good.f",)
    assert [(item.name, item.status) for item in registry.plugins] == [("broken", "blocked"), ("good", "loaded")]


def test_broken_plugins_can_be_recorded_instead(install):
    """With skip_broken the registry has the working plugins and the problems of the others."""
    install(FakeEntryPoint("broken", broken=True), FakeEntryPoint(plugin("good", "good.f")))
    registry = Registry.from_entry_points(skip_broken=True)
    assert registry.ops == ("good.f",)
    assert registry.plugins[0].status == "broken"
    assert "no module named 'missing'" in registry.plugins[0].problems[0].message


def test_all_broken_plugins_are_named_at_once(install):
    """One run shows all problems."""
    install(FakeEntryPoint("one", broken=True), FakeEntryPoint("two", broken=True))
    with pytest.raises(PluginError) as error:
        Registry.from_entry_points()
    assert len(error.value.diagnostics) == 2


def test_two_plugins_that_claim_one_op_are_both_named(install):
    """The error about a clash names op, plugins, packages and dialects."""
    install(
        FakeEntryPoint(plugin("one", "toy.f"), dist="package-one"),
        FakeEntryPoint(plugin("two", "toy.f"), dist="package-two"),
    )
    with pytest.raises(PluginError) as error:
        Registry.from_entry_points()
    message = str(error.value)
    assert "'toy.f'" in message
    assert "plugin 'one' (package-one 1.0), dialect 'one'" in message
    assert "plugin 'two' (package-two 1.0), dialect 'two'" in message
    assert Registry.from_entry_points(blocked=["two"]).ops == ("toy.f",)


def test_two_plugins_of_one_name_are_an_error(install):
    """Plugin names are unique, or blocking by name would be ambiguous."""
    install(FakeEntryPoint(plugin("one"), dist="package-one"), FakeEntryPoint(plugin("one"), dist="package-two"))
    with pytest.raises(PluginError, match=r"one from package-one 1\.0, one from package-two 1\.0"):
        Registry.from_entry_points()


def test_an_unknown_hook_is_an_error_with_the_known_ones(install):
    """A misspelt hook is not silently ignored."""
    install(FakeEntryPoint(plugin("one", hook="shardy_register_dialect")))
    with pytest.raises(PluginError, match="unknown hook 'shardy_register_dialect'") as error:
        Registry.from_entry_points()
    assert "shardy_register_dialects" in error.value.diagnostics[0].hint


def test_a_hook_with_other_parameters_is_an_error(install):
    """A hook implementation cannot ask for arguments that the hook does not have."""
    module = types.ModuleType("one")

    def shardy_register_dialects(registry):
        return []

    module.shardy_register_dialects = hookimpl(shardy_register_dialects)
    install(FakeEntryPoint(module))
    with pytest.raises(PluginError, match="registry"):
        Registry.from_entry_points()


def test_a_module_without_hooks_is_an_error(install):
    """A plugin that forgot its marker is told so."""
    install(FakeEntryPoint(types.ModuleType("one")))
    with pytest.raises(PluginError, match="implements no hook") as error:
        Registry.from_entry_points()
    assert "@hookimpl" in error.value.diagnostics[0].hint


@pytest.mark.parametrize("answer", [Dialect("x"), ["x"], "x"])
def test_a_hook_returns_a_list_of_dialects(install, answer):
    """Anything else is an error that shows what came instead."""
    install(FakeEntryPoint(plugin("one", answer=answer)))
    with pytest.raises(PluginError, match="not a list of dialects"):
        Registry.from_entry_points()


def test_an_empty_list_is_a_fine_answer(install):
    """A plugin may have nothing to register."""
    install(FakeEntryPoint(plugin("one", answer=[])))
    assert Registry.from_entry_points().ops == ()


def test_nothing_is_kept_between_calls(install):
    """There is no registry or manager in any module: what is installed now is what counts."""
    install(FakeEntryPoint(plugin("one", "one.f")))
    assert Registry.from_entry_points().ops == ("one.f",)
    install()
    assert Registry.from_entry_points().ops == ()
    loaded = [
        (module, name)
        for module, value in sys.modules.items()
        if module.startswith("shardy_py")
        for name, item in vars(value).items()
        if isinstance(item, Registry)
    ]
    assert loaded == []


def test_the_bundled_dialects_are_installed_plugins():
    """The core has no built-in dialect: func, sdy and stablehlo come by entry point."""
    registry = Registry.from_entry_points(blocked=["stablehlo"])
    names = {item.name for item in registry.plugins}
    assert names >= BUNDLED
    assert {"func.call", "sdy.sharding_constraint"} <= set(registry.ops)
    assert not any(name.startswith("stablehlo.") for name in registry.ops)


class Sweep:
    """A pass of a plugin."""

    name = "toy-sweep"

    def run(self, program, context):
        """Do nothing."""


def test_passes_of_plugins_are_found_by_name(install):
    """A registry has the passes of its plugins, and pipelines find them in it."""
    install(FakeEntryPoint(plugin("one", hook="shardy_register_passes", answer=[Sweep])))
    registry = Registry.from_entry_points()
    assert registry.passes == {"toy-sweep": Sweep}
    assert registry.plugins[0].passes == ("toy-sweep",)


def test_two_passes_of_one_name_are_an_error_that_names_both_plugins(install):
    """Passes are known by their names only, so two plugins cannot share one."""
    other = type("Other", (Sweep,), {})
    points = [plugin(name, hook="shardy_register_passes", answer=[item]) for name, item in (("a", Sweep), ("b", other))]
    install(*map(FakeEntryPoint, points))
    with pytest.raises(PluginError, match=r"'toy-sweep' is defined by plugin 'a'.* and by plugin 'b'"):
        Registry.from_entry_points()


def test_anything_but_pass_classes_is_an_error(install):
    """A hook that gives instances, or classes without a name, is blamed."""
    install(FakeEntryPoint(plugin("one", hook="shardy_register_passes", answer=[Sweep()])))
    with pytest.raises(PluginError, match=r"shardy_register_passes returned .*, not a list of pass classes"):
        Registry.from_entry_points()

"""The registry of the installed plugins is built once, and again when the installed distributions change."""

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import shardy_py as sdy
from shardy_py.api.registries import load_registry
from shardy_py.plugins import RuleOptions
from shardy_py.plugins.distributions import installed_distributions
from shardy_py.plugins.installed import installed_registry

PLUGIN = """
import shardy_py as sdy

calls = 0
toy = sdy.Dialect("installed_toy")
toy.op("installed_toy.neg", rule="i -> i")


@sdy.hookimpl
def shardy_register_dialects():
    global calls
    calls += 1
    return [toy]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory on the search path for distributions of one's own."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("installed_toy", None)


def install(site: Path) -> None:
    """Install a distribution with one plugin."""
    (site / "installed_toy.py").write_text(PLUGIN)
    info = site / "installed_toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-toy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[shardy_py.dialects]\ninstalled_toy = installed_toy\n")


def test_the_running_process_sees_plugins_come_and_go(site: Path) -> None:
    """A plugin that is installed or removed while the process runs is in the next registry, or no longer in it."""
    assert "installed_toy.neg" not in installed_registry().ops
    install(site)
    assert "installed_toy.neg" in installed_registry().ops
    shutil.rmtree(site / "installed_toy-1.0.dist-info")
    assert "installed_toy.neg" not in installed_registry().ops


def test_the_same_distributions_give_the_same_registry(site: Path) -> None:
    """The plugins are asked once, however often the default registry is needed, and whatever else is written there."""
    install(site)
    first = load_registry(options=RuleOptions())
    (site / "output.mlir").write_text("module {}")
    assert load_registry(options=RuleOptions()) is first
    assert sys.modules["installed_toy"].calls == 1
    extended = load_registry(options=RuleOptions(extended=True))
    assert extended.options.extended
    assert load_registry(options=RuleOptions()) is first


class Given:
    """A plugin of a caller."""

    def __init__(self, name: str, dialect: sdy.Dialect) -> None:
        self.__shardy_name__, self.dialect = name, dialect

    @sdy.hookimpl
    def shardy_register_dialects(self) -> list[sdy.Dialect]:
        """Return the dialect."""
        return [self.dialect]


def test_plugins_that_contribute_the_same_have_one_registry() -> None:
    """New objects with the dialects of others, in any order, build nothing; an op more, or another name, does."""
    dialects = {name: sdy.Dialect(name) for name in ("first", "second")}
    for name, dialect in dialects.items():
        dialect.op(f"{name}.neg", rule="i -> i")

    def registry(*names: str, given: str = "given") -> sdy.Registry:
        plugins = [Given(f"{given} {name}", dialects[name]) for name in names]
        return load_registry(options=RuleOptions(), plugins=plugins)

    both = registry("first", "second")
    assert registry("second", "first") is both
    assert registry("first", "second", given="other") is not both
    assert "second.neg" not in registry("first").ops
    dialects["second"].op("second.abs", rule="i -> i")
    assert "second.abs" in registry("first", "second").ops
    assert "second.abs" not in both.ops
    with pytest.raises(sdy.errors.PluginError, match="two plugins are named"):
        registry("first", "first")


def test_what_is_looked_at_follows_the_search_path(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another search path, or another finder, counts as other distributions; a missing entry does no harm."""
    before = installed_distributions()
    assert installed_distributions() == before
    monkeypatch.syspath_prepend(site / "missing")
    assert installed_distributions() != before
    monkeypatch.undo()
    assert installed_distributions() != before


def test_a_directory_that_is_gone_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the search path has the working directory, and that was removed, the plugins are found all the same."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.syspath_prepend("")
    gone.rmdir()
    assert "stablehlo.add" in installed_registry().ops


def test_threads_share_the_registry() -> None:
    """Runs in many threads at once see the same plugins and give the same results."""
    builder = sdy.Builder(mesh={"a": 2})
    with builder.function("main", [sdy.tensor(8)]) as (x,):
        builder.shard(x, '[{"a"}]')
        builder.return_(builder.op("stablehlo.negate", [x], [sdy.tensor(8)]))
    program = builder.build()
    with ThreadPoolExecutor(8) as pool:
        texts = set(pool.map(lambda _: sdy.propagate(program).text, range(32)))
    assert len(texts) == 1


def test_a_registry_with_given_plugins_is_built_once() -> None:
    """The registry stays the same object until a plugin contributes something else, or another one is blocked."""
    toy = sdy.Dialect("given")
    toy.op("given.neg", rule="i -> i")

    class Given:
        @sdy.hookimpl
        def shardy_register_dialects(self) -> list[sdy.Dialect]:
            return [toy]

    plugin = Given()
    first = load_registry(options=RuleOptions(), plugins=[plugin])
    assert load_registry(options=RuleOptions(), plugins=[plugin]) is first
    assert load_registry(options=RuleOptions(), plugins=[plugin], blocked=["linalg"]) is not first
    toy.op("given.abs", rule="i -> i")
    second = load_registry(options=RuleOptions(), plugins=[plugin])
    assert "given.abs" in second.ops
    assert load_registry(options=RuleOptions(), plugins=[plugin]) is second
    blocked = load_registry(options=RuleOptions(), blocked=["linalg"])
    assert load_registry(options=RuleOptions(), blocked=["linalg"]) is blocked


def test_given_plugins_are_asked_each_time() -> None:
    """A plugin that is given is never part of the registry of others."""
    toy = sdy.Dialect("given")
    toy.op("given.neg", rule="i -> i")

    class Given:
        @sdy.hookimpl
        def shardy_register_dialects(self) -> list[sdy.Dialect]:
            return [toy]

    assert "given.neg" in load_registry(options=RuleOptions(), plugins=[Given()]).ops
    assert "given.neg" not in load_registry(options=RuleOptions()).ops

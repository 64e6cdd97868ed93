"""All kinds of programs come in and go out by one protocol; plugins add more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.errors import OptionError, PluginError, UnsupportedError
from shardy_py.frontends.mlir import parse_module
from shardy_py.frontends.select import _BUNDLED, bundled_frontend, find_frontend, frontend_of, named_frontend
from shardy_py.frontends.sources import source_bytes, source_text
from shardy_py.ir.interfaces.frontend import BUNDLED_NAMES, Frontend
from shardy_py.plugins.guarded_frontend import GuardedFrontend
from shardy_py.report.data import plugins_json
from shardy_py.report.tables import print_plugins
from tests.unit.frontends.toy_graph import TOY, Graph, GraphFrontend, Plugin, graph


class Other(GraphFrontend):
    """Accepts graphs, too."""

    name = "other-graph"


def plugin(name: str, *frontends: Any) -> object:
    """Return a plugin with some frontends."""

    class Given:
        __name__ = name

        @sdy.hookimpl
        def shardy_register_frontends(self) -> list[Any]:
            return list(frontends)

    return Given()


def test_a_plugin_brings_its_own_programs() -> None:
    """A graph of a plugin's own is propagated, gets its shardings, and is explained and printed by its names."""
    native = graph()
    result = sdy.propagate(native, plugins=[Plugin()], trace=True)
    assert result.module is native
    assert native.output.spec == '<@mesh, [{"a"}, {}]>'
    assert result.text == 'relu: <@mesh, [{"a"}, {}]>\n'
    assert str(result.sharding("%0")) == '<@mesh, [{"a"}, {}]>'
    assert '"a" comes from function argument %arg0' in str(result.explain("%1"))
    assert result.summary.ops == 2


def test_each_source_has_its_frontend(tmp_path: Path) -> None:
    """Who reads a source depends on the source alone; nothing but the frontends looks at names and suffixes."""
    registry = sdy.Registry.of([TOY], frontends=[GraphFrontend()])
    sources = {
        "toy-graph": graph(),
        "program": sdy.Builder().program,
        "mlir": "module {}",
        "xdsl": Path("a.xdsl"),
        "hlo": "// a comment\nHloModule m\n",
        "jax": type("Traced", (), {"lower": lambda self: None})(),
    }
    assert {name: find_frontend(source, registry).name for name, source in sources.items()} == {
        name: name for name in sources
    }
    assert find_frontend(Path("a.mlir"), registry).name == find_frontend(b"ML\xefR", registry).name == "mlir"
    assert find_frontend(Path("a.hlo"), registry).name == find_frontend(b"HloModule m\n", registry).name == "hlo"
    with pytest.raises(UnsupportedError, match="an object of type float is not a module"):
        find_frontend(1.5, registry)


def test_a_native_module_is_told_by_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other bundled frontend is asked about a module of jaxlib; those of plugins come first as ever."""
    pytest.importorskip("jaxlib")
    module = parse_module("module {}")

    def refuse(self: object, source: object) -> bool:
        raise AssertionError("another frontend is asked")

    for name in set(BUNDLED_NAMES) - {"mlir"}:
        monkeypatch.setattr(type(bundled_frontend(name)), "accepts", refuse)
    assert find_frontend(module, sdy.Registry.of([TOY])).name == "mlir"
    with pytest.raises(AssertionError, match="another frontend is asked"):
        find_frontend("module {}", sdy.Registry.of([TOY]))
    monkeypatch.setattr(GraphFrontend, "accepts", lambda self, source: True)
    assert find_frontend(module, sdy.Registry.of([TOY], frontends=[GraphFrontend()])).name == "toy-graph"


def test_the_bundled_frontends_are_whole() -> None:
    """Every bundled frontend has the name it is found by and all methods of the protocol."""
    assert set(_BUNDLED) == set(BUNDLED_NAMES)
    for name in BUNDLED_NAMES:
        frontend = bundled_frontend(name)
        assert frontend.name == name
        assert isinstance(frontend, Frontend)
        assert named_frontend(name, sdy.Registry()) is frontend
    with pytest.raises(OptionError, match="no frontend 'nothing'"):
        named_frontend("nothing", sdy.Registry())


def test_the_guard_is_around_every_method() -> None:
    """No method of the protocol reaches a plugin, nor its default, without the guard."""
    methods = {name for name, item in vars(Frontend).items() if callable(item) and not name.startswith("_")}
    assert methods <= set(vars(GuardedFrontend))


def test_frontends_that_clash_are_errors() -> None:
    """Two frontends of one name, one named as a bundled one, and two that accept the same program are refused."""
    build = sdy.Registry.from_entry_points
    with pytest.raises(PluginError, match="'toy-graph' is defined by plugin 'one' and by plugin 'two'"):
        build(plugins=[plugin("two", GraphFrontend()), plugin("one", GraphFrontend())])
    taken = type("Taken", (GraphFrontend,), {"name": "mlir"})()
    with pytest.raises(PluginError, match="its frontend is named 'mlir'"):
        build(plugins=[plugin("one", taken)])
    registry = build(plugins=[plugin("one", GraphFrontend()), plugin("two", Other())])
    assert [info.frontends for info in registry.plugins if info.frontends] == [("toy-graph",), ("other-graph",)]
    with pytest.raises(OptionError, match="accepted by the frontends 'other-graph' and 'toy-graph'"):
        sdy.propagate(graph(), registry=registry)


def test_a_frontend_that_is_not_whole_is_refused() -> None:
    """A method that is missing is named; what is no frontend is shown."""

    class Half:
        name = "half"

        def accepts(self, source: object) -> bool:
            return False

    with pytest.raises(PluginError, match=r"its frontend 'half' has no import_program and .*no write_back"):
        sdy.Registry.from_entry_points(plugins=[plugin("one", Half())])
    with pytest.raises(PluginError, match="not a list of frontends"):
        sdy.Registry.from_entry_points(plugins=[plugin("one", GraphFrontend)])


def propagate_and_look(registry: sdy.Registry) -> None:
    """Propagate the graph, and ask the result for its text and a value by name."""
    result = sdy.propagate(graph(), registry=registry)
    _ = (result.text, result.sharding("%0"))


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("accepts", None, "accepts of the frontend 'toy-graph' returned None, not True or False"),
        ("import_program", None, "import_program of the frontend 'toy-graph' returned None, not a Program"),
        ("write_back", ValueError("no"), "write_back of the frontend 'toy-graph' raised ValueError: no"),
        ("print_text", 3, "print_text of the frontend 'toy-graph' returned 3, not a str"),
        ("printed_names", {0: "x"}, "gives 'x' for 0, not a PrintedName"),
    ],
)
def test_a_frontend_that_fails_is_named(method: str, answer: Any, message: str) -> None:
    """Whatever a frontend does wrong is an error that names it, its plugin and the line."""

    def failing(self: object, *arguments: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    broken = type("Broken", (GraphFrontend,), {method: failing})()
    registry = sdy.Registry.from_entry_points(plugins=[plugin("one", broken)])
    with pytest.raises(PluginError, match=r"defined by plugin 'one' at .*test_frontends\.py:") as caught:
        propagate_and_look(registry)
    assert message in str(caught.value)


def test_a_malformed_program_of_a_plugin_is_refused() -> None:
    """What a plugin's frontend returns is verified before anything relies on it."""

    class Broken(GraphFrontend):
        def import_program(self, source: Graph) -> sdy.Program:
            program = super().import_program(source)
            block = program.functions["main"].regions[0].blocks[0]
            block.remove(block.last)
            return program

    with pytest.raises(sdy.VerificationError):
        sdy.propagate(graph(), registry=sdy.Registry.of([TOY], frontends=[Broken()]))


def test_a_program_that_was_built_is_a_module() -> None:
    """`propagate` takes an op graph, leaves it as it was, and answers by its values; the text is MLIR's."""
    builder = sdy.Builder(mesh=sdy.Mesh.of(a=2))
    with builder.function("main", [sdy.tensor(8, 16)]) as (x,):
        builder.shard(x, '[{"a"}, {}]')
        y = builder.op("toy.relu", [x], [sdy.tensor(8, 16)])
        builder.return_(y)
    registry = sdy.Registry.of([TOY])
    result = sdy.propagate(builder.program, registry=registry)
    assert str(result.sharding(y)) == str(result.sharding("%0")) == '<@mesh, [{"a"}, {}]>'
    assert builder.program.sharding(y) is None
    assert "sdy.sharding" not in y.owner.attributes
    assert sdy.propagate(builder.program, registry=registry).text == result.text
    assert result.module is result.program
    pytest.importorskip("jaxlib")
    assert sdy.propagate(result.text, registry=registry).results == result.results


def test_a_program_of_another_frontend_goes_back_through_it() -> None:
    """The program of a result is taken as it is, and written back to its own module."""
    pytest.importorskip("jaxlib")
    text = "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n  return %x : tensor<8xf32>\n}\n"
    first = sdy.propagate(text, {"a": 2})
    second = sdy.propagate(first.program, in_shardings={0: ("a",)})
    assert second.module is first.module
    assert frontend_of(second.program).name == "mlir"
    assert str(second.results[0]) == '<@mesh, [{"a"}]>'


def test_the_list_of_plugins_names_frontends_and_types(capsys: pytest.CaptureFixture[str]) -> None:
    """What a plugin brings besides ops is in the table and in the JSON."""
    toy = sdy.Dialect("toy_types")
    toy.type("!toy.array")

    class Given(Plugin):
        __name__ = "given"

        @sdy.hookimpl
        def shardy_register_dialects(self) -> list[sdy.Dialect]:
            return [toy]

    registry = sdy.Registry.from_entry_points(plugins=[Given()])
    print_plugins(registry)
    printed = capsys.readouterr().out
    assert "given types: !toy.array" in printed
    assert "given frontends: toy-graph" in printed
    (item,) = [item for item in json.loads(plugins_json(registry)) if item["name"] == "given"]
    assert (item["types"], item["frontends"]) == (["!toy.array"], ["toy-graph"])


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    """A file that an editor has put a byte order mark in front of is read as without."""
    path = tmp_path / "program.mlir"
    path.write_text("module {}", encoding="utf-8-sig")
    assert source_bytes(path, "-") == (b"module {}", str(path))
    assert source_text(path, "-") == ("module {}", str(path))

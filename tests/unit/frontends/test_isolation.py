"""Files of unknown origin: which frontend reads them, and what its process may do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.api import read
from shardy_py.api.source import read_apart
from shardy_py.errors import ParseError, ShardyError, UnsupportedError
from shardy_py.frontends.isolation import Reader, read_isolated
from shardy_py.frontends.select import bundled_frontend
from shardy_py.ir.interfaces.frontend import BUNDLED_NAMES, Frontend
from shardy_py.plugins import RuleOptions
from tests.unit.frontends.toy_graph import Graph, GraphFrontend, Node

WORKER = "tests.unit.frontends.reading_worker"
HLO = "HloModule m\n\nENTRY e {\n  a = f32[8]{0} parameter(0)\n  ROOT n = f32[8]{0} negate(a)\n}\n"
XDSL = """"builtin.module"() ({
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = "toy.f"(%a) : (tensor<8xf32>) -> tensor<8xf32>
    func.return %0 : tensor<8xf32>
  }
}) : () -> ()
"""


class FileFrontend(GraphFrontend):
    """A frontend whose author thought of no reader for files of unknown origin."""

    name = "toy-file"

    def accepts(self, source: object) -> bool:
        """Return whether this is such a file, or a graph."""
        return isinstance(source, Graph) or (isinstance(source, Path) and source.suffix == ".toy")


class CarefulFrontend(FileFrontend):
    """A frontend with such a reader."""

    def isolate(self, source: Any, *, name: str = "-") -> Any:
        """Return a graph."""
        return Graph([], Node("f", (), (8,)))


def registry_with(frontend: Frontend) -> sdy.Registry:
    """Return a registry with a frontend."""

    class Plugin:
        @sdy.hookimpl
        def shardy_register_frontends(self) -> list[Frontend]:
            return [frontend]

    from shardy_py.api.registries import load_registry

    return load_registry(plugins=[Plugin()], options=RuleOptions())


def test_a_frontend_without_a_reader_refuses_files(tmp_path: Path) -> None:
    """What a plugin does with a file is unknown, so it says so itself or gets none; its objects are read."""
    path = tmp_path / "m.toy"
    path.write_text("")
    with pytest.raises(UnsupportedError, match="'toy-file' has no reader for files of unknown origin") as caught:
        read_apart(path, registry=registry_with(FileFrontend()))
    assert caught.value.diagnostics[0].code == "no-isolated-reader"
    assert caught.value.diagnostics[0].location == str(path)
    graph = Graph([], Node("f", (), (8,)))
    assert read_apart(graph, registry=registry_with(FileFrontend())) is graph
    assert isinstance(read_apart(path, registry=registry_with(CarefulFrontend())), Graph)


@pytest.mark.parametrize("name", BUNDLED_NAMES)
def test_every_bundled_frontend_with_files_has_a_reader(name: str) -> None:
    """A frontend that accepts the path of some file says how it is read."""
    frontend = bundled_frontend(name)
    paths = [Path(f"m{suffix}") for suffix in (".mlir", ".hlo", ".xdsl", ".pt2", ".bin")]
    has_files = any(frontend.accepts(path) for path in paths)
    assert has_files == (type(frontend).isolate is not Frontend.isolate)


@pytest.mark.parametrize(("suffix", "text"), [(".hlo", HLO), (".xdsl", XDSL)])
def test_programs_come_through(suffix: str, text: str, tmp_path: Path) -> None:
    """What another process has read gives the same result as without it."""
    pytest.importorskip("xdsl" if suffix == ".xdsl" else "jaxlib")
    path = tmp_path / f"m{suffix}"
    path.write_text(text)
    mesh = {"x": 2}
    expected = sdy.propagate(path, mesh).text
    assert sdy.propagate(read(path, untrusted=True), mesh).text == expected


@pytest.mark.parametrize(
    ("suffix", "text"), [(".hlo", HLO.replace("negate", "nonsense")), (".xdsl", XDSL.replace("@main(", "@main(("))]
)
def test_errors_are_those_of_the_reader(suffix: str, text: str, tmp_path: Path) -> None:
    """They have the same place in the file."""
    pytest.importorskip("xdsl" if suffix == ".xdsl" else "jaxlib")
    path = tmp_path / f"m{suffix}"
    path.write_text(text)
    with pytest.raises(ParseError) as here:
        read(path)
    with pytest.raises(ParseError) as there:
        read(path, untrusted=True)
    assert there.value.diagnostics == here.value.diagnostics


def test_an_export_of_jax_is_read_apart() -> None:
    """JAX unpacks its exports in the other process, too."""
    jax = pytest.importorskip("jax")
    pytest.importorskip("flatbuffers")
    exported = jax.export.export(jax.jit(lambda x: x + 1))(jax.ShapeDtypeStruct((8,), "float32"))
    program = read(bytes(exported.serialize()), untrusted=True)
    assert "main" in program.functions


EFFECTS = {
    "open": "open(path, 'w')",
    "append": "open(path, 'ab')",
    "os.open": "os.open(path, os.O_CREAT | os.O_WRONLY)",
    "os.mkdir": "os.mkdir(path)",
    "os.symlink": "os.symlink('/', path)",
    "os.rename": "os.rename(other, path)",
    "os.remove": "os.remove(other)",
    "os.system": "os.system(f'touch {path}')",
    "subprocess.Popen": "__import__('subprocess').run(['touch', path])",
    "os.fork": "os.fork() or open(path, 'w')",
    "socket.connect": "__import__('socket').create_connection(('127.0.0.1', 9))",
    "pickle.find_class": "__import__('pickle').loads(b'cos\\nsystem\\n.')",
}


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.skipif(os.name == "nt", reason="files and processes of POSIX")
def test_a_reader_has_no_effects(effect: str, tmp_path: Path) -> None:
    """Whatever a file brings a reader to do, it writes nothing, starts nothing and reaches nobody."""
    path, other = tmp_path / "marker", tmp_path / "other"
    other.write_text("")
    code = f"import os\npath, other = {str(path)!r}, {str(other)!r}\n{EFFECTS[effect]}\n"
    with pytest.raises(ParseError, match=r"aborts on this file \(exit code 1: PermissionError: .*the file asks for"):
        read_isolated(Reader(WORKER, "the reader", "file", 60), code.encode(), "m.toy")
    assert os.listdir(tmp_path) == ["other"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("bytes(1 << 60)", "the input needs more memory than there is"),
        ("f = lambda: f()\nf()", "the input is nested too deeply"),
        ("(1).to_bytes(0, 'big')", "is too large"),
    ],
)
def test_too_much_is_an_error(code: str, expected: str) -> None:
    """It is that of the input, with its name."""
    with pytest.raises(UnsupportedError, match=expected) as caught:
        read_isolated(Reader(WORKER, "the reader", "file", 60), code.encode(), "m\n.toy")
    assert caught.value.diagnostics[0].location == "m\n.toy"


def test_a_process_that_cannot_be_started_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's reason is said."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(UnsupportedError, match="cannot be started: No such file"):
        read_isolated(Reader(WORKER, "the reader", "file", 60), b"", "-")


def test_the_command_says_what_it_refuses(tmp_path: Path) -> None:
    """A plugin's file under ``--untrusted`` is a message with exit code 2, and the plugin never sees the file."""
    pytest.importorskip("click")
    plugin, path = tmp_path / "toy_reader.py", tmp_path / "m.toy"
    path.write_text("")
    plugin.write_text(
        "from pathlib import Path\nimport shardy_py as sdy\n\n\nclass Toy(sdy.Frontend):\n    name = 'toy'\n\n"
        "    def accepts(self, source):\n        return isinstance(source, Path)\n\n"
        "    def import_program(self, source):\n        raise SystemExit('it was read')\n\n"
        "    def write_back(self, program):\n        return None\n\n"
        "    def print_text(self, source):\n        return ''\n\n\n"
        "@sdy.hookimpl\ndef shardy_register_frontends():\n    return [Toy()]\n"
    )
    words = ["propagate", "--untrusted", "--plugin", str(plugin), str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "shardy_py.cli.main", *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "the frontend 'toy' has no reader for files of unknown origin [no-isolated-reader]" in done.stderr


def test_answers_are_data() -> None:
    """A reader that has been taken over cannot give objects, only errors of the package and bytes."""
    with pytest.raises(ShardyError):
        read_isolated(Reader(WORKER, "the reader", "file", 60), b"refuse('no')", "m")
    assert json.loads(read_isolated(Reader(WORKER, "the reader", "file", 60), b"answer = b'[1]'", "m")) == [1]

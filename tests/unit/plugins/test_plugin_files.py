"""A file with a plugin is read and run in one way, in every command and every process."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest

from shardy_py.errors import PluginError
from shardy_py.plugins import Registry
from shardy_py.plugins.plugin_dependencies import record_read_files
from shardy_py.plugins.plugin_files import PluginFile, load_plugin_file

pytestmark = pytest.mark.usefixtures("_loaded_plugins_go")

HOOK = """
import shardy_py as sdy
toy = sdy.Dialect("toy")
toy.op("toy.add", traits=[sdy.Elementwise])

@sdy.hookimpl
def shardy_register_dialects():
    return [toy]
"""


def write(path: Path, text: str | bytes) -> Path:
    """Write a file with all its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def ops(path: Path) -> tuple[str, ...]:
    """Return the ops of the plugin of a file."""
    actual = Registry.from_entry_points(plugins=[load_plugin_file(path)]).ops
    return tuple(name for name in actual if name.startswith("toy."))


@pytest.mark.parametrize(
    "text",
    [
        "from __future__ import annotations" + HOOK,
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        + "@dataclass\nclass Size:\n    rows: int\nSize(3)"
        + HOOK,
        "# -*- coding: latin-1 -*-\nNAME = '\xe9'".encode("latin-1") + HOOK.encode(),
        b"\xef\xbb\xbf# with a mark" + HOOK.encode(),
        "import pickle\nclass A:\n    pass\npickle.dumps(A())" + HOOK,
        "def f(x: 'Later') -> None: ...\nf.__annotations__['x'].upper()" + HOOK,
    ],
)
def test_a_file_is_an_ordinary_module(text: str | bytes, tmp_path: Path) -> None:
    """Future imports, dataclasses, encodings and pickles work as in any module, and nothing of ours is inherited."""
    assert ops(write(tmp_path / "toy_file.py", text)) == ("toy.add",)


def test_annotations_are_those_of_the_file(tmp_path: Path) -> None:
    """A file without a future import has its annotations evaluated: what it says, not what our module says."""
    module = load_plugin_file(write(tmp_path / "toy_eager.py", "def f(x: int) -> None: ...\n" + HOOK))
    assert module.f.__annotations__["x"] is int


def test_a_file_imports_those_beside_it(tmp_path: Path) -> None:
    """Siblings are importable while the file runs and later, and those of another folder stay apart."""
    for folder, value in (("one", 1), ("two", 2)):
        write(tmp_path / folder / "toy_helpers.py", f"VALUE = {value}")
        write(tmp_path / folder / "toy_late.py", f"VALUE = {value}")
        write(tmp_path / folder / f"toy_{folder}.py", "import toy_helpers\nVALUE = toy_helpers.VALUE\n" + HOOK)
    assert [load_plugin_file(tmp_path / name / f"toy_{name}.py").VALUE for name in ("one", "two")] == [1, 2]
    assert __import__("toy_late").VALUE in (1, 2)


def test_a_directory_is_a_package(tmp_path: Path) -> None:
    """A package is given by its directory; relative and absolute imports of its own work."""
    write(tmp_path / "toy_package/rules.py", "REDUCTION = 'k'")
    write(tmp_path / "toy_package/deep/more.py", "from ..rules import REDUCTION")
    write(tmp_path / "toy_package/deep/__init__.py", "")
    init = "from .rules import REDUCTION\nimport toy_package.deep.more\nfrom .deep import more\n"
    assert ops(write(tmp_path / "toy_package/__init__.py", init + HOOK).parent) == ("toy.add",)


def test_a_name_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    """A plugin file may be called like any module; it keeps its name as a plugin, and the module its own."""
    import json

    module = load_plugin_file(write(tmp_path / "json.py", HOOK))
    assert sys.modules["json"] is json is not module
    (info,) = [item for item in Registry.from_entry_points(plugins=[module]).plugins if not item.origin]
    assert info.name == "json"


def test_a_file_runs_once_until_it_changes(tmp_path: Path) -> None:
    """The second load gives the same module; a file that has changed runs again."""
    path = write(tmp_path / "toy_once.py", HOOK)
    first = load_plugin_file(path)
    assert load_plugin_file(path) is first
    write(path, HOOK + "CHANGED = True")
    assert load_plugin_file(path).CHANGED


def test_threads_run_a_file_once_and_one_after_the_other(tmp_path: Path) -> None:
    """Threads that load at the same time get the same modules, and the output goes where it went before."""
    paths = [
        write(tmp_path / name, f"import time\ntime.sleep({seconds})\n" + HOOK)
        for name, seconds in (("toy_short.py", 0.02), ("toy_long.py", 0.1))
    ]
    output = sys.stdout
    with ThreadPoolExecutor(4) as pool:
        short, long, short_again, long_again = pool.map(load_plugin_file, paths * 2)
    assert short is short_again
    assert long is long_again
    assert sys.stdout is output


def test_what_a_file_prints_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output of a command is not mixed with that of a plugin."""
    load_plugin_file(write(tmp_path / "toy_loud.py", "print('hello')\n" + HOOK))
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


def test_a_plugin_goes_to_other_machines(tmp_path: Path) -> None:
    """What another process gets is all of the plugin, although the file is not there."""
    write(tmp_path / "toy_sent/rules.py", "REDUCTION = 'k'")
    init = write(tmp_path / "toy_sent/__init__.py", "from .rules import REDUCTION\n" + HOOK)
    single = write(tmp_path / "toy_alone.py", HOOK)
    sent = pickle.dumps([PluginFile.read(init.parent), PluginFile.read(single)])
    shutil.rmtree(init.parent)
    single.unlink()
    package, alone = pickle.loads(sent)
    assert package.load().REDUCTION == "k"
    assert Registry.from_entry_points(plugins=[alone.load()]).find("toy.add")


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("import sys\nsys.exit(3)", "the plugin ends the program: sys.exit(3)", 2),
        ("raise SystemExit", "the plugin ends the program", 1),
        ("\n\n1 / 0", "the plugin failed with ZeroDivisionError: division by zero", 3),
        ("x = [\n", "the plugin failed with SyntaxError", 1),
        ("def f():\n    f()\nf()", "the plugin failed with RecursionError", 2),
        ("class Odd(BaseException): ...\nraise Odd('x')", "the plugin failed with Odd: x", 2),
        ("class Odd(Exception):\n    def __str__(self): raise self\nraise Odd", "the plugin failed with Odd", 3),
        ("from . import rules", "the plugin failed with ImportError", 1),
        ("import shardy_py as sdy\n\nsdy.Dialect('toy').op('toy.f', rule=3)", "cannot be loaded: 'toy.f' op: 3 is", 3),
        (b"x = '\xff\xfe'", "the plugin failed with SyntaxError", 1),
        (b"x = '\x00'", "the plugin failed with", 0),
    ],
)
def test_what_goes_wrong_in_a_file_is_an_error_with_its_line(
    text: str | bytes, message: str, line: int, tmp_path: Path
) -> None:
    """No failure of a file, nor its end of the program, is more than one error."""
    path = write(tmp_path / "toy_wrong.py", text)
    with pytest.raises(PluginError) as caught:
        load_plugin_file(path)
    (problem,) = caught.value.diagnostics
    assert message in problem.message
    assert problem.location.startswith(f"{path}:{line}" if line else str(path))
    assert "toy_wrong" not in sys.modules


def test_an_interrupt_passes(tmp_path: Path) -> None:
    """Whoever stops the program stops it in a plugin, too."""
    with pytest.raises(KeyboardInterrupt):
        load_plugin_file(write(tmp_path / "toy_stopped.py", "raise KeyboardInterrupt"))


@pytest.mark.parametrize(
    ("path", "message"),
    [("a.txt", "not a Python file"), ("missing.py", "cannot be read"), ("folder", "without __init__.py")],
)
def test_what_is_no_plugin_file_is_said(path: str, message: str, tmp_path: Path) -> None:
    """Another kind of file, none at all, and a folder that is no package are errors."""
    write(tmp_path / "a.txt", "text")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PluginError, match=message):
        load_plugin_file(tmp_path / path)


def test_what_is_read_is_noted(tmp_path: Path) -> None:
    """Neither what is written, nor what another thread, a library or an earlier block has read."""
    for name in ("a", "b", "other"):
        (tmp_path / name).write_text("")
    with record_read_files() as read:
        (tmp_path / "a").read_bytes()
        with record_read_files() as inner:
            open(str(tmp_path / "b")).close()
        (tmp_path / "new").write_text("")
        open(json.__file__).close()
        thread = Thread(target=(tmp_path / "other").read_text)
        thread.start()
        thread.join()
    (tmp_path / "other").read_text()
    assert list(read) == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert list(inner) == [str(tmp_path / "b")]

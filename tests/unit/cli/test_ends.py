"""The ends of commands: exit codes, interrupts, inputs that ask for too much, and names of files of any kind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from html import unescape
from pathlib import Path
from typing import Any

import click
import pytest

from shardy_py.cli import opt, opt_passes
from shardy_py.cli.app import shardy as group
from shardy_py.support.gc_pause import FROZEN_BY_PYTHON
from tests.unit.cli.conftest import MODULE

CONTEXT = click.Context(group)


def _commands(parent: click.Group, *before: str) -> dict[str, click.Command]:
    """Return the commands of a group by the words that call them, those of its groups included."""
    found: dict[str, click.Command] = {}
    for name in parent.list_commands(CONTEXT):
        command = parent.get_command(CONTEXT, name)
        assert command is not None
        if isinstance(command, click.Group):
            found |= _commands(command, *before, name)
        else:
            found[" ".join((*before, name))] = command
    return found


COMMANDS = _commands(group)
posix = pytest.mark.skipif(os.name == "nt", reason="signals and names of files of POSIX")


def _arguments(command: click.Command) -> list[str]:
    """Return words for the arguments and the options that a command must have."""
    required = [item for item in command.params if item.required]
    arguments = ["in.mlir" for item in required if isinstance(item, click.Argument)]
    return arguments + [word for item in required if isinstance(item, click.Option) for word in (item.opts[0], "flat")]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "stopped\n"),
        (MemoryError(), 2, "the input needs more memory than there is [out-of-memory]\n  hint: give"),
        (RecursionError("maximum"), 2, "the input is nested too deeply [nested-too-deeply]\n  hint: nest"),
        (OverflowError("int too big"), 2, "is too large: int too big [number-too-large]\n  hint: sizes"),
    ],
)
def test_every_command_ends_with_a_message(
    name: str, error: BaseException, code: int, words: str, shardy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt has its own exit code; too much of anything says what to do, and names the input."""
    command = COMMANDS[name]
    arguments = _arguments(command)

    def fail(**options: object) -> None:
        raise error

    monkeypatch.setattr(command, "callback", fail)
    done = shardy(*name.split(), *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr
    if code == 2 and arguments and any(item.name == "file" for item in command.params):
        assert done.stderr.startswith("in.mlir: error: ")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "stopped\n"),
        (MemoryError(), 2, "in.mlir: error: the input needs more memory than there is\nin.mlir: note: give"),
        (RecursionError(), 2, "in.mlir: error: the input is nested too deeply\n"),
    ],
)
def test_shardy_opt_ends_with_a_message(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no other ends than the other command."""

    def fail(file: str) -> bytes:
        raise error

    monkeypatch.setattr(opt_passes, "_read", fail)
    assert opt.main(["-sdy-basic-propagate", "in.mlir"]) == code
    assert capsys.readouterr().err.startswith(words)


WAIT = """
import sys
sys.argv = {arguments!r}
import shardy_py.cli.main
import {module} as command

begin = shardy_py.cli.main.begin_process

def begin_and_report():
    begin()
    print("up", file=sys.stderr, flush=True)

command.begin_process = begin_and_report
sys.exit(command.main())
"""


@posix
@pytest.mark.parametrize("seconds", [0.05, 1.5])
@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("shardy_py.cli.main", ["shardy", "propagate", "-"]),
        ("shardy_py.cli.opt", ["shardy-opt", "-sdy-propagation-pipeline", "-"]),
    ],
)
def test_an_interrupt_at_any_moment_is_a_message(module: str, arguments: list[str], seconds: float) -> None:
    """While a command imports what it needs, and while it waits for its input, nobody sees a traceback."""
    code = WAIT.format(module=module, arguments=arguments)
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stderr is not None
        command.stderr.readline()
        # Whenever the interrupt comes after that, early in an import or late, the end is the same.
        time.sleep(seconds)
        command.send_signal(signal.SIGINT)
        # Standard input stays open: the command would else read an empty module while the interrupt waits.
        stderr = command.stderr.read()
        command.wait(timeout=60)
    assert (command.returncode, stderr) == (130, b"stopped\n")


@posix
@pytest.mark.parametrize("title", ["{{data}}", "{{script}}", "{{title}} & <b>", "{{}}\\1", "a\nb"])
def test_the_title_of_a_page_is_the_name_of_its_file(title: str, tmp_path: Path, shardy: Any) -> None:
    """What looks like a place of the page in the name of a file is text."""
    program, page = tmp_path / f"{title}.mlir", tmp_path / "page.html"
    program.write_text(MODULE)
    assert shardy("explore", str(program), "-o", str(page)).exit_code == 0
    html = page.read_text()
    for tag in ("title", "h1"):
        begin = html.index(f"<{tag}>") + len(tag) + 2
        assert unescape(html[begin : html.index(f"</{tag}>")]) == f"{title}.mlir"


@posix
def test_a_name_that_is_no_utf8(tmp_path: Path, shardy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has a sign in the place of what is no character, other files have the name as it is."""
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"bad\xff.mlir")
    Path(name).write_text(MODULE)
    assert shardy("explore", name, "-o", "page.html").exit_code == 0
    assert "<title>bad\N{REPLACEMENT CHARACTER}.mlir</title>" in Path("page.html").read_text()
    assert shardy("propagate", name, "-q", "--graph", f"{name}.json", "-o", f"{name}.out").exit_code == 0
    assert Path(f"{name}.json").exists()


@posix
def test_a_name_is_no_command_to_the_terminal(tmp_path: Path, shardy: Any) -> None:
    """Messages hold no character that a terminal obeys."""
    path = tmp_path / "a\x1b[31m.mlir"
    path.write_text("func.func @main( {\n")
    done = shardy("propagate", str(path))
    assert done.exit_code == 2
    assert "\x1b" not in done.stderr
    assert "a\\x1b[31m.mlir:1:17: error: " in done.stderr


CODE = """
import atexit, gc, sys
atexit.register(lambda: print("frozen:", gc.get_freeze_count() > {limit}))
from shardy_py.cli.{module} import main
sys.argv = ["shardy", "--help"]
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["main", "opt"])
def test_a_command_ends_without_a_look_for_garbage(module: str) -> None:
    """When Python begins to end, all objects are frozen, so that the collector has nothing to look at."""
    code = CODE.format(module=module, limit=FROZEN_BY_PYTHON)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "frozen: True"
    assert not done.stderr


def test_libraries_that_warn_of_leaks_are_cleared() -> None:
    """Triton prints what is left of it at the end, as the collector did not look at it."""
    code = "import sys\nsys.modules['triton'] = sys\n" + CODE.format(module="main", limit=FROZEN_BY_PYTHON)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "frozen: False"


def test_an_interrupted_command_has_the_exit_code_of_one() -> None:
    """Code 1 says that something differs, so an interrupt has another."""
    code = """
import signal, sys
import shardy_py.cost.commands.machines as command
command.machines.callback = lambda **options: signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
from shardy_py.cli.main import main
sys.argv = ["shardy", "machines"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")

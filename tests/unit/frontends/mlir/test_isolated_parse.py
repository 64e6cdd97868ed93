"""Modules of unknown origin: parsed in a process of their own, which they may end."""

from __future__ import annotations

import io
import os
import random
from contextlib import suppress
from pathlib import Path

import pytest

import shardy_py as sdy
from shardy_py.api import read
from shardy_py.api.source import read_apart
from shardy_py.cli import opt
from shardy_py.errors import ParseError, ShardyError
from shardy_py.frontends.mlir import isolated_parse, parse_module

MODULE = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def bytecode() -> bytes:
    """Return the module as bytecode."""
    pytest.importorskip("jaxlib")
    buffer = io.BytesIO()
    parse_module(MODULE).operation.write_bytecode(buffer)
    return buffer.getvalue()


def test_a_module_that_is_valid_comes_through(tmp_path: Path) -> None:
    """Text, bytecode and files give the same result as in this process, with the names of files in locations."""
    expected = sdy.propagate(MODULE).text
    assert sdy.propagate(read(MODULE, untrusted=True)).text == expected
    path = tmp_path / "m.mlir"
    path.write_text(MODULE)
    program = read(path, untrusted=True)
    assert program.functions["main"].location == f"{path}:2:1"
    assert sdy.propagate(program).text == expected


def test_errors_are_those_of_the_parser() -> None:
    """What is wrong with a module is said as it is without the other process."""
    pytest.importorskip("jaxlib")
    with pytest.raises(ParseError) as here:
        read("func.func @main( {")
    with pytest.raises(ParseError) as there:
        read("func.func @main( {", untrusted=True)
    assert there.value.diagnostics == here.value.diagnostics


@pytest.mark.skipif(os.name == "nt", reason="there are no such signals")
def test_a_crash_of_the_parser_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the process ends before it answers, the error says what ended it."""
    pytest.importorskip("jaxlib")
    monkeypatch.setattr(isolated_parse, "WORKER", "tests.unit.frontends.mlir.aborting_worker")
    with pytest.raises(ParseError, match=r"aborts on this module \(SIGABRT\)") as error:
        read(MODULE, untrusted=True)
    assert error.value.diagnostics[0].code == "parser-aborted"


def test_a_parser_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has a time limit."""
    pytest.importorskip("jaxlib")
    monkeypatch.setattr(isolated_parse, "SECONDS", 1e-4)
    with pytest.raises(ParseError, match="did not end"):
        read(MODULE, untrusted=True)


def test_other_sources_are_read_here() -> None:
    """What is no text or bytecode of MLIR needs no other process, and stays as it is."""
    pytest.importorskip("jaxlib")
    module = parse_module(MODULE)
    assert read_apart(module) is module


def mutated(code: bytes, random_: random.Random) -> bytes:
    """Return bytecode with some bytes changed, removed or added."""
    data = bytearray(code)
    for _ in range(random_.choice([1, 1, 2, 8])):
        place = random_.randrange(4, len(data))
        kind = random_.randrange(3)
        if kind == 0:
            data[place] ^= 1 << random_.randrange(8)
        elif kind == 1:
            del data[place : place + random_.choice([1, 4])]
        else:
            data[place:place] = random_.randbytes(2)
    return bytes(data)


def check_mutations(count: int, seed: int) -> None:
    """Read broken bytecode: each is an error of this package, or a program."""
    code, random_ = bytecode(), random.Random(seed)
    for _ in range(count):
        broken = mutated(code, random_)
        with suppress(ShardyError):
            assert sdy.propagate(read(broken, untrusted=True)).text


def test_broken_bytecode_does_no_harm() -> None:
    """A few broken files leave this process alive, and are errors of this package."""
    check_mutations(6, 1)


@pytest.mark.fuzz
def test_much_broken_bytecode_does_no_harm() -> None:
    """Thousands of broken files; SHARDY_FUZZ_PROGRAMS sets another number."""
    check_mutations(int(os.environ.get("SHARDY_FUZZ_PROGRAMS", "2000")), 2)


def test_commands_parse_isolated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``shardy-opt --untrusted`` prints what it prints without."""
    pytest.importorskip("jaxlib")
    path = tmp_path / "m.mlir"
    path.write_text(MODULE)
    assert opt.main(["-sdy-basic-propagate", str(path)]) == 0
    expected = capsys.readouterr().out
    assert opt.main(["--untrusted", "-sdy-basic-propagate", str(path)]) == 0
    assert capsys.readouterr().out == expected


def test_every_command_that_reads_a_module_has_the_option() -> None:
    """The commands with a FILE of a module take ``--untrusted``."""
    pytest.importorskip("click")
    from tests.unit.cli.all_commands import all_commands

    without = {
        name
        for name, command in all_commands().items()
        if not any("--untrusted" in option.opts for option in command.params)
    }
    assert without == {"schedule", "plugins", "layout", "machines", "mpmd simulate", "study", "emit-opt"}

"""``shardy-opt``: passes over MLIR files, with the flags of upstream's ``sdy_opt``.

Arguments are read by hand: pass flags take one dash or two, carry their options, and their order matters.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attrs import field

from shardy_py.api.registries import load_registry
from shardy_py.cli.files import read_stdin, write_output
from shardy_py.errors import Diagnostic, OptionError, ShardyError, unknown_name
from shardy_py.frontends.mlir import import_module, parse_module, print_module, verify_module, write_back
from shardy_py.frontends.mlir.isolated_parse import parse_isolated
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import load_shardings
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.plugins.type_definition import give_shapes
from shardy_py.report.terminal_text import fold
from shardy_py.support.texts import as_error, escape_controls
from shardy_py.transforms.finish.input_output_shardings import (
    UpdateNonDivisibleInputOutputShardingsPass,
)
from shardy_py.transforms.pass_names import bundled_passes, find_pass, parse_pass, parse_pipeline
from shardy_py.transforms.plugin_passes import with_plugin_passes
from shardy_py.transforms.reduced_shardings import warn_of_reduced_shardings
from shardy_py.transforms.run import run_on_attributes
from shardy_py.values import define, frozen

USAGE = """\
usage: shardy-opt [-PASS[=OPTIONS]]... [--pass-pipeline=PIPELINE]
                  [-split-input-file] [-o FILE] [FILE]

Run passes over an MLIR module, given as text or bytecode in FILE or on
standard input, and print the result.

  -PASS[=OPTIONS]           run a pass, in the order given; OPTIONS are like
                            'keep-sharding-rules=true'
  --pass-pipeline=PIPELINE  run the passes of a pipeline, for example
                            'builtin.module(sdy-basic-propagate)'
  -split-input-file         split the input at lines '// -----' and run each
                            part on its own
  --mlir-print-op-generic   print every op in MLIR's generic form
  --untrusted               parse the input in a process of its own, which a
                            broken file may crash
  -o FILE                   write to a file instead of standard output
  -verify-diagnostics, -allow-unregistered-dialect
                            accepted for upstream's test files; parts with
                            errors make the command fail in any case
  -h, --help                print this and the known passes

Exit code: 0, or 1 where a part fails, or 2 where the command line is wrong or a
file cannot be read or written.
"""
_WIDTH = 80
_SEPARATOR = re.compile(r"^// -----.*$", re.MULTILINE)
_IGNORED = frozenset(("verify-diagnostics", "allow-unregistered-dialect", ""))
_KEEP_UNEVEN = (
    f"leave out {UpdateNonDivisibleInputOutputShardingsPass.name}; "
    "a pipeline does with update-non-divisible-input-output-shardings=false"
)
_SWITCHES = {
    "split-input-file": "split",
    "mlir-print-op-generic": "generic",
    "untrusted": "untrusted",
    "h": "help",
    "help": "help",
}


@frozen
class OptCommand:
    """A parsed command line."""

    passes: tuple[Pass, ...] = ()
    file: str = "-"
    output: str = "-"
    split: bool = False
    generic: bool = False
    untrusted: bool = False
    help: bool = False


@define
class _Reader:
    """Reads a command line from left to right."""

    passes: list[Pass] = field(factory=list)
    files: list[str] = field(factory=list)
    output: str = "-"
    pipeline: str | None = None
    switches: set[str] = field(factory=set)

    def read(self, arguments: Sequence[str]) -> OptCommand:
        rest = iter(arguments)
        for argument in rest:
            if argument == "-" or not argument.startswith("-"):
                self.files.append(argument)
            else:
                self._flag(argument, rest)
        if len(self.files) > 1:
            raise _usage(f"one file is expected, {len(self.files)} are given: {' '.join(self.files)}")
        if self.pipeline is not None and self.passes:
            raise _usage("--pass-pipeline does not go together with pass flags")
        passes = self.passes if self.pipeline is None else parse_pipeline(self.pipeline)
        return OptCommand(
            passes=tuple(passes),
            file=self.files[0] if self.files else "-",
            output=self.output,
            split="split" in self.switches,
            generic="generic" in self.switches,
            untrusted="untrusted" in self.switches,
            help="help" in self.switches,
        )

    def _flag(self, argument: str, rest: Iterator[str]) -> None:
        name, equals, value = argument.removeprefix("-").removeprefix("-").partition("=")
        if name in ("o", "pass-pipeline"):
            value = value if equals else next(rest, "")
            if not value:
                raise _usage(f"{argument} needs a value")
            setattr(self, "output" if name == "o" else "pipeline", value)
        elif name in bundled_passes():
            self.passes += parse_pass(name, value)
        elif name in _IGNORED and not equals:
            return
        elif name in _SWITCHES and not equals:
            self.switches.add(_SWITCHES[name])
        elif find_pass(name) is not None:
            self.passes += parse_pass(name, value)
        else:
            known = [*bundled_passes(), *_SWITCHES, "pass-pipeline", "verify-diagnostics"]
            raise OptionError(unknown_name("unknown-flag", f"unknown flag {argument!r}", name, known))


def _usage(message: str) -> OptionError:
    return OptionError(Diagnostic("usage", message, hint="shardy-opt --help"))


def parse_arguments(arguments: Sequence[str]) -> OptCommand:
    """Return a parsed command line.

    Raises:
        OptionError: an unknown flag or pass, a missing or wrong value.
    """
    return _Reader().read(arguments)


def transform(source: str | bytes, name: str, command: OptCommand, registry: Registry | None) -> str:
    """Return one module after all passes as text; warnings of the passes go to standard error.

    Raises:
        ShardyError: the module is malformed, or a pass fails.
    """
    module = parse_module(parse_isolated(source, name=name).content if command.untrusted else source, name=name)
    if command.passes and registry is not None:
        program = import_module(module, name=name)
        context = PassContext(registry, list(give_shapes(program, registry)))
        passes = with_plugin_passes(command.passes, registry)
        context.warnings.extend(_reduced_shardings(program, passes, registry))
        run_on_attributes(program, passes, context)
        module = write_back(program)
        verify_module(module, name=name)
        report(context.warnings, "warning")
    return print_module(module, generic=command.generic)


def _reduced_shardings(program: Program, passes: Iterable[Pass], registry: Registry) -> tuple[Diagnostic, ...]:
    """Return a warning for each sharding of the input that the passes will reduce to what divides a size."""
    if not any(item.name == UpdateNonDivisibleInputOutputShardingsPass.name for item in passes):
        return ()
    functions = program.functions
    main = functions.get("main", next(iter(functions.values())) if len(functions) == 1 else None)
    load_shardings(program, registry)
    return warn_of_reduced_shardings(program, main, registry, hint=_KEEP_UNEVEN)


def report(diagnostics: Iterable[Diagnostic], severity: str) -> None:
    """Print diagnostics to standard error in MLIR's format."""
    for item in diagnostics:
        place = f"{item.location}: " if item.location else ""
        subject = f"'{item.op}' op " if item.op else ""
        print(escape_controls(f"{place}{severity}: {subject}{item.message}"), file=sys.stderr)
        if item.hint:
            print(escape_controls(f"{place}note: {item.hint}"), file=sys.stderr)


def _parts(data: bytes, name: str, *, split: bool) -> Iterator[str | bytes]:
    """Yield the modules of an input; each keeps its line numbers."""
    if not split:
        yield data
        return
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _usage(f"{name} cannot be split, it is not text: {error}") from None
    start = 0
    for separator in [*_SEPARATOR.finditer(text), None]:
        end = separator.start() if separator else len(text)
        yield "\n" * text.count("\n", 0, start) + text[start:end]
        start = separator.end() if separator else end


def _read(file: str) -> bytes:
    try:
        return read_stdin() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise _usage(f"cannot read {file}: {error.strerror or error}") from None


def _write(output: str, text: str) -> None:
    try:
        write_output(output, text)
    except OSError as error:
        place = "standard output" if output == "-" else output
        message = f"cannot write {place}: {error.strerror or error}"
        raise OptionError(Diagnostic("file", message, hint="shardy-opt -o FILE")) from None


def run(command: OptCommand) -> int:
    """Run a command and return its exit code.

    Raises:
        ShardyError: nothing could be read, written or set up.
    """
    if command.help:
        _write("-", "\n".join([USAGE, *fold(f"passes: {', '.join(bundled_passes())}", _WIDTH), ""]))
        return 0
    name = "<stdin>" if command.file == "-" else command.file
    data = _read(command.file)
    registry = load_registry(options=RuleOptions()) if command.passes else None
    report(registry.problems if registry is not None else (), "warning")
    results, failed = [], False
    for part in _parts(data, name, split=command.split):
        try:
            results.append(transform(part, name, command, registry))
        except ShardyError as error:
            failed = True
            report(error.diagnostics, "error")
    if not failed or command.output == "-":
        _write(
            command.output, "// -----\n".join(result if result.endswith("\n") else result + "\n" for result in results)
        )
    return 1 if failed else 0


def run_command(arguments: Sequence[str]) -> int:
    """Run a command line, print its errors, and return the exit code."""
    try:
        return run(parse_arguments(arguments))
    except ShardyError as error:
        report(error.diagnostics, "error")
        return 2
    except (MemoryError, RecursionError, OverflowError) as error:
        report(as_error(error, _file_of(arguments)).diagnostics, "error")
        return 2
    except Exception as error:
        # A defect of this program: the user gets one line that can be reported, not a traceback.
        print(f"error: internal error: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


def _file_of(arguments: Sequence[str]) -> str:
    """Return the input of a command line, for an error while it is read."""
    return next((item for item in arguments if not item.startswith("-")), "")

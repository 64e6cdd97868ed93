"""RUN lines of lit files: parsed, run in this process, their output compared with the file's CHECK lines.

A line is ``// RUN: [not] COMMAND ARGUMENTS [2>&1] [| filecheck %s [--check-prefix=NAME]]``. The command is
``shardy-opt`` or ``shardy``; ``%s`` is the file. A trailing backslash joins the next RUN line. ``not`` expects an exit
code that is not 0; without it the code is 0. In CHECK lines ``[[@LINE+1]]`` is the number of the next line. A line
``// REFERENCE: no, REASON`` says that the C++ passes print something else; ``no with TEXT, REASON`` says so of the RUN
lines with a text.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

from shardy_py.cli import opt
from shardy_py.values import frozen

LIT = Path(__file__).resolve().parent
_RUN = re.compile(r"\s*//\s*RUN:\s*(.*)$")
_LINE = re.compile(r"\[\[@LINE([+-]\d+)?\]\]")
_REFERENCE = re.compile(r"^//\s*REFERENCE:\s*no(?: with (\S+))?, (.+)$", re.MULTILINE)
_COMMANDS = ("shardy-opt", "shardy")


@frozen
class RunLine:
    """One RUN line.

    Args:
        path: The file.
        number: The number of its first line in the file, from 1.
        command: ``shardy-opt`` or ``shardy``.
        arguments: The arguments, with the path in place of ``%s``.
        fails: Whether the exit code is not 0.
        has_messages: Whether messages on stderr are part of the output.
        checks: The arguments of filecheck after the file; None for no check.
    """

    path: Path
    number: int
    command: str
    arguments: tuple[str, ...]
    fails: bool
    has_messages: bool
    checks: tuple[str, ...] | None

    def __str__(self) -> str:
        return f"{self.path.relative_to(LIT)}:{self.number}"

    @property
    def check_prefixes(self) -> tuple[str, ...]:
        """The prefixes of the CHECK lines that the output is compared with; none where it is not.

        Raises:
            ValueError: filecheck has no such option.
        """
        if self.checks is None:
            return ()
        prefixes = ["CHECK"]
        for argument in self.checks:
            name, _, value = argument.lstrip("-").partition("=")
            if name not in ("check-prefix", "check-prefixes"):
                raise ValueError(f"{self}: filecheck has no option {argument} here")
            prefixes = value.split(",")
        return tuple(prefixes)


def read_run_lines(path: Path) -> Iterator[RunLine]:
    """Yield the RUN lines of a file.

    Raises:
        ValueError: a line cannot be read, or the file has none.
    """
    text, start = "", 0
    count = 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = _RUN.match(line)
        if not match:
            continue
        start = start or number
        text += match[1].rstrip()
        if text.endswith("\\"):
            text = text[:-1] + " "
            continue
        yield _parse(text, path, start)
        text, start = "", 0
        count += 1
    if text or not count:
        raise ValueError(f"{path}: no RUN line, or one that does not end")


def _parse(text: str, path: Path, number: int) -> RunLine:
    command_text, bar, check_text = text.partition("|")
    words = [str(path) if word == "%s" else word for word in shlex.split(command_text)]
    fails = words[:1] == ["not"]
    has_messages = "2>&1" in words
    command, *arguments = [word for word in words[fails:] if word != "2>&1"]
    checks = tuple(shlex.split(check_text))
    if command not in _COMMANDS or (bar and checks[:2] != ("filecheck", "%s")):
        raise ValueError(f"{path}:{number}: cannot read RUN: {text}")
    return RunLine(path, number, command, tuple(arguments), fails, has_messages, checks[2:] if bar else None)


def run_here(line: RunLine) -> tuple[int, str]:
    """Return the exit code and the output of a RUN line, run in this process."""
    output = io.StringIO()
    messages = output if line.has_messages else io.StringIO()
    with redirect_stdout(output), redirect_stderr(messages):
        code = opt.main(line.arguments) if line.command == "shardy-opt" else _run_shardy(line.arguments)
    return code, output.getvalue()


def _run_shardy(arguments: tuple[str, ...]) -> int:
    from shardy_py.cli.app import shardy

    try:
        shardy.main(list(arguments), prog_name="shardy", standalone_mode=True)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def find_mismatch(line: RunLine, output: str) -> str:
    """Return the CHECK line of a RUN line that its output does not match, or ""."""
    options = Options(match_filename=str(line.path), check_prefixes=list(line.check_prefixes))
    report = io.StringIO()
    with redirect_stderr(report), redirect_stdout(report):
        parser = Parser(options, io.StringIO(_with_line_numbers(line.path)), *pattern_for_opts(options))
        code = Matcher(options, FInput("output", output), parser).run()
    return "" if code == 0 else f"{report.getvalue()}\n{output}"


def _with_line_numbers(path: Path) -> str:
    """Return the text of a file with numbers for ``[[@LINE+1]]``, which the package filecheck does not know."""
    lines = path.read_text().splitlines(keepends=True)
    return "".join(
        _LINE.sub(lambda match, number=number: str(number + int(match[1] or 0)), line)  # type: ignore[misc]
        for number, line in enumerate(lines, 1)
    )


def reference_difference(line: RunLine) -> str:
    """Return the reason why the C++ passes print something else for a line, or ""."""
    match = _REFERENCE.search(line.path.read_text())
    is_meant = match is not None and (match[1] is None or any(match[1] in word for word in line.arguments))
    return match[2] if match is not None and is_meant else ""

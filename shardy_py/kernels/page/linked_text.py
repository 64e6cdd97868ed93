"""Texts of a kernel whose lines know the ops of its fusion: its stages, PTX and machine code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO

from xdsl.dialects import builtin, func
from xdsl.ir import Operation
from xdsl.printer import Printer

from shardy_py.errors import OptionError, VerificationError
from shardy_py.kernels.kernel import INITIAL, Kernel
from shardy_py.kernels.locations import inherit_locations, located_op
from shardy_py.kernels.lower.literals import nvptx
from shardy_py.kernels.lower.llvm import llvm_text
from shardy_py.kernels.lower.machine import ptx_text
from shardy_py.kernels.machine_code import sass_text
from shardy_py.kernels.requirements import find_libdevice
from shardy_py.values import frozen

GRID = -1
"""The number that stands for the grid: the numbers of threads, loops, indices."""

_FIRST_LINE = 2
"""The line of the first op of the fusion in debug information; the grid has the line before."""

_PTX_LINE = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_PTX_DEBUG = re.compile(r"\s*(\.loc|\.file)\s|\s*\$L__(tmp|func_begin|func_end)\d+:|\s*\.section\s+\.debug")
_SASS_LINE = re.compile(r'\s*//## File "[^"]*", line (\d+)')


@frozen
class LinkedLine:
    """A line of a text.

    Args:
        text: The line.
        op: The number of the op of the fusion that it is for; `GRID` for the grid, None where it is not known.
    """

    text: str
    op: int | None


@frozen
class LinkedText:
    """A text of a kernel.

    Args:
        title: The name of the stage, ``PTX`` or ``SASS``.
        lines: Its lines.
        missing: Why there is no text; empty where there is one.
    """

    title: str
    lines: tuple[LinkedLine, ...]
    missing: str = ""

    def __str__(self) -> str:
        return "".join(f"{line.text}\n" for line in self.lines)


class _CountingStream(StringIO):
    """A stream that counts its lines."""

    line = 1

    def write(self, text: str, /) -> int:
        self.line += text.count("\n")
        return super().write(text)


class _LinePrinter(Printer):
    """A printer that records the line at which each op begins."""

    def __init__(self) -> None:
        self.text = _CountingStream()
        self.lines: dict[Operation, int] = {}
        super().__init__(self.text)

    def print_op(self, op: Operation) -> None:
        self.lines[op] = self.text.line
        super().print_op(op)


def linked_texts(kernel: Kernel) -> tuple[list[LinkedText], list[LinkedText]]:
    """Return the texts of a kernel's modules, those that a pass leaves as they are left out, and of its machines.

    Args:
        kernel: The kernel.

    Raises:
        UnsupportedError: as for `Kernel.llvm`.
    """
    numbers = {inner.id: number for number, op in enumerate(kernel.fusion.ops) for inner in op.walk()}
    stages: list[LinkedText] = []

    def keep(name: str, module: builtin.ModuleOp) -> None:
        inherit_locations(module)
        stage = _linked_module(f"{len(seen) - 1:02}.{name}" if seen else name, module, numbers)
        seen.append(stage.title)
        if not stages or str(stage) != str(stages[-1]):
            stages.append(stage)

    seen: list[str] = []
    keep(INITIAL, kernel.initial_module())
    module = kernel.module(keep)
    return stages, list(_machine_texts(kernel, module, numbers))


def _linked_module(title: str, module: builtin.ModuleOp, numbers: Mapping[int, int]) -> LinkedText:
    printer = _LinePrinter()
    printer.print_op(module)
    ops = {line: _number(op, numbers) for op, line in printer.lines.items()}
    texts = printer.text.getvalue().split("\n")
    return LinkedText(title, tuple(LinkedLine(text, ops.get(line)) for line, text in enumerate(texts, start=1)))


def _number(op: Operation, numbers: Mapping[int, int]) -> int | None:
    located = located_op(op)
    if located is None:
        return None if isinstance(op, builtin.ModuleOp | func.FuncOp) else GRID
    return numbers.get(located)


def _machine_texts(kernel: Kernel, module: builtin.ModuleOp, numbers: Mapping[int, int]) -> Iterator[LinkedText]:
    """Yield the texts for the device; its instructions where NVIDIA's programs are installed.

    Instructions that LLVM unites keep a line that they share, so that the ops of the fusion are the lines.
    """
    library = find_libdevice(kernel.libdevice)
    target = nvptx(has_libdevice=library is not None)
    lines = {op: _FIRST_LINE + (GRID if (number := _number(op, numbers)) is None else number) for op in module.walk()}
    ptx = ptx_text(llvm_text(module, kernel.launch, target, lines), kernel.name, kernel.device, library)
    yield LinkedText("PTX", tuple(_linked_lines(ptx.rstrip().split("\n"), _PTX_LINE)))
    try:
        sass = sass_text(ptx, kernel.device, with_lines=True)
    except (OptionError, VerificationError) as error:
        yield LinkedText("SASS", (), str(error))
        return
    yield LinkedText("SASS", tuple(_linked_lines(sass.rstrip().split("\n"), _SASS_LINE)))


def _linked_lines(texts: Sequence[str], pattern: re.Pattern[str]) -> Iterator[LinkedLine]:
    """Yield the lines of a text without those that name ops; the instructions behind one of these are for its op."""
    current: int | None = None
    for text in texts:
        match = pattern.match(text)
        if match is not None:
            # Line 0 is what LLVM gives to instructions of several lines.
            current = int(match[1]) - _FIRST_LINE if int(match[1]) else None
        elif not _PTX_DEBUG.match(text):
            is_instruction = text.rstrip().endswith((";", "*/"))
            yield LinkedLine(text, current if is_instruction else None)

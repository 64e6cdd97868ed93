"""Lines of a source as debug information of LLVM, which PTX and machine code then hold for their instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from xdsl.dialects import func
from xdsl.ir import Operation

FILE = "fusion"
"""The name of the source in the debug information."""

_FIRST = 10
"""The first number of a node: those before it have other nodes of the module."""


@final
class DebugLines:
    """The debug information of a module while it is written.

    Args:
        lines: The line of each op, from 1 on.
    """

    def __init__(self, lines: Mapping[Operation, int]) -> None:
        self._lines = lines
        unit, file, version, no_types, type_ = (f"!{number}" for number in range(_FIRST, _FIRST + 5))
        self._file, self._unit, self._type = file, unit, type_
        self._nodes = [
            f"distinct !DICompileUnit(language: DW_LANG_C, file: {file}, isOptimized: true, runtimeVersion: 0, "
            "emissionKind: DebugDirectivesOnly)",
            f'!DIFile(filename: "{FILE}", directory: "")',
            '!{i32 2, !"Debug Info Version", i32 3}',
            "!{}",
            f"!DISubroutineType(types: {no_types})",
        ]
        self._named = f"!llvm.dbg.cu = !{{{unit}}}\n!llvm.module.flags = !{{{version}}}\n"
        self._function = ""
        self._locations: dict[tuple[str, int], str] = {}

    def begin(self, function: func.FuncOp, head: str) -> str:
        """Return the first line of a function, to which the lines of ops that follow belong."""
        self._function = self._node(
            f'distinct !DISubprogram(name: "{function.sym_name.data}", scope: {self._file}, file: {self._file}, '
            f"line: {self._lines[function]}, type: {self._type}, unit: {self._unit}, "
            "spFlags: DISPFlagDefinition | DISPFlagOptimized)"
        )
        return f"{head.removesuffix('{')}!dbg {self._function} {{"

    def located(self, line: str, op: Operation) -> str:
        """Return an instruction with the line of the op that it is written for."""
        key = self._function, self._lines[op]
        if key not in self._locations:
            self._locations[key] = self._node(f"!DILocation(line: {key[1]}, scope: {key[0]})")
        return f"{line}, !dbg {self._locations[key]}"

    @property
    def text(self) -> str:
        """The metadata of the module."""
        nodes = (f"!{number} = {node}\n" for number, node in enumerate(self._nodes, start=_FIRST))
        return self._named + "".join(nodes)

    def _node(self, text: str) -> str:
        self._nodes.append(text)
        return f"!{_FIRST + len(self._nodes) - 1}"

"""The shardings of a whole program as a text that is kept and compared."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

from shardy_py.api.result import Result
from shardy_py.api.source import read_program
from shardy_py.api.summary import sharding_of
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.support.files import write_atomically

UPDATE = "--shardy-update-snapshots"
"""The option of pytest that writes the files anew."""


def sharding_snapshot(module: Any) -> str:
    """Return the meshes of a program and the sharding of each of its values, one per line.

    Values are numbered by their op within each function, whatever the text of the module calls them. A value that
    propagation did not reach has a dash.

    Args:
        module: What `shardy_py.propagate` returned; or a module in any form that it takes, as it is.
    """
    if isinstance(module, Result):
        program, registry = module.program, module.registry

        def find(value: Value) -> object:
            return sharding_of(program, value, registry)
    else:
        program = module if isinstance(module, Program) else read_program(module)

        def find(value: Value) -> object:
            return program.shardings.get(value.id)

    lines = [f"mesh @{name} = {mesh}" for name, mesh in program.meshes.items()]
    for name, function in program.functions.items():
        lines.append(f"func @{name}")
        lines += _Lines(find).of_function(function)
    return "".join(f"{line}\n" for line in lines)


def assert_sharding_snapshot(module: Any, expected: str | os.PathLike[str], *, update: bool = False) -> None:
    """Assert that the shardings of a program are those kept in a file or in the test itself.

    Args:
        module: See `sharding_snapshot`.
        expected: A path (not a text) of the file that keeps the snapshot; or the snapshot as a text, whose indentation
            does not count.
        update: Whether to write the file instead of comparing.

    Raises:
        AssertionError: the shardings differ, or there is no file; the message shows what differs.
        OptionError: a text is to be updated.
    """
    snapshot = sharding_snapshot(module)
    if isinstance(expected, str):
        if update:
            raise OptionError(Diagnostic("snapshot-text", "a snapshot in a test cannot be updated", hint="give a path"))
        _compare(cleandoc(expected).rstrip() + "\n", snapshot, "the text of the test", "the new text is\n" + snapshot)
        return
    path = Path(expected)
    if update:
        _write(path, snapshot)
        return
    if not path.exists():
        raise AssertionError(f"there is no snapshot {path}; {_advice(path)}\n{snapshot}")
    _compare(path.read_text(encoding="utf-8"), snapshot, str(path), _advice(path))


def _advice(path: Path) -> str:
    return f"pytest {UPDATE} writes {path.name}"


def _compare(expected: str, actual: str, where: str, advice: str) -> None:
    if expected == actual:
        return
    lines = difflib.unified_diff(expected.splitlines(), actual.splitlines(), where, "found", n=1, lineterm="")
    raise AssertionError("the shardings are not those of the snapshot\n" + "\n".join(lines) + f"\n{advice}")


def _write(path: Path, text: str) -> None:
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)


class _Lines:
    """The lines of one function; values get their names in the order in which they are met."""

    def __init__(self, find: Callable[[Value], object]) -> None:
        self._find = find
        self._ops = 0
        self._arguments = 0

    def of_function(self, function: Op) -> list[str]:
        lines = [line for region in function.regions for block in region.blocks for line in self._block(block, 1)]
        shown = [self._value(f"result {value.index}", value) for value in function.function_results]
        return lines + [f"  {line}" for line in shown]

    def _block(self, block: Block, depth: int) -> Iterator[str]:
        margin = "  " * depth
        for value in block.arguments:
            yield margin + self._value(f"%arg{self._arguments}", value)
            self._arguments += 1
        for op in block.ops:
            yield from self._op(op, depth)

    def _op(self, op: Op, depth: int) -> Iterator[str]:
        margin = "  " * depth
        if op.results:
            name = f"%{self._ops}"
            self._ops += 1
            yield from (margin + line for line in self._results(name, op))
        elif op.regions:
            yield f"{margin}{op.name}"
        for region in op.regions:
            for block in region.blocks:
                yield from self._block(block, depth + 1)

    def _results(self, name: str, op: Op) -> Iterable[str]:
        if len(op.results) == 1:
            return [self._value(f"{name} = {op.name}", op.results[0])]
        return [self._value(f"{name}#{value.index} = {op.name}", value) for value in op.results]

    def _value(self, label: str, value: Value) -> str:
        sharding = self._find(value)
        return f"{label}: {value.type} {'-' if sharding is None else sharding}"

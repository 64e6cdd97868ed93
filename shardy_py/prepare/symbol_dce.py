"""Erase private functions and other symbols that nothing refers to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar

from attrs import frozen

from shardy_py.ir.attributes import Attribute, RawAttribute, SymbolRef
from shardy_py.ir.callgraph import callee_of, main_function
from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.passes import PassContext
from shardy_py.ir.symbols import SYMBOL_NAME, calls_by_function
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue

VISIBILITY = "sym_visibility"

_SYMBOL = re.compile(r'@(?:"((?:[^"\\]|\\.)*)"|([\w$.-]+))')


@frozen
class SymbolDcePass:
    """Erase symbols that are not public, unless a public symbol or another op needs them, if only indirectly.

    Args:
        keep_main: Whether the main function stays although it is private, where no function is public.
    """

    name: ClassVar[str] = "symbol-dce"

    keep_main: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Erase the dead symbols of a program.

        Raises:
            UnsupportedError: there is no main function, but it should be kept.
        """
        dead = {
            op.attributes[SYMBOL_NAME]: op
            for op in program.body.ops
            if SYMBOL_NAME in op.attributes and op.attributes.get(VISIBILITY, "public") != "public"
        }
        if not dead:
            return
        if self.keep_main and all(dead.get(name) is op for name, op in program.functions.items()):
            main = main_function(program)
            dead = {name: op for name, op in dead.items() if op is not main}
        alive = [op for op in program.body.ops if dead.get(op.attributes.get(SYMBOL_NAME, "")) is not op]
        # Calls keep nearly all functions alive; where they keep all, there is no need to look at all other ops.
        calls = calls_by_function(program)
        _revive(alive, dead, lambda op: filter(None, map(callee_of, calls.get(op, ()))))
        if dead:
            _revive(alive, dead, _References(program).of)
        for op in dead.values():
            op.erase()


def _revive(alive: list[Op], dead: dict[str, Op], references: Callable[[Op], Iterable[str]]) -> None:
    """Move from the dead to the living what the living refer to, if only indirectly."""
    waiting = list(alive)
    while dead and waiting:
        for name in references(waiting.pop()):
            op = dead.pop(name, None)
            if op is not None:
                waiting.append(op)
                alive.append(op)


class _References:
    """Finds the symbols to which ops refer; equal attributes and shardings are looked at once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._seen: dict[tuple[int, int], tuple[object, tuple[str, ...]]] = {}

    def of(self, root: Op) -> Iterator[str]:
        """Yield the names of all symbols to which an op and those inside refer, some of them more than once."""
        table = self._program.shardings
        for op in root.walk():
            yield from self._in_attributes(op.attributes)
            values = [*op.results, *op.function_results, *_arguments(op)] if op.regions else op.results
            for value in values:
                sharding = table.get(value.id)
                if sharding is not None and type(sharding.mesh) is str:
                    yield sharding.mesh

    def _in_attributes(self, attributes: Mapping[str, Attribute]) -> Iterable[str]:
        parts = getattr(attributes, "parts", None)
        if parts is None:
            return _distinct(attributes.values())
        key = id(parts[0]), id(parts[1])
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = parts, _distinct(attributes.values())
        return found[1]


def _distinct(values: Iterable[Attribute]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([name for value in values for name in _in_attribute(value)]))


def _arguments(op: Op) -> Iterator[Value]:
    return (argument for region in op.regions for block in region.blocks for argument in block.arguments)


def _in_attribute(value: Attribute) -> Iterator[str]:
    if isinstance(value, (SymbolRef, RawAttribute)):
        for quoted, bare in _SYMBOL.findall(str(value)):
            yield quoted or bare
    elif isinstance(value, TensorSharding):
        if isinstance(value.mesh, str):
            yield value.mesh
    elif isinstance(value, TensorShardingPerValue):
        for sharding in value.shardings:
            yield from _in_attribute(sharding)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _in_attribute(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _in_attribute(item)

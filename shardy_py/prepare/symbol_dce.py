"""Erase private functions and other symbols that nothing refers to."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import ClassVar

from attrs import frozen

from shardy_py.ir.attributes import Attribute, DenseElements, OpaqueElements, RawAttribute, SymbolRef
from shardy_py.ir.callgraph import callee_of, main_function
from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.passes import PassContext
from shardy_py.ir.shardings import distinct
from shardy_py.ir.symbols import FUNCTION, SYMBOL_NAME, calls_by_function
from shardy_py.ir.types import OpaqueType, TensorType
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue

VISIBILITY = "sym_visibility"

_PLAIN = frozenset((bool, int, float, str, DenseElements, OpaqueElements, TensorType, OpaqueType))
"""The classes of most attributes, none of which refers to a symbol."""

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
            _revive(alive, dead, _References(program, dead).of)
        for op in dead.values():
            _erase(program, op)


def _revive(alive: list[Op], dead: dict[str, Op], references: Callable[[Op], Iterable[str]]) -> None:
    """Move from the dead to the living what the living refer to, if only indirectly."""
    waiting = list(alive)
    while dead and waiting:
        for name in references(waiting.pop()):
            op = dead.pop(name, None)
            if op is not None:
                waiting.append(op)
                alive.append(op)


def _erase(program: Program, symbol: Op) -> None:
    """Erase a symbol; of a function, which uses nothing from outside, the ops inside need not be taken apart."""
    if symbol.name != FUNCTION:
        symbol.erase()
        return
    table = program.shardings
    for op in symbol.walk():
        for value in (*op.results, *op.function_results, *_arguments(op)) if op.regions else op.results:
            table.pop(value.id, None)
    program.body.remove(symbol)


class _References:
    """Finds the symbols to which ops refer; equal attributes are looked at once."""

    def __init__(self, program: Program, wanted: Container[str]) -> None:
        """Prepare to find the symbols of some names; others may be found, too."""
        self._table = program.shardings
        self._seen: dict[tuple[int, int], tuple[object, tuple[str, ...]]] = {}
        meshes = {sharding.mesh for sharding in distinct(self._table.values())}
        self._by_shardings = any(mesh in wanted for mesh in meshes if isinstance(mesh, str))

    def of(self, root: Op) -> set[str]:
        """Return the names of the symbols to which an op and those inside refer."""
        names: set[str] = set()
        seen = self._seen
        for op in root.walk():
            parts = getattr(op.attributes, "parts", None)
            if parts is None:
                names.update(_distinct(op.attributes.values()))
                continue
            key = id(parts[0]), id(parts[1])
            found = seen.get(key)
            if found is None:
                found = seen[key] = parts, _distinct(op.attributes.values())
            if found[1]:
                names.update(found[1])
        if self._by_shardings:
            names.update(self._in_shardings(root))
        return names

    def _in_shardings(self, root: Op) -> Iterator[str]:
        for op in root.walk():
            for value in (*op.results, *op.function_results, *_arguments(op)):
                sharding = self._table.get(value.id)
                if sharding is not None and isinstance(sharding.mesh, str):
                    yield sharding.mesh


def _distinct(values: Iterable[Attribute]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([name for value in values for name in _in_attribute(value)]))


def _arguments(op: Op) -> Iterator[Value]:
    return (argument for region in op.regions for block in region.blocks for argument in block.arguments)


def _in_attribute(value: Attribute) -> Iterator[str]:
    if type(value) in _PLAIN:
        return
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

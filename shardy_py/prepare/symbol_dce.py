"""Erase private functions and other symbols that nothing refers to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from attrs import frozen

from shardy_py.ir.attributes import Attribute, RawAttribute, SymbolRef
from shardy_py.ir.callgraph import main_function
from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.passes import PassContext
from shardy_py.ir.symbols import SYMBOL_NAME
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
        waiting = [op for op in program.body.ops if dead.get(op.attributes.get(SYMBOL_NAME, "")) is not op]
        finder = _References(program)
        while waiting:
            for name in finder.of(waiting.pop()):
                if name in dead:
                    waiting.append(dead.pop(name))
        for op in dead.values():
            op.erase()


class _References:
    """Finds the symbols to which ops refer; ops with the same attributes are looked at once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._seen: dict[int, tuple[Mapping[str, Attribute], tuple[str, ...]]] = {}

    def of(self, root: Op) -> Iterator[str]:
        """Yield the names of all symbols to which an op and those inside refer, some of them more than once."""
        table = self._program.shardings
        for op in root.walk():
            yield from self._in_attributes(op.attributes)
            for value in (*op.results, *op.function_results, *_arguments(op)):
                if value.id in table:
                    yield from _in_attribute(table[value.id])

    def _in_attributes(self, attributes: Mapping[str, Attribute]) -> Iterable[str]:
        key = getattr(attributes, "key", None)
        if key is None:
            return [name for value in attributes.values() for name in _in_attribute(value)]
        found = self._seen.get(id(key))
        if found is None:
            names = tuple(dict.fromkeys([name for value in attributes.values() for name in _in_attribute(value)]))
            found = self._seen[id(key)] = key, names
        return found[1]


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

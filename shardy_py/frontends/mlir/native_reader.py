"""Reader of the structure of a native module, through MLIR's bindings: its ops, and the printed names of its values.

It takes the place of `BytecodeReader` for modules whose bytecode would be too large: all constants are in it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Hashable, Iterator, Sequence
from itertools import compress, islice
from math import prod
from operator import attrgetter
from typing import Any, ClassVar

from jaxlib.mlir import ir

from shardy_py.frontends.mlir.bytecode import OpRecord
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import entry_arguments
from shardy_py.ir.interfaces.frontend import PrintedName
from shardy_py.sharding.lexer import unescape
from shardy_py.support.late_patterns import late_pattern

_NAME_IN_LOCATION = late_pattern(r'loc\("((?:[^"\\]|\\.)*)"(?:\(.*\))?\)', re.DOTALL)


def native_values(program: Program) -> Iterator[tuple[Value, Any]]:
    """Iterate over all values with their native ones, in program order."""
    for op in program.walk():
        if op.handle is not None:
            yield from zip(op.results, op.handle.native.results, strict=True)
        for region in op.regions:
            for block in region.blocks:
                if block.handle is not None:
                    yield from zip(block.arguments, block.handle.native.arguments, strict=True)


def names_of(program: Program) -> dict[int, PrintedName]:
    """Return the printed names of all values (``%5``, ``%5#1``, ``%arg0``), and the native values."""
    state = ir.AsmState(program.origin.module.operation)
    return {value.id: PrintedName(native.get_name(state), native) for value, native in native_values(program)}


def argument_names(function: Op) -> Sequence[str]:
    """Return the names in the locations of a function's arguments, "" where there is none."""
    arguments = entry_arguments(function)
    if not arguments or function.handle is None:
        return ()
    return [location_name(native.location) for native in function.handle.native.regions[0].blocks[0].arguments]


def location_name(location: ir.Location) -> str:
    """Return the name of a location that has one and is no place in a file, else ""."""
    match = _NAME_IN_LOCATION.fullmatch(str(location))
    return (unescape(match[1]) or "") if match else ""


try:
    from resource import RUSAGE_SELF, getrusage
except ImportError:  # There is no such module on Windows.
    getrusage = None  # type: ignore[assignment]

_NAME = attrgetter("name")
LARGE = 4_000_000
"""The limit on the elements of all constants in a module that is written as bytecode."""
MUCH_MEMORY = 512 * 1024**2
"""The least memory of a process with constants that are too large to copy, in bytes, all libraries included."""


class NativeReader:
    """Reads the ops of a module one after the other, see `BytecodeReader`; several times slower.

    The region of every op counts as one that may see values from around it. What its numbers mean is of one run.
    """

    tables: ClassVar[bytes] = b""

    def __init__(self, module: ir.Module) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._values: dict[ir.Value, int] = {}
        self._items: Iterator[Any] = self._of_module(module.operation)

    def number(self) -> int:
        """Read a number."""
        number: int = next(self._items)
        return number

    def block(self) -> tuple[int, list[int]]:
        """Read how many ops a block has, and the numbers of the types of its arguments."""
        block: tuple[int, list[int]] = next(self._items)
        return block

    def ops(self, count: int) -> Iterator[OpRecord]:
        """Read some ops; the caller reads the regions of each before the next op."""
        return islice(self._items, count)

    def _of_module(self, module: ir.Operation) -> Iterator[Any]:
        yield 1, []
        yield self._record(module)
        yield from self._of_region(module.regions[0], 0)

    def _of_region(self, region: ir.Region, first: int) -> Iterator[Any]:
        """Yield the blocks and ops of a region; the number of its first value is given."""
        blocks = [(block, [op.operation for op in block.operations]) for block in region.blocks]
        yield len(blocks)
        if not blocks:
            return
        end = first
        for block, ops in blocks:
            for value in (*block.arguments, *(result for op in ops for result in op.results)):
                self._values[value] = end
                end += 1
        yield end - first
        for block, ops in blocks:
            yield len(ops), [self._number(argument.type) for argument in block.arguments]
            for op in ops:
                yield self._record(op)
                for inner in op.regions:
                    yield from self._of_region(inner, end)

    def _record(self, op: ir.Operation) -> OpRecord:
        return (
            self._number(op.name),
            self._number(_attributes(op)),
            tuple([self._number(type_) for type_ in op.results.types]),
            tuple([self._values[operand] for operand in op.operands]),
            2 * len(op.regions),
        )

    def _number(self, thing: Hashable) -> int:
        return self._numbers.setdefault(thing, len(self._numbers))


def _attributes(op: ir.Operation) -> Hashable:
    """Return a key that is equal for ops with the same attributes, as far as the bindings show them."""
    try:
        return tuple(op.attributes.items())
    except TypeError:
        # They have no class for one of the attributes (see `AttributeSets`); such a set is of this op alone.
        return op


def has_large_constants(natives: Sequence[ir.Operation]) -> bool:
    """Return whether the constants among some ops have many elements, those that are all the same aside."""
    if not _may_hold_large_constants():
        return False
    names = list(map(_NAME, natives))
    constants = {name for name in set(names) if name.endswith("constant")}
    elements: dict[ir.Type, int] = {}
    total = 0
    for native in compress(natives, map(constants.__contains__, names)):
        for type_ in native.results.types:
            count = elements.get(type_)
            if count is None:
                count = elements[type_] = _count(type_)
            if count * 100 > LARGE and not _has_splat(native):
                total += count
        if total > LARGE:
            return True
    return False


def _may_hold_large_constants() -> bool:
    """Return whether this process ever took much memory, which saves a look at all ops where it did not."""
    if getrusage is None:
        return True
    peak = getrusage(RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) > MUCH_MEMORY


def _count(type_: ir.Type) -> int:
    shape: Sequence[int] = type_.shape if isinstance(type_, ir.RankedTensorType) else ()
    return prod(shape)


def _has_splat(native: ir.Operation) -> bool:
    """Return whether the value of a constant is one number, of which there is one in the bytecode, too."""
    try:
        value = native.attributes["value"]
    except (KeyError, TypeError):
        return False
    return isinstance(value, ir.DenseElementsAttr) and value.is_splat

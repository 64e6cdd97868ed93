"""Blocks that elements are emitted into, and what is known in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from xdsl.builder import Builder, InsertPoint
from xdsl.ir import Block, Operation, SSAValue

from shardy_py.indexing import IndexingMap, Interval
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.elemental.index_expressions import (
    add_op,
    apply_map,
    domain_condition,
    index_constant,
    interval_conditions,
)
from shardy_py.plugins import Registry

Indices = tuple[SSAValue, ...]


class EmissionContext(Protocol):
    """Context of a scope: the facts of its function.

    Attributes:
        registry: What is known about ops.
        index_bits: The bits that an index has where it becomes an integer.
    """

    registry: Registry
    index_bits: int

    def outside(self, scope: Scope, value: Value, indices: Indices) -> SSAValue | None:
        """Return an element of a value that the function does not compute itself, or None where it does."""
        ...

    def computes(self, value: Value) -> bool:
        """Return whether the function computes elements of a value itself, by the op that defines it."""
        ...

    def region_function(self, op: Op, region: int = 0) -> str:
        """Return the name of the function that computes a region of an op on scalars."""
        ...


class Scope:
    """Emits elements into a block, and reuses those that enclosing blocks computed.

    Args:
        surroundings: The function.
        builder: Where ops are added.
        parent: The scope of the block around.
    """

    def __init__(self, surroundings: EmissionContext, builder: Builder, parent: Scope | None = None) -> None:
        self.surroundings = surroundings
        self.builder = builder
        self._parent = parent
        # The ops whose scalar bodies are being run, in this block and those around it.
        self.nested: list[Op] = [] if parent is None else parent.nested
        self._known: dict[tuple[int, Indices], SSAValue] = {}
        self._read_once: set[tuple[int, Indices]] = set()

    def add(self, op: Operation) -> SSAValue:
        """Add an op and return its first result."""
        return add_op(self.builder, op)

    def index(self, value: int) -> SSAValue:
        """Return a constant index."""
        return index_constant(self.builder, value)

    def find(self, key: tuple[int, Indices]) -> SSAValue | None:
        """Return an element that this block or an enclosing one computed before, or None."""
        element = self._known.get(key)
        return element if element is not None or self._parent is None else self._parent.find(key)

    def remember(self, value: Value, indices: Indices, element: SSAValue) -> None:
        """Take an element as computed."""
        self._known[value.id, indices] = element

    def outside(self, value: Value, indices: Indices) -> SSAValue | None:
        """Return an element of a value that the function does not compute itself, or None where it does."""
        key = (value.id, indices)
        element = self.surroundings.outside(self, value, indices)
        if element is None:
            return None
        # Mirrors how often XLA reads a parameter: the second read is remembered. Equal reads are united later.
        if key in self._read_once:
            self._known[key] = element
        self._read_once.add(key)
        return element

    def apply(self, map_: IndexingMap, indices: Sequence[SSAValue], symbols: Sequence[SSAValue] = ()) -> list[SSAValue]:
        """Return the results of a map, each by an op of its own; variables and constants need none."""
        return apply_map(self.builder, map_, indices, symbols)

    def within(self, value: SSAValue, interval: Interval) -> list[SSAValue]:
        """Return conditions that a value lies in an interval."""
        return interval_conditions(self.builder, value, interval)

    def inside(self, map_: IndexingMap, indices: Sequence[SSAValue], symbols: Sequence[SSAValue] = ()) -> SSAValue:
        """Return whether variables lie in the domain of a map."""
        return domain_condition(self.builder, map_, indices, symbols)

    @contextmanager
    def block(self, argument_types: Sequence[Any] = ()) -> Iterator[tuple[Scope, Block]]:
        """Open a new block inside this one; the caller puts it into a region."""
        block = Block(arg_types=list(argument_types))
        yield Scope(self.surroundings, Builder(InsertPoint.at_end(block)), self), block

"""Reads of parameters by the work for one element: its scalar bodies are followed from an element to the parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, final

from shardy_py.indexing import (
    Constant,
    Expression,
    VariableKind,
    dim,
)
from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.composition import results_at
from shardy_py.indexing.expressions import variables_of
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.fusion.bodies import Traced
from shardy_py.kernels.fusion.body_indices import BodyIndices, Index, UnknownReadsError
from shardy_py.support.identity import identity
from shardy_py.values import frozen


@frozen
class Read:
    """An element of a parameter that is read.

    Args:
        parameter: The id of the parameter.
        index: The index, from the index of the element that is computed.
    """

    parameter: int
    index: Index


@final
class ElementReads:
    """The reads for an element of a shape; equal indices of several of them are equal at run time.

    Args:
        indices: The indices for an element of the shape over which the elements run.
    """

    def __init__(self, indices: BodyIndices) -> None:
        self._indices = indices
        self._fusion = indices.fusion
        self._shape = indices.shape

    @property
    def start(self) -> Index:
        """The index of the element itself."""
        return tuple(Constant(0) if size == 1 else dim(number) for number, size in enumerate(self._shape))

    def of(self, value: Value, index: Index) -> Iterator[Read]:
        """Yield which elements of parameters are read for an element of a value.

        Raises:
            UnknownReadsError: an op between them has no scalar body that can be followed.
        """
        pending = [(value, index)]
        seen: set[tuple[int, Index]] = set()
        while pending:
            current, at = pending.pop()
            if (current.id, at) in seen:
                continue
            seen.add((current.id, at))
            op = self._fusion.producer(current)
            if op is None:
                yield Read(current.id, self._indices.simplified(at))
                continue
            pending += self._operands(op, self._body(op)[op.results.index(current)], at)

    def written_by(self, update: Op, parameter: Value) -> Index | None:
        """Return which element of a parameter a dynamic update writes for an element of its update; None if unknown.

        Args:
            update: The dynamic update.
            parameter: The parameter that has the memory of its operand, maybe under another shape or layout.
        """
        rank = len(self._shape)
        reads = [item for item in _walk(self._body(update)[0]) if item.kind == "operand" and item.parts[0] == 1]
        if len(reads) != 1 or reads[0].parts[1] is None:
            return None
        variables = tuple(dim(number) for number in range(rank))
        inner = [self._indices.expression(update, part, variables) for part in reads[0].parts[1]]
        moved = [canonicalize(place - index) for place, index in zip(inner, variables, strict=True)]
        # The update is read at the index less its start, so that what is left of the difference is the start.
        if any(_has_dim(offset) for offset in moved):
            return None
        pairs = zip(self.start, moved, strict=True)
        place = tuple(canonicalize(index - offset) for index, offset in pairs)
        in_memory = self._fusion.same_place(update.operands[0], parameter)
        return self._indices.simplified(results_at(in_memory, place))

    def _body(self, op: Op) -> Sequence[Traced]:
        body = self._fusion.facts[op.id].body
        if not body:
            raise UnknownReadsError(op.name)
        return body

    def _operands(self, op: Op, body: Traced, index: Index) -> Iterator[tuple[Value, Index]]:
        """Yield which elements of operands a scalar body reads."""
        for item in _walk(body):
            if item.kind == "operand":
                yield op.operands[item.parts[0]], self._indices.read_index(op, item, index)


def _has_dim(expression: Expression) -> bool:
    return any(variable.kind is VariableKind.DIM for variable in variables_of(expression))


def _walk(item: Any) -> Iterator[Traced]:
    """Yield a traced value and all that it is made of."""
    pending, seen = [item], set[int]()
    while pending:
        part = pending.pop()
        if isinstance(part, tuple):
            pending += part
        elif isinstance(part, Traced) and identity(part) not in seen:
            seen.add(identity(part))
            yield part
            pending += part.parts


def reads_only_what_it_writes(indices: BodyIndices, update: Op, parameter: Value, written: Collection[int]) -> bool:
    """Return whether a thread provably reads only the element that it overwrites of all parameters that are written.

    Slices that start at a run-time value are the same only if the value is: ``x[i:i+5]`` may be updated by what is
    computed from ``x[i:i+5]``, but not from ``x[j:j+5]``.

    Args:
        indices: The indices for an element of the update.
        update: The dynamic update.
        parameter: The parameter that has the memory of its operand.
        written: The ids of all parameters that are written, by this update and by others.
    """
    reads = ElementReads(indices)
    sources = [(update.operands[1], reads.start), *((start, ()) for start in update.operands[2:])]
    try:
        place = reads.written_by(update, parameter)
        all_reads = [read for value, index in sources for read in reads.of(value, index)]
    except UnknownReadsError:
        return False
    write = Read(parameter.id, place) if place is not None else None
    return write is not None and all(read == write for read in all_reads if read.parameter in written)

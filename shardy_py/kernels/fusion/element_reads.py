"""Reads of parameters by the work for one element, as index expressions over run-time values.

The scalar bodies of ops are followed from an element to the parameters. What an index is made of at run time, such as
the clamped start of a slice, is a variable of its own, and two indices share a variable only if the same values make
it: the same SSA value read at the same index, in the same computation.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, final

from shardy_py.indexing import (
    Binary,
    Bound,
    Constant,
    Expression,
    IndexingMap,
    Interval,
    Variable,
    VariableKind,
    dim,
    runtime,
    simplify,
)
from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.expressions import Operator, rewritten, variables_of
from shardy_py.ir.graph.attributes import freeze
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.fusion.bodies import Traced
from shardy_py.kernels.fusion.fusion import Fusion, shape_of
from shardy_py.support.identity import identity
from shardy_py.values import frozen

Index = tuple[Expression, ...]

_ARITHMETIC: dict[str, tuple[Operator, int]] = {"arith.addi": ("+", 1), "arith.subi": ("+", -1), "arith.muli": ("*", 1)}
# Nothing is known of the values that are read at run time; the bounds only have to be those of any index.
_ANY = Bound(Interval(-(1 << 62), 1 << 62))


class UnknownReadsError(Exception):
    """The scalar body of an op cannot be followed, so that what it reads is not known."""


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
        fusion: The fusion.
        shape: The shape over which the elements run.
    """

    def __init__(self, fusion: Fusion, shape: Sequence[int]) -> None:
        self._fusion = fusion
        self._shape = tuple(shape)
        self._variables: dict[Hashable, Variable] = {}

    @cached_property
    def _numbers(self) -> Mapping[int, int]:
        return number_values(self._fusion)

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
                yield Read(current.id, self.simplified(at))
                continue
            pending += self._operands(op, self._body(op)[op.results.index(current)], at)

    def simplified(self, index: Index) -> Index:
        """Return an index in the form in which equal ones are the same."""
        map_ = IndexingMap.of_shape(self._shape, index, runtimes=(_ANY,) * len(self._variables))
        return simplify(map_).results

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
        inner = [self._expression(update, part, variables) for part in reads[0].parts[1]]
        moved = [canonicalize(place - index) for place, index in zip(inner, variables, strict=True)]
        # The update is read at the index less its start, so that what is left of the difference is the start.
        if any(_has_dim(offset) for offset in moved):
            return None
        pairs = zip(self.start, moved, strict=True)
        place = tuple(canonicalize(index - offset) for index, offset in pairs)
        in_memory = self._fusion.same_place(update.operands[0], parameter)
        return self.simplified(tuple(_applied(in_memory, result, place, ()) for result in in_memory.results))

    def _body(self, op: Op) -> Sequence[Traced]:
        body = self._fusion.facts[op.id].body
        if not body:
            raise UnknownReadsError(op.name)
        return body

    def _operands(self, op: Op, body: Traced, index: Index) -> Iterator[tuple[Value, Index]]:
        """Yield which elements of operands a scalar body reads."""
        for item in _walk(body):
            if item.kind == "operand":
                yield op.operands[item.parts[0]], self._read_index(op, item, index)

    def _read_index(self, op: Op, read: Traced, index: Index) -> Index:
        """Return at which index a body reads an operand."""
        number, at = read.parts
        if at is not None:
            return tuple(self._expression(op, part, index) for part in at)
        map_ = self._fusion.facts[op.id].maps[number]
        if map_.is_undefined or map_.ranges or map_.runtimes:
            raise UnknownReadsError(op.name)
        return tuple(_applied(map_, result, index, ()) for result in map_.results)

    def _expression(self, op: Op, item: Traced, index: Index) -> Expression:
        """Return an index that a body computes, from the index of its element."""
        if item.kind == "index":
            return index[item.parts[0]]
        if item.kind == "constant":
            return Constant(int(complex(item.parts[0]).real))
        if item.kind == "apply":
            map_, dims, symbols, number = item.parts
            values = [[self._expression(op, part, index) for part in parts] for parts in (dims, symbols)]
            return _applied(map_, map_.results[number], *values)
        if item.kind == "op" and item.dtype == "index" and item.parts[0] in _ARITHMETIC:
            operator, sign = _ARITHMETIC[item.parts[0]]
            left, right = (self._expression(op, part, index) for part in item.parts[1])
            return canonicalize(Binary(operator, left, canonicalize(right * sign)))
        return self._variable(self._key(op, item, index))

    def _variable(self, key: Hashable) -> Variable:
        """Return the variable of what is read or computed at run time."""
        return self._variables.setdefault(key, runtime(len(self._variables)))

    def _key(self, op: Op, part: Any, index: Index) -> Hashable:
        """Return what a part of a body is made of, the same for parts that are equal at run time."""
        if isinstance(part, tuple):
            return tuple(self._key(op, item, index) for item in part)
        if not isinstance(part, Traced):
            return part
        if part.kind == "operand":
            at = self.simplified(self._read_index(op, part, index))
            return ("element", self._numbers[op.operands[part.parts[0]].id], at)
        if part.kind in ("op", "constant"):
            return (part.kind, part.dtype, self._key(op, part.parts, index))
        # Loops, conditions and literals belong to the op and to its element.
        return (part.kind, part.dtype, op.id, index, self._key(op, part.parts, index))


def _applied(map_: IndexingMap, result: Expression, dims: Sequence[Expression], symbols: Sequence[Expression]) -> Any:
    """Return a result of a map for values of its variables."""
    values: dict[Variable, Expression] = {Variable(VariableKind.DIM, number): item for number, item in enumerate(dims)}
    kinds = (VariableKind.RANGE, VariableKind.RUNTIME)
    names = [Variable(kind, number) for kind in kinds for number in range(len(map_.bounds(kind)))]
    values |= dict(zip(names, symbols, strict=False))
    return canonicalize(rewritten(result, values))


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


def reads_only_what_it_writes(fusion: Fusion, update: Op, parameter: Value, written: Collection[int]) -> bool:
    """Return whether a thread provably reads only the element that it overwrites of all parameters that are written.

    Slices that start at a run-time value are the same only if the value is: ``x[i:i+5]`` may be updated by what is
    computed from ``x[i:i+5]``, but not from ``x[j:j+5]``.

    Args:
        fusion: The fusion.
        update: The dynamic update.
        parameter: The parameter that has the memory of its operand.
        written: The ids of all parameters that are written, by this update and by others.
    """
    reads = ElementReads(fusion, shape_of(update.operands[1]))
    sources = [(update.operands[1], reads.start), *((start, ()) for start in update.operands[2:])]
    try:
        place = reads.written_by(update, parameter)
        all_reads = [read for value, index in sources for read in reads.of(value, index)]
    except UnknownReadsError:
        return False
    write = Read(parameter.id, place) if place is not None else None
    return write is not None and all(read == write for read in all_reads if read.parameter in written)


def number_values(fusion: Fusion) -> Mapping[int, int]:
    """Return a number for every value, by its id: that of the first value that is computed in the same way.

    Two ops compute the same if they have one name, equal attributes, and operands with equal numbers. Ops with regions
    compute the same as themselves only.
    """
    numbers = {value.id: value.id for value in fusion.parameters}
    firsts: dict[Hashable, tuple[int, ...]] = {}
    for op in fusion.ops:
        result_ids = tuple(value.id for value in op.results)
        operands = tuple(numbers.get(value.id, value.id) for value in op.operands)
        types = tuple(str(value.type) for value in op.results)
        key: Hashable = op.id if op.regions else (op.name, freeze(op.attributes), operands, types)
        first = firsts.setdefault(key, result_ids)
        numbers |= dict(zip(result_ids, first, strict=True))
    return numbers

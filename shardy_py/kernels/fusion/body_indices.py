"""Indices that scalar bodies compute, as expressions over run-time values.

What an index is made of at run time, such as the clamped start of a slice, is a variable of its own, and two indices
share a variable only if the same values make it: the same SSA value read at the same index, in the same computation.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, final

from shardy_py.indexing import Binary, Bound, Constant, Expression, IndexingMap, Interval, Variable, runtime, simplify
from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.composition import results_at
from shardy_py.indexing.expressions import Operator
from shardy_py.ir.graph.attributes import freeze
from shardy_py.ir.graph.program import Op
from shardy_py.kernels.fusion.bodies import Traced
from shardy_py.kernels.fusion.fusion import Fusion

Index = tuple[Expression, ...]

_ARITHMETIC: dict[str, tuple[Operator, int]] = {"arith.addi": ("+", 1), "arith.subi": ("+", -1), "arith.muli": ("*", 1)}
# Nothing is known of the values that are read at run time; the bounds only have to be those of any index.
_ANY = Bound(Interval(-(1 << 62), 1 << 62))


class UnknownReadsError(Exception):
    """The scalar body of an op cannot be followed, so that what it reads is not known."""


@final
class BodyIndices:
    """The indices that the bodies of a fusion compute for an element of a shape; equal ones are equal at run time.

    Args:
        fusion: The fusion.
        shape: The shape over which the elements run.
    """

    def __init__(self, fusion: Fusion, shape: Sequence[int]) -> None:
        self.fusion = fusion
        self.shape = tuple(shape)
        self._variables: dict[Hashable, Variable] = {}

    @cached_property
    def _numbers(self) -> Mapping[int, int]:
        return number_values(self.fusion)

    def simplified(self, index: Index) -> Index:
        """Return an index in the form in which equal ones are the same."""
        map_ = IndexingMap.of_shape(self.shape, index, runtimes=(_ANY,) * len(self._variables))
        return simplify(map_).results

    def read_index(self, op: Op, read: Traced, index: Index) -> Index:
        """Return at which index a body reads an operand."""
        number, at = read.parts
        if at is not None:
            return tuple(self.expression(op, part, index) for part in at)
        map_ = self.fusion.facts[op.id].maps[number]
        if map_.is_undefined or map_.ranges or map_.runtimes:
            raise UnknownReadsError(op.name)
        return results_at(map_, index)

    def expression(self, op: Op, item: Traced, index: Index) -> Expression:
        """Return an index that a body computes, from the index of its element."""
        if item.kind == "index":
            return index[item.parts[0]]
        if item.kind == "constant":
            return Constant(int(complex(item.parts[0]).real))
        if item.kind == "apply":
            map_, dims, symbols, number = item.parts
            values = [[self.expression(op, part, index) for part in parts] for parts in (dims, symbols)]
            return results_at(map_, chain(*values))[number]
        if item.kind == "op" and item.dtype == "index" and item.parts[0] in _ARITHMETIC:
            operator, sign = _ARITHMETIC[item.parts[0]]
            left, right = (self.expression(op, part, index) for part in item.parts[1])
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
            at = self.simplified(self.read_index(op, part, index))
            return ("element", self._numbers[op.operands[part.parts[0]].id], at)
        if part.kind in ("op", "constant"):
            return (part.kind, part.dtype, self._key(op, part.parts, index))
        # Loops, conditions and literals belong to the op and to its element.
        return (part.kind, part.dtype, op.id, index, self._key(op, part.parts, index))


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

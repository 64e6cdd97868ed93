"""Combiners: the laws of the regions by which reductions and scatters combine elements.

Threads combine elements in groups and in any order, each beginning with an initial value. That gives what one thread
would give, going over the elements once, if the region is associative and commutative, and if the initial value counts
as often as it is combined: once. It may count several times where combining it with itself changes nothing; elsewhere
threads begin with a neutral value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from typing import Any, final

from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.fusion.bodies import Traced
from shardy_py.kernels.fusion.combiner_numbers import (
    BITS,
    EXACT,
    FIELD,
    ORDER,
    Number,
    Numbers,
    OutsideNumbersError,
)
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of

_SPLAT = re.compile(r"dense<\(?\s*([^\[,()\">]+)(?:,\s*([^,()>]+)\))?>")

Numbered = tuple[Number, ...]
Combine = Callable[[Numbered, Numbered], Numbered]


def starts_of(fusion: Fusion, reduction: Op) -> tuple[int | None, ...] | None:
    """Return with which numbers the threads that share a reduction begin.

    Args:
        fusion: The fusion.
        reduction: The reduction.

    Returns:
        For each result a neutral number, or None for the initial value itself; None where the reduction cannot be
        shared.
    """
    if reduction.id not in fusion.starts:
        fusion.starts[reduction.id] = _starts(fusion, reduction)
    return fusion.starts[reduction.id]


def _starts(fusion: Fusion, reduction: Op) -> tuple[int | None, ...] | None:
    count = len(reduction.results)
    starts: list[int | None] = [None] * count
    for part in ScalarCombiner(fusion, reduction).parts:
        if part.numbers is None or not (part.is_associative and part.is_commutative):
            return None
        inits = [reduction.operands[count + number] for number in part.members]
        if part.is_idempotent or part.keeps([_constant(fusion, value) for value in inits]):
            continue
        neutral = part.neutral
        if neutral is None:
            return None
        for number, value in zip(part.members, neutral, strict=True):
            starts[number] = value
    return tuple(starts)


@final
class ScalarCombiner:
    """The region of an op as functions of numbers.

    Args:
        fusion: The fusion.
        op: The op; its region has two arguments per result: what is combined so far, then the next elements.
    """

    def __init__(self, fusion: Fusion, op: Op) -> None:
        self._fusion = fusion
        blocks = op.regions[0].blocks if len(op.regions) == 1 else []
        terminator = blocks[0].terminator if len(blocks) == 1 else None
        self._block = blocks[0] if terminator is not None else None
        self.results: tuple[Value, ...] = () if terminator is None else tuple(terminator.operands)
        self.arguments: tuple[Value, ...] = () if self._block is None else tuple(self._block.arguments)

    @cached_property
    def parts(self) -> tuple[CombinerPart, ...]:
        """The results in groups that share no arguments: the sum and the maximum of one region are apart."""
        count = len(self.results)
        if not count or len(self.arguments) != 2 * count:
            return (CombinerPart(self, ()),)
        places = {value.id: number % count for number, value in enumerate(self.arguments)}
        groups: list[set[int]] = []
        for number in range(count):
            read = {places[value] for value in self._read([self.results[number]]) if value in places}
            joined = {number, *read}.union(*(group for group in groups if group & (read | {number})))
            groups = [group for group in groups if not group & joined] + [joined]
        return tuple(CombinerPart(self, tuple(sorted(group))) for group in groups)

    @property
    def is_associative(self) -> bool:
        """True if the region is proven to be associative."""
        return all(part.is_associative for part in self.parts)

    def _read(self, values: Sequence[Value]) -> set[int]:
        """Return the ids of some values and of all values that they are computed from."""
        ids: set[int] = set()
        pending = list(values)
        while pending:
            value = pending.pop()
            if value.id not in ids:
                ids.add(value.id)
                pending += value.defining_op.operands if value.defining_op is not None else ()
        return ids

    def compute(self, numbers: Numbers, arguments: Mapping[int, Number], results: Sequence[int]) -> list[Number]:
        """Evaluate the region: return some of its results for numbers as its arguments.

        Args:
            numbers: The kind of the numbers.
            arguments: The numbers, by the positions of arguments.
            results: The positions of the results.

        Raises:
            OutsideNumbersError: the region computes what these numbers do not know.
        """
        result_values = [self.results[number] for number in results]
        known = {self.arguments[number].id: value for number, value in arguments.items()}
        needed = self._read(result_values)
        for op in self._block.ops if self._block is not None else ():
            if any(value.id in needed for value in op.results):
                values = [_computed(numbers, self._fusion, op, known, item) for item in self._fusion.facts[op.id].body]
                known |= {value.id: number for value, number in zip(op.results, values, strict=False)}
        if any(value.id not in known for value in result_values):
            raise OutsideNumbersError("a value from outside of the region, or of an op without a scalar body")
        return [known[value.id] for value in result_values]


@final
class CombinerPart:
    """Results of a combiner that depend on each other.

    Args:
        combiner: The combiner.
        members: The positions of the results.
    """

    def __init__(self, combiner: ScalarCombiner, members: tuple[int, ...]) -> None:
        self.members = members
        self._combiner = combiner
        self._types = [element_type_of(combiner.arguments[number]) for number in members]

    def _combine(self, numbers: Numbers) -> Combine:
        """Return the function that combines two tuples of numbers."""
        count = len(self._combiner.results)

        @cache
        def combine(before: Numbered, following: Numbered) -> Numbered:
            known = dict(zip(self.members, before, strict=True))
            known |= {count + number: item for number, item in zip(self.members, following, strict=True)}
            return tuple(self._combiner.compute(numbers, known, self.members))

        return combine

    @cached_property
    def numbers(self) -> Numbers | None:
        """The numbers in which the part can be computed, None where there are none."""
        for numbers in (BITS, ORDER, FIELD) if self.members else ():
            try:
                self._combine(numbers)(*next(numbers.tuples(self._types, 2)))
            except OutsideNumbersError:
                continue
            return numbers
        return None

    def _holds(self, count: int, law: Callable[..., tuple[Numbered, Numbered]]) -> bool:
        """Return whether both sides of a law are the same for all elements."""
        if self.numbers is None:
            return False
        combine = self._combine(self.numbers)
        try:
            sides = (law(combine, *values) for values in self.numbers.tuples(self._types, count))
            return all(left == right for left, right in sides)
        except OutsideNumbersError:
            return False

    @cached_property
    def is_associative(self) -> bool:
        """True if elements may be combined in groups."""
        return self._holds(3, lambda f, x, y, z: (f(f(x, y), z), f(x, f(y, z))))

    @cached_property
    def is_commutative(self) -> bool:
        """True if elements may be combined in any order."""
        return self._holds(2, lambda f, x, y: (f(x, y), f(y, x)))

    @cached_property
    def is_idempotent(self) -> bool:
        """True if it does not matter how often an element is combined, as for a maximum."""
        return self._holds(1, lambda f, x: (f(x, x), x))

    @cached_property
    def neutral(self) -> tuple[int, ...] | None:
        """Numbers that change nothing when they are combined with others; None where none are known."""
        if self.numbers is None:
            return None
        for candidate in product(*(self.numbers.neutral(type_) for type_ in self._types)):
            if self._holds(1, lambda f, x, e=candidate: (f(e, x), x)):
                return tuple(map(int, candidate))
        return None

    def keeps(self, inits: Sequence[Fraction | None]) -> bool:
        """Return whether initial values that are known stay the same when they are combined with themselves."""
        if any(value is None for value in inits):
            return False
        numbers = EXACT if self.numbers is FIELD else BITS
        try:
            values = tuple(numbers.constant(value) for value in inits if value is not None)
            return self.numbers is not ORDER and self._combine(numbers)(values, values) == values
        except OutsideNumbersError:
            return False


def _computed(numbers: Numbers, fusion: Fusion, op: Op, known: Mapping[int, Number], item: Traced) -> Number:
    """Return what a scalar body computes of numbers.

    Raises:
        OutsideNumbersError: the body computes what these numbers do not know.
    """

    def of(part: Any) -> Number:
        return _computed(numbers, fusion, op, known, part)

    match item.kind:
        case "operand" if op.operands[item.parts[0]].id in known:
            return known[op.operands[item.parts[0]].id]
        case "op":
            name, operands, attributes = item.parts
            return numbers.compute(name, [of(part) for part in operands], dict(attributes))
        case "choose":
            condition, then, otherwise = item.parts
            return of(then) if of(condition) else of(otherwise)
        case "constant":
            return numbers.constant(Fraction(complex(item.parts[0]).real))
        case "literal":
            number = _splat(op)
            if number is not None:
                return numbers.constant(number)
    raise OutsideNumbersError(item.kind)


def _constant(fusion: Fusion, value: Value) -> Fraction | None:
    """Return the number that an initial value is; None where it is not a constant."""
    op = fusion.producer(value)
    while op is not None and fusion.facts[op.id].is_bitcast:
        op = fusion.producer(op.operands[0])
    body = () if op is None else fusion.facts[op.id].body
    return _splat(op) if op is not None and [item.kind for item in body] == ["literal"] else None


def _splat(op: Op) -> Fraction | None:
    """Return the only number of a constant; None where there are several, or it is not finite."""
    match = _SPLAT.match(str(op.attributes.get("value", "")))
    if match is None or (match[2] is not None and _number(match[2]) != 0):
        return None
    return _number(match[1])


def _number(text: str) -> Fraction | None:
    """Return a number in MLIR's notation; None for one that is written by its bits."""
    text = text.strip()
    if text in ("true", "false"):
        return Fraction(text == "true")
    return None if text.startswith("0x") else Fraction(text)

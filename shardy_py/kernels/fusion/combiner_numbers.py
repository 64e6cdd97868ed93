"""Numbers on which the regions of reductions are tried, to find the laws by which they combine.

Each kind of numbers knows some ops of scalar bodies. What holds for its samples holds for all elements:

* `BITS`: bitwise ops treat every bit alike, so that zeros and ones stand for all integers.
* `ORDER`: comparisons and choices depend on the order of their operands alone, so that three numbers stand for all.
  They differ from each other: which of several equal elements a choice takes is left to the implementation by
  StableHLO, and so is what it makes of NaN.
* `FIELD`: sums and products are polynomials; two that agree at random points of a large field are equal.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import permutations, product
from math import prod
from random import Random
from types import MappingProxyType
from typing import Any, Final

from shardy_py.values import frozen

Number = Any
"""An integer, a fraction or a float; conditions and booleans of `ORDER` are ``bool``."""

_PRIME: Final = (1 << 61) - 1
_POINTS: Final = 8
_MOST_SAMPLES: Final = 5000
_UNSIGNED: Final = (1 << 64) - 1
_CASTS = ("arith.extf", "arith.truncf")
_WITHOUT_ZERO = ("f8E8M0FNU",)


class OutsideNumbersError(Exception):
    """An op, a constant or a type means something else than in these numbers."""


@frozen
class Numbers:
    """A kind of numbers.

    Args:
        compute: Receives an op's name, its operands and its attributes; returns the result.
        constant: Receives a constant; returns the number that stands for it.
        samples: Receives the element type of a value; returns numbers that stand for all of its elements, none if they
            are drawn at random.
        neutral: Receives the same; returns numbers that may be neutral.
        are_distinct: Whether laws have to hold for elements that differ from each other only; booleans may be equal.
    """

    compute: Callable[[str, Sequence[Number], Mapping[str, Any]], Number]
    constant: Callable[[Fraction], Number]
    samples: Callable[[str], Sequence[Number]]
    neutral: Callable[[str], Sequence[Number]]
    are_distinct: bool = False

    def tuples(self, types: Sequence[str], count: int) -> Iterator[list[tuple[Number, ...]]]:
        """Yield some tuples at a time that stand for all such tuples of elements, the same ones at every call.

        Args:
            types: The element types of a tuple.
            count: How many tuples there are at a time.
        """
        random = Random(0)
        columns = [list(self._columns(type_, count)) for type_ in types]
        if not all(columns):
            for _ in range(_POINTS):
                yield [tuple(random.randrange(2, _PRIME) for _ in types) for _ in range(count)]
        elif prod(map(len, columns)) <= _MOST_SAMPLES:
            yield from (list(zip(*chosen, strict=True)) for chosen in product(*columns))
        else:
            for _ in range(_MOST_SAMPLES):
                yield list(zip(*map(random.choice, columns), strict=True))

    def _columns(self, type_: str, count: int) -> Iterator[tuple[Number, ...]]:
        """Return the numbers that one place of the tuples takes in them."""
        samples = self.samples(type_)
        if self.are_distinct and type_ != "i1":
            return permutations(samples, count)
        return product(samples, repeat=count) if samples else iter(())


def _bits(name: str, operands: Sequence[Number], attributes: Mapping[str, Any]) -> Number:
    if name not in _BITWISE:
        raise OutsideNumbersError(name)
    return _BITWISE[name](*operands)


def _order(name: str, operands: Sequence[Number], attributes: Mapping[str, Any]) -> Number:
    if name in _CASTS:
        return operands[0]
    if name == "arith.select":
        condition, then, otherwise = operands
        return then if condition else otherwise
    if name in ("arith.cmpi", "arith.cmpf"):
        left, right = operands
        return _compare(left, right, attributes["predicate"])
    if name in _CHOICES:
        return _CHOICES[name](*operands)
    # Booleans are bytes and conditions are bits; of other integers bits are no matter of order.
    if all(isinstance(item, bool) for item in operands):
        if name in ("arith.extui", "arith.trunci"):
            return operands[0]
        if name in _BITWISE:
            return _BITWISE[name](*operands)
    raise OutsideNumbersError(name)


def _compare(left: Number, right: Number, predicate: str) -> bool:
    if predicate in ("ord", "uno"):
        return predicate == "ord"
    kind, relation = (predicate[0], predicate[1:]) if len(predicate) == 3 else ("", predicate)
    if kind == "u" and isinstance(left, int):
        left, right = left & _UNSIGNED, right & _UNSIGNED
    return bool(getattr(operator, relation)(left, right))


def _unsigned(choose: Callable[..., int]) -> Callable[[int, int], int]:
    return lambda left, right: choose(left, right, key=lambda item: item & _UNSIGNED)


def _field(name: str, operands: Sequence[Number], attributes: Mapping[str, Any]) -> Number:
    return _in_field(_fraction(name, operands, attributes, _inverse))


def _exact(name: str, operands: Sequence[Number], attributes: Mapping[str, Any]) -> Number:
    return _fraction(name, operands, attributes, lambda number: 1 / Fraction(number))


def _fraction(
    name: str, operands: Sequence[Number], attributes: Mapping[str, Any], inverse: Callable[[Number], Number]
) -> Number:
    if name in _CASTS:
        return operands[0]
    operation = _ARITHMETIC.get(name)
    if operation is None:
        raise OutsideNumbersError(name)
    if operation != "div":
        return getattr(operator, operation)(*operands)
    if not operands[1]:
        raise OutsideNumbersError(name)
    return operands[0] * inverse(operands[1])


def _inverse(number: int) -> int:
    return pow(number, -1, _PRIME)


def _in_field(number: Number) -> int:
    fraction = Fraction(number)
    return fraction.numerator * _inverse(fraction.denominator) % _PRIME


def _no_constant(number: Fraction) -> Number:
    raise OutsideNumbersError(str(number))


def _ordered_samples(type_: str) -> Sequence[Number]:
    if type_ == "i1":
        return (False, True)
    if type_.startswith("complex"):
        raise OutsideNumbersError(type_)
    return (-1, 0, 1) if _is_integer(type_) else (0.0, 1.0, 2.0)


def _bit_samples(type_: str) -> Sequence[Number]:
    if not _is_integer(type_):
        raise OutsideNumbersError(type_)
    return (0, -1)


def _neutral_in_field(type_: str) -> Sequence[Number]:
    """Return what may be neutral for sums and products; a type of powers of two has no zero."""
    return (1,) if type_ in _WITHOUT_ZERO else (0, 1)


def _is_integer(type_: str) -> bool:
    return type_.lstrip("su").startswith("i")


_BITWISE: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {"arith.andi": operator.and_, "arith.ori": operator.or_, "arith.xori": operator.xor}
)
_CHOICES: Mapping[str, Callable[[Any, Any], Number]] = MappingProxyType(
    {
        "arith.maximumf": max,
        "arith.minimumf": min,
        "arith.maxsi": max,
        "arith.minsi": min,
        "arith.maxui": _unsigned(max),
        "arith.minui": _unsigned(min),
    }
)
_ARITHMETIC: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("arith.addf", "arith.addi", "complex.add"), "add"),
        **dict.fromkeys(("arith.subf", "arith.subi", "complex.sub"), "sub"),
        **dict.fromkeys(("arith.mulf", "arith.muli", "complex.mul"), "mul"),
        **dict.fromkeys(("arith.negf", "complex.neg"), "neg"),
        **dict.fromkeys(("arith.divf", "complex.div"), "div"),
    }
)

BITS: Final = Numbers(_bits, int, _bit_samples, lambda _: (0, -1))
ORDER: Final = Numbers(
    _order, _no_constant, _ordered_samples, lambda type_: (False, True) if type_ == "i1" else (), are_distinct=True
)
FIELD: Final = Numbers(_field, _in_field, lambda _: (), _neutral_in_field)
EXACT: Final = Numbers(_exact, Fraction, lambda _: (), lambda _: ())
"""The fractions themselves, for constants; nothing is drawn from them."""

"""Index expressions: integers, variables and the operators between them, in the tree that the text shows.

Operators of Python build trees as they are told, as in ``dim(0) * 4 + dim(1)``; `canonical.canonicalize` brings them
into the canonical form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, Literal

from shardy_py.values import frozen

Operator = Literal["+", "*", "mod", "/", "ceildiv", "max", "min"]


class VariableKind(IntEnum):
    """The kinds of variables, in their canonical order."""

    DIM = 0
    """A dimension: thread and block ids, or the dimensions of a tensor."""
    RANGE = 1
    """A range variable: a loop."""
    RUNTIME = 2
    """A run-time variable: a value that is read when the program runs."""

    @property
    def prefix(self) -> str:
        """Prefix of default names: ``d``, ``s`` or ``rt``."""
        return ("d", "s", "rt")[self]


class _Arithmetic:
    """Operators between expressions, and between expressions and integers."""

    __slots__ = ()

    def __add__(self, other: Expression | int) -> Binary:
        return Binary("+", _expression(self), _expression(other))

    def __radd__(self, other: int) -> Binary:
        return Binary("+", _expression(other), _expression(self))

    def __sub__(self, other: Expression | int) -> Binary:
        return Binary("+", _expression(self), negated(_expression(other)))

    def __rsub__(self, other: int) -> Binary:
        return Binary("+", _expression(other), negated(_expression(self)))

    def __mul__(self, other: Expression | int) -> Binary:
        return Binary("*", _expression(self), _expression(other))

    def __rmul__(self, other: int) -> Binary:
        return self * other

    def __floordiv__(self, other: Expression | int) -> Binary:
        return Binary("/", _expression(self), _expression(other))

    def __mod__(self, other: Expression | int) -> Binary:
        return Binary("mod", _expression(self), _expression(other))


@frozen(cache_hash=True, order=False)
class Constant(_Arithmetic):
    """An integer."""

    value: int


@frozen(cache_hash=True, order=False)
class Variable(_Arithmetic):
    """A variable of an indexing map, by its kind and its number among those of the kind."""

    kind: VariableKind
    number: int


@frozen(cache_hash=True, order=False)
class Binary(_Arithmetic):
    """An operator between two expressions; division rounds down, ``mod`` has the sign of the divisor."""

    op: Operator
    left: Expression
    right: Expression


Expression = Constant | Variable | Binary

ZERO = Constant(0)
ONE = Constant(1)


def dim(number: int) -> Variable:
    """Return the dimension of a number."""
    return Variable(VariableKind.DIM, number)


def symbol(number: int) -> Variable:
    """Return the range variable of a number."""
    return Variable(VariableKind.RANGE, number)


def runtime(number: int) -> Variable:
    """Return the run-time variable of a number."""
    return Variable(VariableKind.RUNTIME, number)


def constant(value: int) -> Constant:
    """Return an integer as an expression."""
    return Constant(int(value))


def _expression(value: object) -> Expression:
    if isinstance(value, (Constant, Variable, Binary)):
        return value
    if isinstance(value, int):
        return Constant(value)
    raise TypeError(f"{value!r} is neither an expression nor an integer")


def negated(expression: Expression) -> Expression:
    """Return the negative of an expression: a constant, or a product with -1."""
    return Constant(-expression.value) if isinstance(expression, Constant) else Binary("*", expression, Constant(-1))


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all its parts, each before its own parts."""
    pending = [expression]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, Binary):
            pending += (current.right, current.left)


def divides_by_zero(expressions: Iterable[Expression]) -> bool:
    """Return whether a part of an expression is a quotient or a remainder by the number 0."""
    parts = (part for expression in expressions for part in walk(expression))
    divisions = ("/", "mod", "ceildiv")
    return any(isinstance(part, Binary) and part.op in divisions and part.right == Constant(0) for part in parts)


def variables_of(expression: Expression) -> set[Variable]:
    """Return the variables of an expression."""
    return {item for item in walk(expression) if isinstance(item, Variable)}


def count_operators(expression: Expression) -> int:
    """Return the number of operators, a measure of the cost of an expression."""
    return sum(isinstance(item, Binary) for item in walk(expression))


def rewritten(expression: Expression, values: Mapping[Variable, Expression]) -> Expression:
    """Substitute expressions for variables; nothing is simplified."""
    if isinstance(expression, Variable):
        return values.get(expression, expression)
    if isinstance(expression, Constant):
        return expression
    left, right = rewritten(expression.left, values), rewritten(expression.right, values)
    if left is expression.left and right is expression.right:
        return expression
    return Binary(expression.op, left, right)


def evaluate(expression: Expression, value_of: Callable[[Variable], Any]) -> Any:
    """Return the value of an expression.

    Args:
        expression: The expression.
        value_of: The value of a variable: an integer, or an array of integers of numpy.

    Raises:
        ZeroDivisionError: integers are divided by zero.
    """
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, Variable):
        return value_of(expression)
    left, right = evaluate(expression.left, value_of), evaluate(expression.right, value_of)
    return _APPLY[expression.op](left, right)


def _minimum(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return min(left, right)
    import numpy

    return numpy.minimum(left, right)


def _maximum(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return max(left, right)
    import numpy

    return numpy.maximum(left, right)


_APPLY: dict[Operator, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: left + right,
    "*": lambda left, right: left * right,
    "mod": lambda left, right: left % right,
    "/": lambda left, right: left // right,
    "ceildiv": lambda left, right: -(-left // right),
    "max": _maximum,
    "min": _minimum,
}

"""The text of indexing maps, in both spellings of the division.

A map is written ``(d0, d1)[s0]{rt0} -> (d0 + s0, d1), domain: d0 in [0, 7], ..., d0 + s0 in [0, 9]``: dimensions, range
variables, run-time variables, results, then inclusive bounds of all variables and constraints. MLIR's attribute
``#xla_gpu.indexing_map<"...">`` around it is read, too, also where the text is cut into several adjacent strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.indexing.expressions import (
    Binary,
    Constant,
    Expression,
    Operator,
    Variable,
    negated,
)
from shardy_py.support.late_patterns import late_pattern

Spelling = Literal["floordiv", "/"]
"""The spelling of a division: ``floordiv`` (the dialect ``xla_gpu`` of 2025) or ``/`` (XLA's text today)."""

_TOKEN = late_pattern(r"\s*(?:(->|[()\[\]{},:+*/-])|(\d+)|([A-Za-z_][\w.]*))")
_PRODUCTS: dict[str, Operator] = {"*": "*", "/": "/", "floordiv": "/", "mod": "mod", "ceildiv": "ceildiv"}
_CALLS: dict[str, Operator] = {"min": "min", "max": "max"}
_MAX_DEPTH = 200
_MAX_DIGITS = 40
_ATTRIBUTE = r'^\s*#\w+\.indexing_map<\s*((?:"[^"]*"\s*)+)>\s*$'


def print_expression(expression: Expression, names: Mapping[Variable, str], *, spelling: Spelling = "/") -> str:
    """Return the text of an expression.

    Args:
        expression: The expression.
        names: The names of its variables.
        spelling: How a division is written.
    """
    return _Printer(names, spelling).text(expression)


class _Printer:
    """Prints expressions with the fewest parentheses that keep the tree."""

    def __init__(self, names: Mapping[Variable, str], spelling: Spelling) -> None:
        self._names = names
        self._words = {"*": "*", "/": spelling, "mod": "mod", "ceildiv": "ceildiv"}

    def text(self, expression: Expression) -> str:
        """Return the text of an expression that nothing surrounds."""
        if isinstance(expression, Constant):
            return str(expression.value)
        if isinstance(expression, Variable):
            return self._names[expression]
        match expression.op:
            case "+":
                return self._sum(expression)
            case "max" | "min":
                return f"{expression.op}({self.text(expression.left)}, {self.text(expression.right)})"
            case "*" if _is_negative(expression):
                return f"-{self._unary(expression.left)}"
        left = self._operand(expression.left, expression.op, on_right=False)
        right = self._operand(expression.right, expression.op, on_right=True)
        return f"{left} {self._words[expression.op]} {right}"

    def _sum(self, expression: Binary) -> str:
        first, *summands = _summands(expression)
        text = self.text(first)
        for summand in summands:
            positive = _positive(summand)
            text += f" + {self.text(summand)}" if positive is None else f" - {self._subtrahend(positive)}"
        return text

    def _subtrahend(self, expression: Expression) -> str:
        text = self.text(expression)
        return f"({text})" if isinstance(expression, Binary) and expression.op == "+" else text

    def _unary(self, expression: Expression) -> str:
        text = self.text(expression)
        closed = not isinstance(expression, Binary) or expression.op in ("max", "min")
        return text if closed else f"({text})"

    def _operand(self, expression: Expression, outer: Operator, *, on_right: bool) -> str:
        text = self.text(expression)
        if not isinstance(expression, Binary) or expression.op in ("max", "min"):
            return text
        if _is_negative(expression):
            return text
        same = expression.op == outer and (not on_right or outer == "*")
        return text if same else f"({text})"


def _is_negative(expression: Binary) -> bool:
    """Return whether an expression is written with a sign of its own; that of a constant is part of it."""
    return expression.op == "*" and expression.right == Constant(-1) and not isinstance(expression.left, Constant)


def _summands(expression: Expression) -> Iterator[Expression]:
    """Yield the summands of a sum of sums, from left to right."""
    pending = [expression]
    while pending:
        current = pending.pop()
        if isinstance(current, Binary) and current.op == "+":
            pending += (current.right, current.left)
        else:
            yield current


def _positive(summand: Expression) -> Expression | None:
    """Return the subtrahend of a summand with a sign, or None where it is added."""
    if isinstance(summand, Constant):
        return Constant(-summand.value) if summand.value < 0 else None
    factor = _factor(summand)
    if factor >= 0 or not isinstance(summand, Binary):
        return None
    if factor < -1:
        return Binary("*", summand.left, Constant(-factor))
    # Read back, two signs would be none.
    return summand.left if _is_negative(summand) and _factor(summand.left) >= 0 else None


def _factor(expression: Expression) -> int:
    """Return the constant that a product ends with, 1 for anything else."""
    if isinstance(expression, Binary) and expression.op == "*" and isinstance(expression.right, Constant):
        return expression.right.value
    return 1


class MapParser:
    """Parses expressions, bounds and lists of names; every error shows the column in the text.

    Args:
        text: The text, with or without MLIR's attribute around it.
        kind: The name of the notation, for errors.
    """

    def __init__(self, text: str, *, kind: str = "indexing map") -> None:
        match = re.match(_ATTRIBUTE, text)
        if match is not None:
            text = "".join(re.findall(r'"([^"]*)"', match[1]))
        self._text = text
        self._kind = kind
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0
        self.names: dict[str, Variable] = {}

    @property
    def ahead(self) -> str:
        """The next token; "" at the end."""
        return self._tokens[self._next][0] if self._next < len(self._tokens) else ""

    def take(self) -> str:
        """Return the next token and go on."""
        token = self.ahead
        self._next += 1
        return token

    def skip(self, token: str) -> bool:
        """Go on behind a token if it is the next one."""
        if self.ahead != token:
            return False
        self._next += 1
        return True

    def expect(self, token: str) -> None:
        """Go on behind a token."""
        if not self.skip(token):
            raise self.error(f"{token!r} is expected")

    def error(self, message: str) -> ParseError:
        """Return an error at the next token."""
        column = self._tokens[self._next][1] if self._next < len(self._tokens) else len(self._text)
        start = max(0, column - 60)
        excerpt = f"{self._text[start : column + 60]}\n{' ' * (column - start)}^"
        code = f"malformed-{self._kind.replace(' ', '-')}"
        return ParseError(Diagnostic(code, f"this is not a valid {self._kind}: {message}", excerpt=excerpt))

    def listed_names(self, opening: str, closing: str) -> list[str]:
        """Return the names between two brackets; [] where there are none."""
        names: list[str] = []
        if not self.skip(opening):
            return names
        while not self.skip(closing):
            if names:
                self.expect(",")
            name = self.take()
            if not name.isidentifier():
                self._next -= 1
                raise self.error("a name is expected")
            names.append(name)
        return names

    def expressions(self) -> list[Expression]:
        """Return the expressions between parentheses."""
        parsed: list[Expression] = []
        self.expect("(")
        while not self.skip(")"):
            if parsed:
                self.expect(",")
            parsed.append(self.expression())
        return parsed

    def bounds(self) -> tuple[int, int]:
        """Return the two ends of ``in [0, 7]``."""
        self.expect("in")
        self.expect("[")
        lower = self._integer()
        self.expect(",")
        upper = self._integer()
        self.expect("]")
        return lower, upper

    def expression(self) -> Expression:
        """Return a sum."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self.error(f"expressions are nested more than {_MAX_DEPTH} deep")
        result = self._product()
        while self.ahead in ("+", "-"):
            negative = self.take() == "-"
            summand = self._product()
            result = Binary("+", result, _minus(summand) if negative else summand)
        self._depth -= 1
        return result

    def _product(self) -> Expression:
        result = self._unary()
        while self.ahead in _PRODUCTS:
            operator = _PRODUCTS[self.take()]
            result = Binary(operator, result, self._unary())
        return result

    def _unary(self) -> Expression:
        negative = False
        while self.skip("-"):
            negative = not negative
        primary = self._primary()
        return negated(primary) if negative else primary

    def _primary(self) -> Expression:
        token = self.ahead
        if token.isdigit():
            return Constant(self._integer())
        if token == "(":
            self.take()
            inner = self.expression()
            self.expect(")")
            return inner
        if token in _CALLS and token not in self.names:
            self.take()
            self.expect("(")
            left = self.expression()
            self.expect(",")
            right = self.expression()
            self.expect(")")
            return Binary(_CALLS[token], left, right)
        if token not in self.names:
            raise self.error(f"{token!r} is not a variable" if token.isidentifier() else "an expression is expected")
        return self.names[self.take()]

    def _integer(self) -> int:
        sign = -1 if self.skip("-") else 1
        if not self.ahead.isdigit():
            raise self.error("an integer is expected")
        if len(self.ahead) > _MAX_DIGITS:
            raise self.error(f"integers have at most {_MAX_DIGITS} digits")
        return sign * int(self.take())


def _minus(summand: Expression) -> Expression:
    """Return the negative of a summand; a product with a constant gets the negative constant."""
    if isinstance(summand, Binary) and summand.op == "*" and isinstance(summand.right, Constant):
        factor = -summand.right.value
        return summand.left if factor == 1 else Binary("*", summand.left, Constant(factor))
    return negated(summand)


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    column = 0
    while column < len(text):
        match = _TOKEN.match(text, column)
        if match is None:
            if not text[column:].strip():
                return
            yield text[column:].strip()[0], column
            return
        yield match[match.lastindex or 0], match.start(match.lastindex or 0)
        column = match.end()


def unique_names(groups: Sequence[Sequence[str]]) -> str | None:
    """Return a name that occurs twice in some lists, or None."""
    seen: set[str] = set()
    for name in (name for group in groups for name in group):
        if name in seen:
            return name
        seen.add(name)
    return None

"""Building of one element from the expressions of a scalar body."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from shardy_py.errors import did_you_mean
from shardy_py.indexing import Bound, IndexingMap, Interval, first_outside
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.ir.interfaces.emission import ElementBuilder, Scalar
from shardy_py.plugins.bodies.arithmetic import binary, compare, invert, negate, select, symbol
from shardy_py.plugins.bodies.combining import combine, combined_map
from shardy_py.plugins.bodies.functions import ELEMENTARY, REDUCERS
from shardy_py.plugins.bodies.terms import BOOLEAN, CASTS, INDEX, DryBuilder, Term, mistake, scalar_dtype, with_type

_ALONE = ("max", "min")
"""The reducers that are functions of values where they have several arguments."""

_NAMED = {"inf": math.inf, "nan": math.nan, "pi": math.pi}
"""Numbers by their names, where no operand and no attribute has the name."""


def build(
    text: str, names: Sequence[str], results: Sequence[ast.expr], b: ElementBuilder, op: Op
) -> tuple[Scalar, ...]:
    """Return one element of each result.

    Args:
        text: The text of the body, for errors.
        names: The names of the operands.
        results: An expression for each result.
        b: Builds the ops.
        op: The op.

    Raises:
        PluginError: the body does not fit the op.
    """
    if len(results) != len(op.results):
        raise mistake(f"{text!r} has {len(results)} results, the op {len(op.results)}", "give an expression for each")
    body = _Body(b, op, _numbers(text, names, len(op.operands)))
    elements = []
    for number, (node, result) in enumerate(zip(results, op.results, strict=True)):
        dtype = element_type(result)
        term = body.term(node, dtype)
        if not term.is_number and term.dtype != dtype:
            hint = f"write {dtype}(...) around it" if dtype in CASTS else "give emission= a function, which casts it"
            raise mistake(f"result {number} has elements of {dtype}, its expression is of {term.dtype}", hint)
        term = with_type(b, term, dtype)
        elements.append(b.op("arith.extui", term.scalar, dtype="i8") if term.is_boolean else term.scalar)
    return tuple(elements)


def expression_type(text: str, names: Sequence[str], node: ast.expr, op: Op, maps: Sequence[IndexingMap]) -> str:
    """Return the type of an expression that a body combines.

    Args:
        text: The text of the body, for errors.
        names: The names of the operands.
        node: The expression.
        op: The op.
        maps: The indexing maps of its operands.

    Raises:
        PluginError: the body does not fit the op.
    """
    builder = DryBuilder(len(static_shape(op.results[0].type) or ()), maps, lambda number: "")
    combined = [number for number, map_ in enumerate(maps) if map_.ranges]
    return _Body(builder, op, _numbers(text, names, len(op.operands))).dry_dtype(node, combined)


def element_type(value: Value) -> str:
    """Return the element type of a value, with the sign of integers."""
    dtype = value.type.element_type if isinstance(value.type, TensorType) else str(value.type)
    return dtype[1:] if dtype.startswith("si") else dtype


def _numbers(text: str, names: Sequence[str], count: int) -> Mapping[str, tuple[int, ...]]:
    """Return the numbers of the operands for which each name stands."""
    rest = names[-1] if names and names[-1].startswith("*") else ""
    named = len(names) - bool(rest)
    if count < named or (count > named and not rest):
        raise mistake(f"{text!r} has {named} operands, the op {count}", "name each, or all others by a *star")
    numbers = {name: (number,) for number, name in enumerate(names[:named])}
    return numbers | ({rest[1:]: tuple(range(named, count))} if rest else {})


class _Body:
    """The expressions of one element.

    Args:
        b: Builds the ops.
        op: The op.
        numbers: The operands for which each name stands.
    """

    def __init__(self, b: ElementBuilder, op: Op, numbers: Mapping[str, tuple[int, ...]]) -> None:
        self._b = b
        self._op = op
        self._numbers = numbers
        self._at: Mapping[int, Sequence[Scalar]] | None = None
        self._inside: set[int] = set()

    def term(self, node: ast.expr, wanted: str = "") -> Term:
        """Return the value of an expression.

        Args:
            node: The expression.
            wanted: The type that it takes where it is made of numbers alone.
        """
        match node:
            case ast.Constant(value=bool() as condition):
                return Term(BOOLEAN, self._b.constant(condition, BOOLEAN))
            case ast.Constant(value=int() | float() | complex() as number):
                return Term(number=number)
            case ast.Name():
                return self._named(node.id)
            case ast.BinOp():
                left, right = self._both(node.left, node.right, wanted)
                return binary(self._b, symbol(node.op), left, right)
            case ast.Compare():
                left, right = self._both(node.left, node.comparators[0], "")
                return compare(self._b, node.ops[0], left, right)
            case ast.BoolOp():
                return self._conditions(node)
            case ast.UnaryOp():
                return self._unary(node, wanted)
            case ast.IfExp():
                return self._choice(node, wanted)
            case ast.Call():
                return self._call(node, wanted)
        raise mistake(f"{ast.unparse(node)!r} has no value")

    def _both(self, left: ast.expr, right: ast.expr, wanted: str) -> tuple[Term, Term]:
        """Return two terms; one that is open gets the type of the other."""
        if self._is_open(left) and not self._is_open(right):
            other = self.term(right, wanted)
            return self.term(left, other.dtype), other
        first = self.term(left, wanted)
        return first, self.term(right, first.dtype or wanted)

    def _is_open(self, node: ast.expr) -> bool:
        """Return whether an expression takes the type that is wanted: numbers, and choices among such."""
        if isinstance(node, ast.IfExp):
            return self._is_open(node.body) and self._is_open(node.orelse)
        if isinstance(node, ast.Call):
            return getattr(node.func, "id", "") == "select" and all(map(self._is_open, node.args[1:]))
        if isinstance(node, ast.Name):
            return not (node.id in self._numbers or self._index(node.id) is not None)
        if isinstance(node, ast.Constant):
            return not isinstance(node.value, bool)
        if isinstance(node, ast.Compare | ast.BoolOp):
            return False
        return all(self._is_open(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))

    def _named(self, name: str) -> Term:
        if name in self._numbers:
            if len(self._numbers[name]) != 1:
                raise mistake(f"{name} stands for several operands", f"pick(*{name}), max(*{name}), ...")
            return self._read(self._numbers[name][0])
        index = self._index(name)
        if index is not None:
            return Term(INDEX, self._b.indices[index])
        known = self._op.attributes
        value = known.get(name, _NAMED.get(name))
        if value is None:
            named = (*self._numbers, *known)
            hint = did_you_mean(
                name, named, otherwise="operands, attributes that are numbers, and d0, d1, ... have one"
            )
            raise mistake(f"{name} is neither an operand nor an attribute of the op", hint)
        return Term(number=_number(name, value))

    def _index(self, name: str) -> int | None:
        if name[:1] == "d" and name[1:].isdigit():
            number = int(name[1:])
            if number >= len(self._b.indices):
                raise mistake(f"the result has no dimension {name}", f"it has {len(self._b.indices)} dimensions")
            return number
        return None

    def _read(self, number: int) -> Term:
        """Return an element of an operand."""
        value = self._op.operands[number]
        dtype = element_type(value)
        map_ = self._map(number)
        if self._at is not None and number in self._at:
            element = self._b.operand(number, self._at[number])
        elif map_.ranges or map_.runtimes:
            names = "symbols" if map_.ranges else "variables known at run time only"
            reducers = ", ".join(f"{word}(...)" for word in REDUCERS)
            hint = f"combine them: {reducers}" if map_.ranges else "give emission= a function of a builder and the op"
            raise mistake(f"the map of operand {number} has {names}, so that many elements are read", hint)
        elif number not in self._inside and not self._covers(map_):
            hint = "write x if inside(x) else ..., or pick(x, y)"
            raise mistake(f"operand {number} has no element for a part of the result", hint)
        else:
            element = self._b.operand(number)
        if dtype == BOOLEAN:
            element = self._b.op("arith.trunci", element, dtype=BOOLEAN)
        return Term(dtype, element)

    def _map(self, number: int) -> IndexingMap:
        maps = self._b.maps
        if not maps or maps[number].is_undefined:
            message = f"no indexing map says which element of operand {number} is read"
            raise mistake(message, "give the op indexing=..., or the trait Elementwise")
        self._check_places(number, maps[number])
        return maps[number]

    def _check_places(self, number: int, map_: IndexingMap) -> None:
        """Check that a map leads from the elements of the result to such that the operand has."""
        shape = static_shape(self._op.operands[number].type)
        written = static_shape(self._op.results[0].type)
        if shape is None or written is None:
            return
        dims = [
            Bound(bound.interval.meet(Interval(0, size - 1)), bound.name)
            for bound, size in zip(map_.dims, written, strict=True)
        ]
        outside = first_outside(evolve(map_, dims=tuple(dims)), tuple(shape))
        if outside is not None:
            message = (
                f"the map of operand {number} leads outside: {map_}; at ({', '.join(map(str, outside.point))}) it "
                f"gives {outside.index} for dimension {outside.dim}, which has {shape[outside.dim]} elements"
            )
            raise mistake(message, "where an operand has no element, bound the map: ..., domain: i in [1, 7]")

    def _covers(self, map_: IndexingMap) -> bool:
        """Return whether a map is defined for all elements of the result."""
        shape = static_shape(self._op.results[0].type) or ()
        bounds = [bound.interval for bound in map_.dims]
        return not map_.constraints and all(
            bound.lower <= 0 and bound.upper >= size - 1 for bound, size in zip(bounds, shape, strict=True)
        )

    def _conditions(self, node: ast.BoolOp) -> Term:
        terms = [self.term(value) for value in node.values]
        condition = terms[0]
        for term in terms[1:]:
            condition = binary(self._b, "&" if isinstance(node.op, ast.And) else "|", condition, term)
        if not condition.is_boolean:
            raise mistake(f"{ast.unparse(node)!r} joins values that are not conditions", "compare them: x != 0")
        return condition

    def _unary(self, node: ast.UnaryOp, wanted: str) -> Term:
        term = self.term(node.operand, wanted)
        if isinstance(node.op, ast.UAdd):
            return term
        if isinstance(node.op, ast.USub):
            return negate(self._b, term)
        if isinstance(node.op, ast.Not) and not term.is_boolean:
            raise mistake(f"{ast.unparse(node)!r} is about no condition", "compare it: x == 0")
        return invert(self._b, term)

    def _choice(self, node: ast.IfExp, wanted: str) -> Term:
        """Return the value of a branch; only the branch taken is computed."""
        condition = self.term(node.test)
        then: tuple[ast.expr, set[int]] = (node.body, self._tested(node.test))
        # Where one operand has no element, another may have: the interpreter finds reads outside.
        otherwise: tuple[ast.expr, set[int]] = (node.orelse, set(range(len(self._op.operands))) if then[1] else set())
        if self._is_open(node.body) and not self._is_open(node.orelse):
            # The branch that is built first says of which type the other one is.
            condition, then, otherwise = invert(self._b, condition), otherwise, then
        return self._branches(condition, then, otherwise, wanted)

    def _branches(
        self, condition: Term, then: tuple[ast.expr, set[int]], otherwise: tuple[ast.expr, set[int]], wanted: str
    ) -> Term:
        if not condition.is_boolean:
            raise mistake(f"{condition.dtype or condition.number} is not a condition", "compare it: x != 0")
        types = [wanted]

        def branch(node: ast.expr, inside: set[int]) -> Callable[[], Scalar]:
            def make() -> Scalar:
                with self._where(inside):
                    term = self.term(node, types[-1])
                if term.is_number and not types[-1]:
                    raise mistake(f"{ast.unparse(node)!r} could be of any type", "write f32(...) around it")
                typed = with_type(self._b, term, types[-1]) if term.is_number or len(types) > 1 else term
                types.append(typed.dtype)
                return typed.scalar

            return make

        value = self._b.choose(condition.scalar, branch(*then), branch(*otherwise))
        return Term(types[-1], value)

    @contextmanager
    def _where(self, inside: set[int]) -> Any:
        before = self._inside
        self._inside = before | inside
        try:
            yield
        finally:
            self._inside = before

    def _tested(self, node: ast.expr) -> set[int]:
        """Return the operands that have an element where a condition holds."""
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            return set().union(*map(self._tested, node.values))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "inside":
            return set(self._operands(node, "inside"))
        return set()

    def _operands(self, node: ast.Call, name: str) -> list[int]:
        """Return the operands that a function takes."""
        operands: list[int] = []
        for argument in node.args:
            inner = argument.value if isinstance(argument, ast.Starred) else argument
            numbers = self._numbers.get(inner.id) if isinstance(inner, ast.Name) else None
            if numbers is None:
                raise mistake(f"{name} takes operands, not {ast.unparse(argument)!r}")
            operands += numbers
        return operands

    def _call(self, node: ast.Call, wanted: str) -> Term:
        name = getattr(node.func, "id", "")
        if name == "inside":
            return self._is_inside(self._operands(node, name))
        if name == "pick":
            return self._pick(self._operands(node, name), wanted)
        if name in REDUCERS and not (name in _ALONE and self._count(node) > 1):
            return self._reduced(node, name)
        if name == "select" and len(node.args) == 3:
            then, otherwise = self._both(node.args[1], node.args[2], wanted)
            if then.is_number and otherwise.is_number and wanted:
                then = with_type(self._b, then, wanted)
            return select(self._b, self.term(node.args[0]), then, otherwise)
        return ELEMENTARY[name](self._b, self._arguments(node))

    def _count(self, node: ast.Call) -> int:
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            return 2
        return len(node.args)

    def _arguments(self, node: ast.Call) -> list[Term]:
        terms = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                operands = self._operands(ast.Call(node.func, [argument], []), ast.unparse(node.func))
                terms += [self._read(number) for number in operands]
            else:
                terms.append(self.term(argument))
        return terms

    def _is_inside(self, numbers: Sequence[int]) -> Term:
        conditions = [Term(BOOLEAN, self._b.inside(self._map(number), self._b.indices)) for number in numbers]
        total = conditions[0]
        for term in conditions[1:]:
            total = binary(self._b, "&", total, term)
        return total

    def _pick(self, numbers: Sequence[int], wanted: str) -> Term:
        """Return the element of the first operand that has one."""
        first, *rest = numbers
        if not rest:
            with self._where({first}):
                return self._read(first)
        types: list[str] = []

        def read(others: Sequence[int]) -> Scalar:
            with self._where({first} if others == [first] else set()):
                term = self._pick(others, wanted)
            types.append(term.dtype)
            return term.scalar

        value = self._b.choose(self._is_inside([first]).scalar, lambda: read([first]), lambda: read(rest))
        if len(set(types)) > 1:
            raise mistake(f"pick takes operands of one type, not {' and '.join(dict.fromkeys(types))}")
        return Term(types[0], value)

    def _reduced(self, node: ast.Call, name: str) -> Term:
        """Reduce the elements over the symbols of the maps."""
        if len(node.args) != 1:
            raise mistake(f"{name} combines one expression, not {len(node.args)}")
        if self._at is not None:
            raise mistake(f"{name} stands in another function that combines", "one loop runs over all symbols")
        read = {
            number: self._map(number)
            for part in ast.walk(node.args[0])
            if isinstance(part, ast.Name)
            for number in self._numbers.get(part.id, ())
        }
        combined = combined_map({number: item for number, item in read.items() if item.ranges}, name)
        dtype = self.dry_dtype(node.args[0], combined.operands)
        return combine(self._b, name, combined, dtype, lambda at: self._element(node.args[0], at))

    def dry_dtype(self, node: ast.expr, combined: Sequence[int]) -> str:
        """Return the type of the combined expression without building it.

        Args:
            node: The expression.
            combined: The operands that it reads over symbols.
        """
        builder = DryBuilder(len(self._b.indices), self._b.maps, self._kernel_dtype)
        return _Body(builder, self._op, self._numbers)._element(node, dict.fromkeys(combined, ())).dtype

    def _kernel_dtype(self, number: int) -> str:
        dtype = element_type(self._op.operands[number])
        return "i8" if dtype == BOOLEAN else scalar_dtype(dtype)

    def _element(self, node: ast.expr, at: Mapping[int, Sequence[Scalar]]) -> Term:
        self._at = at
        try:
            return self.term(node)
        finally:
            self._at = None


def _number(name: str, value: Any) -> complex:
    """Return the number that an attribute is."""
    if isinstance(value, bool | int | float | complex):
        return value + 0
    text = str(value).partition(":")[0].strip()
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise mistake(f"the attribute {name} is {value}, not a number") from None

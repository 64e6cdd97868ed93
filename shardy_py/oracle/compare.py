"""Comparing two modules: text first, then structure, op by op.

SSA names, white space and attribute order do not count; everything else does. jaxlib is imported only when the texts
differ.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from attrs import field

from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.oracle.reference_worker import make_context
from shardy_py.values import define, frozen

_WIDTH = 260
_NONE = "(none)"

Kind = Literal["text-equal", "structural-equal", "different", "unparsable"]


@frozen
class Difference:
    """One place where two modules differ.

    Args:
        place: The function, and the path of op numbers in it.
        what: The operand, result, attribute or other property concerned.
        expected: How the first module has it.
        actual: How the second one has it.
        op: The op concerned as the first module prints it, or "".
        op_name: The name of that op, or "".
    """

    place: str
    what: str
    expected: str
    actual: str
    op: str = ""
    op_name: str = ""

    def __str__(self) -> str:
        lines = [f"{self.place}: {self.what}", f"    expected {self.expected}", f"    actual   {self.actual}"]
        if self.op:
            lines.insert(1, f"    op       {self.op}")
        return "\n".join(lines)


@frozen
class ModuleComparison:
    """The result of comparing two modules; true where they are equal."""

    kind: Kind
    differences: tuple[Difference, ...] = ()

    @property
    def equal(self) -> bool:
        """True if the two are the same, in text or in structure."""
        return self.kind in ("text-equal", "structural-equal")

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        if self.equal:
            return self.kind
        return "\n".join([f"{self.kind}, first differences:", *map(str, self.differences)])


def compare(expected: str, actual: str, *, limit: int = 5) -> ModuleComparison:
    """Compare the texts of two modules.

    Args:
        expected: The text of the module as it should be.
        actual: The text of the module under test.
        limit: How many differences to report at most.
    """
    if _normalise(expected) == _normalise(actual):
        return ModuleComparison("text-equal")
    with make_context():
        modules = []
        for label, text in (("expected", expected), ("actual", actual)):
            module, problem = _parse(text)
            if module is None:
                return ModuleComparison("unparsable", (Difference(label, "does not parse", "a valid module", problem),))
            modules.append(module)
        walk = _Walk(limit)
        walk.op("module", modules[0].operation, modules[1].operation)
        if not walk.differences and not _same_generic(*modules):
            walk.add("module", "the generic forms differ", *_first_pair(*map(_generic, modules)))
    return ModuleComparison("different" if walk.differences else "structural-equal", tuple(walk.differences))


def _normalise(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _parse(text: str) -> tuple[Any, str]:
    from jaxlib.mlir import ir

    try:
        return ir.Module.parse(text), ""
    except (ir.MLIRError, ValueError) as error:
        return None, str(error)


def _generic(module: Any) -> str:
    return str(module.operation.get_asm(print_generic_op_form=True))


def _same_generic(first: Any, second: Any) -> bool:
    return _generic(first) == _generic(second)


def _first_pair(first: str, second: str) -> tuple[str, str]:
    for pair in zip(first.splitlines(), second.splitlines(), strict=False):
        if pair[0] != pair[1]:
            return pair
    return f"{first.count(chr(10))} lines", f"{second.count(chr(10))} lines"


def _attributes(holder: Any) -> dict[str, Any]:
    """Return attributes by name; one that the bindings have no class for, such as a complex constant, as a text."""
    by_name: dict[str, Any] = {}
    for index in range(len(holder)):
        named = holder[index]
        try:
            by_name[named.name] = holder[named.name]
        except TypeError:
            by_name[named.name] = str(named)
    return by_name


def _same(first: Any, second: Any) -> bool:
    """Compare two attributes; the bindings refuse to compare one with None."""
    return first is second if first is None or second is None else bool(first == second)


def _line(op: Any) -> str:
    lines = op.get_asm(skip_regions=True).strip().splitlines()
    return lines[0][:_WIDTH] if lines else str(op.name)


def _signature(op: Any) -> tuple[str, ...]:
    return (op.operation.name, *(str(value.type) for value in op.operation.results))


def per_value(text: str) -> list[str] | None:
    """Return the parts of a printed ``#sdy.sharding_per_value``, or None for any other text."""
    head, tail = "#sdy.sharding_per_value<[", "]>"
    if not text.startswith(head) or not text.endswith(tail):
        return None
    parts, depth, quoted, current = [], 0, False, ""
    for char in text[len(head) : -len(tail)]:
        quoted ^= char == '"'
        depth += 0 if quoted else (char in "<[{(") - (char in ">]})")
        if char == "," and depth == 0 and not quoted:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return [*parts, current.strip()] if current.strip() else parts


@define
class _Walk:
    """Two ops walked in parallel, with the values of the first mapped to those of the second."""

    limit: int
    differences: list[Difference] = field(factory=list)
    values: dict[Any, Any] = field(factory=dict)

    @property
    def full(self) -> bool:
        return len(self.differences) >= self.limit

    def add(self, place: str, subject: str, expected: object, actual: object, op: Any = None) -> None:
        if not self.full:
            line, name = (_line(op), op.name) if op is not None else ("", "")
            self.differences.append(Difference(place, subject, str(expected), str(actual), line, name))

    def op(self, place: str, first: Any, second: Any) -> None:
        for first_value, second_value in zip(first.results, second.results, strict=False):
            self.values[first_value] = second_value
        self.operands(place, first, second)
        self.attributes(place, first, _attributes(first.attributes), _attributes(second.attributes))
        self.regions(place, first, second)

    def operands(self, place: str, first: Any, second: Any) -> None:
        if len(first.operands) != len(second.operands):
            self.add(place, "number of operands", len(first.operands), len(second.operands), first)
            return
        for number, (first_value, second_value) in enumerate(zip(first.operands, second.operands, strict=True)):
            partner = self.values.get(first_value)
            if partner is None or partner != second_value:
                self.add(place, f"operand {number}", first_value.get_name(), second_value.get_name(), first)

    def attributes(self, place: str, op: Any, first: dict[str, Any], second: dict[str, Any]) -> None:
        for name in sorted({*first, *second}):
            first_value, second_value = first.get(name), second.get(name)
            if _same(first_value, second_value):
                continue
            if name in ("arg_attrs", "res_attrs"):
                self.function_values(place, "argument" if name == "arg_attrs" else "result", first_value, second_value)
            else:
                texts = [_NONE if item is None else str(item) for item in (first_value, second_value)]
                self.attribute(place, op, name, texts[0], texts[1])

    def attribute(self, place: str, op: Any, name: str, first: str, second: str) -> None:
        first_items, second_items = per_value(first), per_value(second)
        if first_items is None or second_items is None or len(first_items) != len(second_items):
            self.add(place, f"attribute {name}", first, second, op)
            return
        for number, pair in enumerate(zip(first_items, second_items, strict=True)):
            if pair[0] != pair[1]:
                self.add(place, f"{name} of value {number}", pair[0], pair[1], op)

    def function_values(self, place: str, kind: str, first: Any, second: Any) -> None:
        rows = [list(item) if item is not None else [] for item in (first, second)]
        for number in range(max(map(len, rows))):
            first_attributes, second_attributes = (
                _attributes(row[number]) if number < len(row) else {} for row in rows
            )
            for name in sorted({*first_attributes, *second_attributes}):
                if not _same(first_attributes.get(name), second_attributes.get(name)):
                    self.add(
                        place,
                        f"{kind} {number}, {name}",
                        first_attributes.get(name, _NONE),
                        second_attributes.get(name, _NONE),
                    )

    def regions(self, place: str, first: Any, second: Any) -> None:
        pairs = list(zip(first.regions, second.regions, strict=False))
        if len(first.regions) != len(second.regions):
            self.add(place, "number of regions", len(first.regions), len(second.regions), first)
        for number, (first_region, second_region) in enumerate(pairs):
            blocks = list(first_region.blocks), list(second_region.blocks)
            if len(blocks[0]) != len(blocks[1]):
                self.add(place, "number of blocks", len(blocks[0]), len(blocks[1]), first)
            inner = f"{place}.{number}" if len(pairs) > 1 else place
            for pair in zip(*blocks, strict=False):
                self.block(inner, *pair)

    def block(self, place: str, first: Any, second: Any) -> None:
        types = [", ".join(str(item.type) for item in block.arguments) for block in (first, second)]
        if types[0] != types[1]:
            self.add(place, "types of block arguments", types[0], types[1])
        for first_item, second_item in zip(first.arguments, second.arguments, strict=False):
            self.values[first_item] = second_item
        for number, first_item, second_item in self.aligned(place, list(first.operations), list(second.operations)):
            if self.full:
                return
            self.op(_place(place, number, first_item), first_item.operation, second_item.operation)

    def aligned(self, place: str, first: list[Any], second: list[Any]) -> Iterator[tuple[int, Any, Any]]:
        """Iterate over pairs of ops of the same kind; report those that only one side has."""
        keys = [[_signature(op) for op in ops] for ops in (first, second)]
        if keys[0] == keys[1]:
            yield from ((number, *pair) for number, pair in enumerate(zip(first, second, strict=True)))
            return
        matcher = difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False)
        for tag, low, high, other_low, other_high in matcher.get_opcodes():
            if tag != "equal":
                self.add(f"{place}/{low}", "ops", _lines(first[low:high]), _lines(second[other_low:other_high]))
                continue
            for number in range(low, high):
                yield number, first[number], second[other_low + number - low]


def _place(place: str, number: int, op: Any) -> str:
    if op.operation.name == FUNCTION:
        return f"@{op.attributes['sym_name'].value}"
    return f"{place}/{number}"


def _lines(ops: Iterable[Any]) -> str:
    return "; ".join(_line(op.operation) for op in ops) or "(no op)"

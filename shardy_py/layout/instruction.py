"""The anatomy of an HLO operation: one line of HLO text as a value."""

from __future__ import annotations

import re

from attrs import field

from shardy_py.layout.lexer import LayoutCursor
from shardy_py.layout.parse import read_shape
from shardy_py.layout.shape import AnyShape
from shardy_py.values import frozen

_NAME = re.compile(r"%[\w.-]+|[A-Za-z_][\w.-]*", re.ASCII)
_INLINE_SHAPE = re.compile(r"\(|[a-z]\w*\s*\[", re.ASCII)
_INSTRUCTION = re.compile(r"\s*(?:ROOT\s+)?(?:%[\w.-]+|[A-Za-z_][\w.-]*)\s*=")
_PIECE = re.compile(r'"(?:[^"\\]++|\\.)*+"|/\*.*?(?:\*/|\Z)|->|[^"()\[\]{},/-]++|.', re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_WITH_LITERAL = frozenset({"constant", "parameter"})


@frozen(cache_hash=True)
class HloOperand:
    """An operand of an operation: its name, and its shape where the text gives one."""

    name: str
    shape: AnyShape | None = None


@frozen(cache_hash=True)
class HloInstruction:
    """One operation. ``str(x)`` is XLA's text.

    Args:
        name: The name, without the percent sign.
        shape: The shape of the result, with its layout.
        opcode: What it does, for example ``add``.
        operands: The operands.
        attributes: Names and values, the values as written in the text.
        literal: The text in the parentheses of a constant or a parameter: a value, a number.
        is_root: Whether it is the result of its computation.
        has_percent: Whether names are written with a percent sign.

    >>> add = parse_instruction("ROOT %a = f32[2]{0} add(%x, f32[2] %y), sharding={replicated}")
    >>> add.opcode, [operand.name for operand in add.operands], add.attribute("sharding")
    ('add', ['x', 'y'], '{replicated}')
    """

    name: str
    shape: AnyShape
    opcode: str
    operands: tuple[HloOperand, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    literal: str = field(default="", kw_only=True)
    is_root: bool = field(default=False, kw_only=True)
    has_percent: bool = field(default=True, kw_only=True)

    def attribute(self, name: str) -> str | None:
        """Return the text of an attribute, or None."""
        return dict(self.attributes).get(name)

    def __str__(self) -> str:
        sign = "%" if self.has_percent else ""
        operands = ", ".join(
            f"{'' if operand.shape is None else f'{operand.shape} '}{sign}{operand.name}" for operand in self.operands
        )
        attributes = "".join(f", {name}={value}" for name, value in self.attributes)
        root = "ROOT " if self.is_root else ""
        return f"{root}{sign}{self.name} = {self.shape} {self.opcode}({self.literal or operands}){attributes}"


def is_instruction(text: str) -> bool:
    """Return whether a text looks like an operation: a name and an equals sign."""
    return _INSTRUCTION.match(text) is not None


def parse_instruction(text: str) -> HloInstruction:
    """Return the operation in a line of HLO text.

    Raises:
        ParseError: the text is no operation; the place is line and column.
    """
    cursor = LayoutCursor(text)
    is_root = _read_root(cursor)
    has_percent = cursor.sees("%")
    name = _read_name(cursor)
    cursor.expect("=")
    shape = read_shape(cursor)
    opcode = cursor.word("an opcode")
    cursor.expect("(")
    literal = _read_raw(cursor, ")") if opcode in _WITH_LITERAL else ""
    operands = () if opcode in _WITH_LITERAL else _read_operands(cursor)
    cursor.expect(")")
    attributes = _read_attributes(cursor)
    return HloInstruction(
        name, shape, opcode, operands, attributes, literal=literal, is_root=is_root, has_percent=has_percent
    )


def _read_root(cursor: LayoutCursor) -> bool:
    place = cursor.skip()
    if cursor.accept("ROOT") and not cursor.sees("=") and cursor.text[cursor.position - 1].isspace():
        return True
    cursor.position = place
    return False


def _read_name(cursor: LayoutCursor) -> str:
    match = _NAME.match(cursor.text, cursor.skip())
    if match is None:
        cursor.fail("a name like %add.1")
    cursor.position = match.end()
    return match.group().removeprefix("%")


def _read_operands(cursor: LayoutCursor) -> tuple[HloOperand, ...]:
    operands: list[HloOperand] = []
    while not cursor.sees(")"):
        if operands:
            cursor.expect(",", ")")
        has_shape = _INLINE_SHAPE.match(cursor.text, cursor.skip()) is not None
        shape = read_shape(cursor) if has_shape else None
        operands.append(HloOperand(_read_name(cursor), shape))
    return tuple(operands)


def _read_attributes(cursor: LayoutCursor) -> tuple[tuple[str, str], ...]:
    attributes: dict[str, str] = {}
    while not cursor.at_end:
        cursor.expect(",", "the end")
        place = cursor.skip()
        name = cursor.word("the name of an attribute")
        if name in attributes:
            cursor.refuse("repeated-attribute", f"the attribute '{name}' stands twice", place)
        cursor.expect("=")
        attributes[name] = _read_raw(cursor, ",")
        if not attributes[name]:
            cursor.fail(f"the value of '{name}'")
    return tuple(attributes.items())


def _read_raw(cursor: LayoutCursor, end: str) -> str:
    """Return the text up to a character outside all brackets and strings, or up to the end."""
    start = cursor.skip()
    open_: list[tuple[str, int]] = []
    while match := _PIECE.match(cursor.text, cursor.position):
        piece = match.group()
        if piece == end and not open_:
            break
        if piece.startswith("/*") and not (piece.endswith("*/") and len(piece) > 3):
            cursor.refuse("malformed-instruction", "the comment does not end", match.start())
        if piece == '"':
            cursor.refuse("malformed-instruction", "the string does not end", match.start())
        if piece in _CLOSING:
            open_.append((_CLOSING[piece], match.start()))
        elif piece in ")]}" and (not open_ or open_.pop()[0] != piece):
            cursor.refuse("malformed-instruction", f"'{piece}' closes no bracket", match.start())
        cursor.position = match.end()
    if open_:
        cursor.refuse("malformed-instruction", f"the bracket needs '{open_[-1][0]}'", open_[-1][1])
    return cursor.text[start : cursor.position].strip()

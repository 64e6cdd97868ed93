"""HLO modules as XLA prints them: computations and instructions.

XLA's Python objects have no shapes and no attributes, so that the text is what can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardy_py.values import frozen

_HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = ((?:\(.*?\)|\S+)) ([\w\-]+)\((.*)$")
_CALLED = re.compile(
    r"\b(?:calls|to_apply|condition|body|true_computation|false_computation|comparator|select|scatter)=%?([\w.\-]+)"
)
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_LISTED = re.compile(r"\b(?:branch|called)_computations=\{([^}]*)\}")
_TUPLE = re.compile(r"^\((.*)\)$")
_COMMENT = re.compile(r"/\*.*?\*/")


@frozen
class HloTextInstruction:
    """One instruction.

    Args:
        name: Its name.
        shape: The text of its shape.
        opcode: Its opcode.
        rest: The text of its operands and attributes.
    """

    name: str
    shape: str
    opcode: str
    rest: str

    def attribute(self, name: str) -> str:
        """Return the name of the computation in an attribute, or ""."""
        match = re.search(rf"\b{name}=%?([\w.\-]+)", self.rest)
        return "" if match is None else match.group(1)

    @property
    def operand_names(self) -> tuple[str, ...]:
        """The names of the operands."""
        return tuple(re.findall(r"%([\w.\-]+)", self.rest.partition(")")[0]))

    @property
    def called(self) -> tuple[str, ...]:
        """The names of all computations that it mentions."""
        listed = _LISTED.search(self.rest)
        more = [] if listed is None else [item.strip().lstrip("%") for item in listed.group(1).split(",")]
        return (*_CALLED.findall(self.rest), *more)

    @property
    def branches(self) -> tuple[str, ...]:
        """The names of the computations of which a conditional runs one."""
        match = _BRANCHES.search(self.rest)
        if match is not None:
            return tuple(item.strip().lstrip("%") for item in match.group(1).split(","))
        return tuple(filter(None, (self.attribute("true_computation"), self.attribute("false_computation"))))


@frozen(eq=False)
class HloTextComputation:
    """One computation.

    Args:
        name: Its name.
        is_entry: Whether the program starts there.
        text: Its text.
        instructions: Its instructions, in order.
    """

    name: str
    is_entry: bool
    text: str
    instructions: tuple[HloTextInstruction, ...]


def parse_computations(text: str) -> dict[str, HloTextComputation]:
    """Return the computations of a module by name, callees first."""
    return {item.name: item for item in _computations(_COMMENT.sub("", text))}


def shape_leaves(shape: str) -> tuple[str, ...]:
    """Return the texts of the arrays of a shape.

    >>> shape_leaves("(f32[2,3]{1,0}, s32[])")
    ('f32[2,3]{1,0}', 's32[]')
    """
    match = _TUPLE.match(shape)
    return (shape,) if match is None else tuple(re.findall(r"\w+\[[^\]]*\](?:\{[^}]*\})?", match.group(1)))


def shape_bytes(shape: str) -> int:
    """Return the bytes of a shape.

    >>> shape_bytes("(bf16[2,3]{1,0}, pred[4])")
    16
    """
    return sum(_array_bytes(leaf) for leaf in shape_leaves(shape))


def _array_bytes(shape: str) -> int:
    type_, _, rest = shape.partition("[")
    count = 1
    for size in re.findall(r"\d+", rest.partition("]")[0]):
        count *= int(size)
    width = re.search(r"\d+", type_)
    bits = 8 if type_ == "pred" or width is None else int(width.group())
    return -(-count * bits // 8)


def _computations(text: str) -> Iterator[HloTextComputation]:
    lines: list[str] = []
    for line in text.splitlines():
        if _HEADER.match(line):
            lines = [line]
        elif line == "}" and lines:
            header = _HEADER.match(lines[0])
            assert header is not None
            instructions = (_INSTRUCTION.match(item) for item in lines[1:])
            parsed = tuple(HloTextInstruction(*item.groups()) for item in instructions if item is not None)
            yield HloTextComputation(header.group(2), header.group(1) is not None, "\n".join([*lines, line]), parsed)
            lines = []
        elif lines:
            lines.append(line)

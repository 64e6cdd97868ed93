"""Printing of programs in MLIR's generic form, without any library.

The text is for reading, and for MLIR's parser: it has the shardings that are in the attributes of the ops.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shardy_py.ir.graph.attributes import DenseElements, OpaqueElements, RawAttribute, SymbolRef, Unit
from shardy_py.ir.graph.enum_attributes import DIRECTION, direction_code
from shardy_py.ir.graph.op_names import FUNCTION, PROPAGATION_BARRIER
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import OpaqueType, TensorType, function_type
from shardy_py.sharding.axes import quote
from shardy_py.sharding.combiner import reduction_op_code
from shardy_py.sharding.parse import format_attribute
from shardy_py.sharding.tensor import symbol

_TYPED_BY_PARSER = (RawAttribute, DenseElements, OpaqueElements, TensorType, OpaqueType)


def value_names(program: Program) -> dict[Value, str]:
    """Return the names of all values in MLIR's numbering: ``%arg0``, ``%5``, ``%5#1``; each function begins anew."""
    names: dict[Value, str] = {}
    for op in program.body.ops:
        _Names(names).of_op(op)
    return names


def print_program(program: Program) -> str:
    """Return a program in MLIR's generic form."""
    printer = _Printer(value_names(program))
    attributes = _dictionary(program.attributes)
    lines = ['"builtin.module"() ({', *printer.block(program.body, 1)]
    return "\n".join([*lines, f"}}){' ' if attributes else ''}{attributes} : () -> ()\n"])


def attribute_text(value: Any) -> str:
    """Return an attribute in MLIR's notation.

    >>> attribute_text((1, 2)), attribute_text("a"), attribute_text(True)
    ('array<i64: 1, 2>', '"a"', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        return f"{_float_text(value)} : f64"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, (tuple, list)):
        return _sequence_text(value)
    if isinstance(value, Mapping):
        return _dictionary(value) or "{}"
    if isinstance(value, SymbolRef):
        return value.text or symbol(value.name)
    if isinstance(value, (Unit, *_TYPED_BY_PARSER)):
        code = reduction_op_code(str(value))
        return str(value) if code is None else _enumeration_text(code)
    return format_attribute(value)


def _enumeration_text(code: int) -> str:
    """Return a word of Shardy's enumerations in the generic form: its number."""
    return f"{code} : i32"


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        return f"0x{struct.pack('>d', value).hex().upper()}"
    mantissa, exponent, power = repr(value).partition("e")
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}{exponent}{power}"


def _sequence_text(value: Sequence[Any]) -> str:
    kinds = set(map(type, value))
    if kinds == {bool}:
        return f"array<i1: {', '.join(map(attribute_text, value))}>"
    if kinds == {int}:
        return f"array<i64: {', '.join(map(str, value))}>"
    return f"[{', '.join(map(attribute_text, value))}]"


def _dictionary(attributes: Mapping[str, Any]) -> str:
    items = []
    for name, value in attributes.items():
        is_plain = name.isascii() and name.replace(".", "_").replace("$", "_").isidentifier()
        key = name if is_plain else quote(name)
        items.append(key if isinstance(value, Unit) else f"{key} = {attribute_text(value)}")
    return f"{{{', '.join(items)}}}" if items else ""


class _Names:
    """Gives the names of one op at the top of a program."""

    def __init__(self, names: dict[Value, str]) -> None:
        self._names = names
        self._results = self._arguments = 0

    def of_op(self, op: Op) -> None:
        results = op.results
        if results:
            name = f"%{self._results}"
            self._results += 1
            for value in results:
                self._names[value] = name if len(results) == 1 else f"{name}#{value.index}"
        for region in op.regions:
            for block in region.blocks:
                self._of_block(block)

    def _of_block(self, block: Block) -> None:
        for value in block.arguments:
            self._names[value] = f"%arg{self._arguments}"
            self._arguments += 1
        for op in block.ops:
            self.of_op(op)


class _Printer:
    def __init__(self, names: Mapping[Value, str]) -> None:
        self._names = names

    def block(self, block: Block, depth: int) -> Iterator[str]:
        """Yield the lines of the ops of a block."""
        for op in block.ops:
            yield from self._op(op, depth)

    def _op(self, op: Op, depth: int) -> Iterator[str]:
        indent = "  " * depth
        head = (
            f"{self._results(op)}{quote(op.name)}({', '.join(self._names.get(value, '%?') for value in op.operands)})"
        )
        attributes = _dictionary(_all_attributes(op))
        types = function_type([value.type for value in op.operands], [value.type for value in op.results])
        tail = f"{' ' if attributes else ''}{attributes} : {types}"
        if not op.regions:
            yield f"{indent}{head}{tail}"
            return
        yield f"{indent}{head} ({{"
        for index, region in enumerate(op.regions):
            if index:
                yield f"{indent}}}, {{"
            for number, block in enumerate(region.blocks):
                arguments = ", ".join(f"{self._names[value]}: {value.type}" for value in block.arguments)
                yield f"{indent}^bb{number}({arguments}):" if arguments else f"{indent}^bb{number}:"
                yield from self.block(block, depth + 1)
        yield f"{indent}}}){tail}"

    def _results(self, op: Op) -> str:
        if not op.results:
            return ""
        name = self._names[op.results[0]].partition("#")[0]
        return f"{name} = " if len(op.results) == 1 else f"{name}:{len(op.results)} = "


def _all_attributes(op: Op) -> Mapping[str, Any]:
    """Return the attributes of an op; of a function also its type, which one that was built need not hold."""
    if op.name == PROPAGATION_BARRIER:
        code = direction_code(op.attributes.get(DIRECTION))
        return op.attributes if code is None else {**op.attributes, DIRECTION: RawAttribute(_enumeration_text(code))}
    if op.name != FUNCTION or "function_type" in op.attributes:
        return op.attributes
    blocks = op.regions[0].blocks if op.regions else ()
    arguments = [value.type for value in blocks[0].arguments] if blocks else []
    results = [value.type for value in op.function_results]
    return {**op.attributes, "function_type": function_type(arguments, results)}

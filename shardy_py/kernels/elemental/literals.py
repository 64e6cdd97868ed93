"""Constants of programs as attributes of kernels."""

from __future__ import annotations

import re
import struct
from functools import cache
from typing import Any

from xdsl.context import Context
from xdsl.dialects import builtin
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError as XdslParseError

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op
from shardy_py.kernels.dialect.constants import special_floats_as_bytes
from shardy_py.kernels.dialect.types import element_dtype, is_small_float, scalar_type

_COMPLEX = re.compile(r"dense<\(\s*([^,()]+),\s*([^,()]+)\)>")
_ONE_NUMBER = re.compile(r'dense<[^\["(>]+>')
_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|-?\d[\d.]*(?:[eE][-+]?\d+)?")
_PLAIN_NUMBER = re.compile(r"dense<(-?\d+(?:\.\d+(?:[eE][-+]?\d+)?)?)>")
_PLAIN_TYPES = ("f32", "f64", "i32", "i64")
_BITS = {"bf16": 2, "f16": 2, "f32": 4, "f64": 8}
_STRUCTS = {"f16": "<e", "f32": "<f", "f64": "<d"}


def literal_of(op: Op) -> builtin.DenseIntOrFPElementsAttr | float | complex:
    """Return the elements of a constant; one number where they are all alike or complex.

    Raises:
        UnsupportedError: the constant cannot be read.
    """
    text = _text(op)
    value = op.results[0]
    dtype = element_dtype(value)
    if dtype.startswith("complex"):
        match = _COMPLEX.match(text)
        if match is None:
            raise _refused(op)
        part = dtype[len("complex<") : -1]
        return complex(_number(match[1], part), _number(match[2], part))
    body = text[: text.rfind(">", 0, text.rfind(":")) + 1] if ":" in text else text
    bits = re.findall(r"(?<![\"\w])0x[0-9A-Fa-f]+", body) if dtype in _BITS or is_small_float(dtype) else ()
    if _ONE_NUMBER.match(text) and bits:
        return _number(bits[0], dtype)
    plain = _PLAIN_NUMBER.match(text)
    if plain and dtype in _PLAIN_TYPES:
        # The same as below, without a parser, for the zeros and ones of which programs are full.
        number = float(plain[1]) if dtype.startswith("f") else int(plain[1])
        scalar: Any = builtin.TensorType(scalar_type(dtype), [])
        return builtin.DenseIntOrFPElementsAttr.from_list(scalar, [number])
    # One number for all elements is not spread: there may be millions of them.
    shape = "" if _ONE_NUMBER.match(text) else "".join(f"{size}x" for size in value.shape)
    if bits:
        numbers = [_number(item, dtype) for item in _NUMBER.findall(body)]
        type_: Any = builtin.TensorType(scalar_type(dtype), value.shape)
        return builtin.DenseIntOrFPElementsAttr.from_list(type_, numbers)
    if dtype == "i8" and value.type.element_type == "i1":  # type: ignore[union-attr]
        body = re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", body))
    try:
        text = special_floats_as_bytes(f"{body} : tensor<{shape}{dtype}>")
        attribute = Parser(_context(), text).parse_attribute()
    except (XdslParseError, ValueError) as error:
        raise _refused(op) from error
    if not isinstance(attribute, builtin.DenseIntOrFPElementsAttr):
        raise _refused(op)
    return attribute


@cache
def _context() -> Context:
    context = Context()
    context.load_dialect(builtin.Builtin)
    return context


def _text(op: Op) -> str:
    attribute: Any = op.attributes.get("value")
    if attribute is None:
        raise _refused(op)
    return str(attribute)


def _number(text: str, dtype: str) -> float:
    """Return a number in MLIR's notation, which writes special floats by their bits."""
    if not text.strip().startswith("0x"):
        return float(text)
    if is_small_float(dtype):
        return float(scalar_type(dtype).decode_bits(int(text, 16)))  # type: ignore[attr-defined]
    data = int(text, 16).to_bytes(_BITS[dtype], "little")
    # The bits of a bf16 are the upper half of those of an f32.
    wide = dtype == "bf16"
    return float(struct.unpack("<f" if wide else _STRUCTS[dtype], b"\0\0" + data if wide else data)[0])


def _refused(op: Op) -> UnsupportedError:
    message = "the elements of the constant cannot be read"
    return UnsupportedError(Diagnostic("constant", message, op.location, op.name))


__all__ = ["literal_of", "scalar_type"]

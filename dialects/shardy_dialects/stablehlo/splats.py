"""Constants that are one number in all places."""

from __future__ import annotations

from math import inf

from shardy_dialects.stablehlo.shape import BROADCAST, RESHAPE
from shardy_py.ir.graph.attributes import OpaqueElements
from shardy_py.ir.graph.program import Value

_WORDS = {"false": 0, "true": 1}


_INFINITIES = {
    **dict.fromkeys(("0x7C00", "0x7F80", "0x7F800000", "0x7FF0000000000000"), inf),
    **dict.fromkeys(("0xFC00", "0xFF80", "0xFF800000", "0xFFF0000000000000"), -inf),
}
"""MLIR writes the infinities of f16, bf16, f32 and f64 as their bits."""


_RESHAPING = (BROADCAST, RESHAPE)


def splat_of(value: Value) -> float | None:
    """Return the number that a constant scalar holds, in whatever shape it is written, or None."""
    return _number_in(splat_text(value))


def number_of(value: Value) -> float | None:
    """Return the number that a constant scalar holds, which may be infinite, in whatever shape it is written."""
    text = splat_text(value)
    return None if text is None else _INFINITIES[text] if text in _INFINITIES else _number_in(text)


def _number_in(text: str | None) -> float | None:
    try:
        return None if text is None else _WORDS[text] if text in _WORDS else float(text)
    except ValueError:
        return None


def splat_text(value: Value) -> str | None:
    """Return the text of the number that a constant scalar holds, or None."""
    producer = value.defining_op
    while producer is not None and producer.name in _RESHAPING:
        producer = producer.operands[0].defining_op
    if producer is None or not producer.name.endswith(".constant") or "value" not in producer.attributes:
        return None
    elements = producer.attributes["value"]
    if isinstance(elements, OpaqueElements) and not getattr(elements.native, "is_splat", True):
        # Its text may be very long.
        return None
    text = str(elements).removeprefix("dense<").partition("> :")[0]
    # Elements of resources and sparse ones are something else, in brackets of their own.
    return None if "<" in text else text

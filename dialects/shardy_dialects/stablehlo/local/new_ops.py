"""Ops in the place of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shardy_py.ir.graph.attributes import Attribute, RawAttribute
from shardy_py.ir.graph.program import Op, Value

CONSTANT = "stablehlo.constant"


def create(
    anchor: Op, name: str, operands: Sequence[Value], attributes: Mapping[str, Attribute], type_: Any = None
) -> Value:
    """Return the result of a new op before another one, by default of the type of that one's result."""
    new = Op(anchor.program, name, operands, [type_ or anchor.result.type], dict(attributes))
    assert anchor.parent is not None
    anchor.parent.insert_before(anchor, new)
    return new.result


def create_splat(anchor: Op, text: str) -> Value:
    """Return a constant that is one number, in MLIR's notation, before an op, of the type of the op's result."""
    return create(anchor, CONSTANT, (), {"value": RawAttribute(f"dense<{text}> : {anchor.result.type}")})

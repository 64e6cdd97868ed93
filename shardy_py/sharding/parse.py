"""Parse and print ``#sdy`` attributes, with and without their names.

Accepts what MLIR accepts there: white space and comments anywhere, hexadecimal integers, quoted symbols.
Parsing checks the form only; `shardy_py.sharding.verify` checks the meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from shardy_py.errors import Diagnostic, ParseError, with_article
from shardy_py.sharding import grammar
from shardy_py.sharding.axes import AxisRef, SdyAttribute
from shardy_py.sharding.lexer import Cursor
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import DimensionSharding, ManualAxes, TensorSharding, TensorShardingPerValue
from shardy_py.support.late_patterns import late_pattern
from shardy_py.support.texts import refuse_bad_text, require_text

_T = TypeVar("_T")


def _whole(text: str, production: Callable[[Cursor], _T]) -> _T:
    require_text(text, "the attribute", code="syntax")
    with refuse_bad_text("the attribute", code="syntax"):
        cursor = Cursor(text)
        value = production(cursor)
        cursor.end()
        return value


# The form that is printed, with plain names: read with two expressions, its parts remembered. Anything else, and any
# error, is left to the productions.
_DIM = r"\{[^{}\\]*\}(?:p[0-9]+)?"
_PRINTED = (
    rf"<@([A-Za-z_][A-Za-z0-9_$.]*), \[((?:{_DIM}(?:, {_DIM})*)?)\]"
    r"(?:, replicated=(\{[^{}\\]+\}))?(?:, unreduced=(\{[^{}\\]+\}))?>"
)
_printed_sharding = re.compile(_PRINTED).fullmatch
_printed_dims = re.compile(_DIM).findall
_PRINTED_ITEMS = late_pattern(re.sub(r"\((?!\?)", "(?:", _PRINTED))


@lru_cache(maxsize=4096)
def _remembered_dim(text: str) -> DimensionSharding:
    return _whole(text, grammar.dim_sharding)


@lru_cache(maxsize=4096)
def _remembered_axes(text: str) -> tuple[AxisRef, ...]:
    return _whole(text, grammar.axis_list)


def _parse_printed(text: str) -> TensorSharding | None:
    match = _printed_sharding(text) if isinstance(text, str) else None
    if match is None:
        return None
    name, dims, replicated, unreduced = match.groups()
    try:
        return TensorSharding(
            name,
            tuple([_remembered_dim(dim) for dim in _printed_dims(dims)]),
            _remembered_axes(replicated) if replicated else (),
            _remembered_axes(unreduced) if unreduced else (),
        )
    except ParseError:  # the productions know the column in the whole text
        return None


def _printed_per_value(text: str) -> TensorShardingPerValue | None:
    items = _PRINTED_ITEMS.findall(text) if isinstance(text, str) else []
    if not items or f"<[{', '.join(items)}]>" != text:
        return None
    shardings = [_parse_printed(item) for item in items]
    return None if None in shardings else TensorShardingPerValue(tuple(item for item in shardings if item is not None))


def parse_axis_ref(text: str) -> AxisRef:
    """Parse an axis or a sub-axis.

    >>> parse_axis_ref('"x":(2)4').sub_axis
    SubAxis(pre_size=2, size=4)

    Raises:
        ParseError: the text has another form, as in all functions of this module.
    """
    return _whole(text, grammar.axis_ref)


def parse_dim_sharding(text: str) -> DimensionSharding:
    """Parse a dimension sharding like ``{"x", ?}p1``."""
    return _whole(text, grammar.dim_sharding)


def parse_mesh(text: str) -> Mesh:
    """Parse a mesh like ``<["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>``."""
    return _whole(text, grammar.mesh)


def parse_tensor_sharding(text: str) -> TensorSharding:
    """Parse a tensor sharding like ``<@mesh, [{"x"}, {?}], replicated={"y"}, unreduced={"z"}>``."""
    return _parse_printed(text) or _whole(text, grammar.tensor_sharding)


def parse_tensor_sharding_per_value(text: str) -> TensorShardingPerValue:
    """Parse the shardings of several values, ``<[<@mesh, [...]>, ...]>``."""
    return _printed_per_value(text) or _whole(text, grammar.tensor_sharding_per_value)


def parse_manual_axes(text: str) -> ManualAxes:
    """Parse the axes of a manual computation, ``{"x", "y"}``."""
    return _whole(text, grammar.manual_axes)


def parse_op_sharding_rule(text: str) -> OpShardingRule:
    """Parse a sharding rule like ``<([i, k], [k, j])->([i, j]) {i=8, j=4, k=16} reduction={k}>``."""
    return _whole(text, grammar.op_sharding_rule)


def parse_attribute(text: str) -> SdyAttribute:
    """Parse a whole attribute as MLIR prints it.

    >>> parse_attribute('#sdy<manual_axes{"x"}>')
    ManualAxes(names=('x',))

    Raises:
        ParseError: with code ``unknown-attribute`` for another attribute, else as for the parts.
    """
    require_text(text, "the attribute", code="syntax")
    if text.startswith("#sdy.sharding<"):
        return _parse_printed(text[13:]) or _whole(text, grammar.attribute)
    if text.startswith("#sdy.sharding_per_value<"):
        return _printed_per_value(text[23:]) or _whole(text, grammar.attribute)
    return _whole(text, grammar.attribute)


def format_attribute(value: Any) -> str:
    """Return the whole attribute of a value, the inverse of `parse_attribute`.

    Raises:
        ParseError: the value has no attribute form.
    """
    if not isinstance(value, SdyAttribute):
        raise ParseError(
            Diagnostic("unknown-attribute", f"{with_article(type(value).__name__)} is not an #sdy attribute: {value}")
        )
    return f"#sdy<{value.mnemonic}{value}>" if value.is_array else f"#sdy.{value.mnemonic}{value}"

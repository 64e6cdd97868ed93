"""Text to values: the body of every attribute of the vocabulary, and whole ``#sdy`` attributes.

Accepts what MLIR accepts there: white space and comments anywhere, hexadecimal integers, quoted symbols.
Parsing checks the form only; `shardy_py.sharding.verify` checks the meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.lexer import Cursor
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.rule import DimMapping, OpShardingRule, TensorMapping, factor_symbol
from shardy_py.sharding.tensor import (
    DimensionSharding,
    ManualAxes,
    ReductionOp,
    TensorSharding,
    TensorShardingPerValue,
)

ShardingValue = Mesh | TensorSharding | TensorShardingPerValue | OpShardingRule | ManualAxes
"""What `parse_attribute` returns: every value that can be an attribute of an op."""

_T = TypeVar("_T")
_FACTORS = re.compile(r"(?:z_[1-9][0-9]*|[i-z](?!_))+").fullmatch
_FACTOR = re.compile(r"z_([0-9]+)|([i-z])").findall
_REDUCTIONS: dict[str, ReductionOp] = {"sum": "sum", "max": "max", "min": "min"}
_Z = ord("z") - ord("i")


def _list(cursor: Cursor, close: str, item: Callable[[Cursor], _T]) -> tuple[_T, ...]:
    """Parse comma-separated items up to and including ``close``; the opening token is consumed already."""
    if cursor.accept(close):
        return ()
    items = [item(cursor)]
    while cursor.accept(","):
        items.append(item(cursor))
    cursor.expect(close, ",")
    return tuple(items)


def _axis_ref(cursor: Cursor) -> AxisRef:
    name = cursor.string("an axis name")
    if not cursor.accept(":"):
        return AxisRef(name)
    cursor.expect("(")
    pre_size = cursor.integer("the pre-size of a sub-axis")
    cursor.expect(")")
    return AxisRef(name, SubAxis(pre_size, cursor.integer("the size of a sub-axis")))


def _dim_sharding(cursor: Cursor) -> DimensionSharding:
    cursor.expect("{")
    axes: list[AxisRef] = []
    is_closed = True
    while not cursor.accept("}"):
        if axes and not cursor.accept(","):
            cursor.fail("',' or '}'")
        if cursor.accept("?"):
            cursor.expect("}")
            is_closed = False
            break
        axes.append(_axis_ref(cursor))
    return DimensionSharding(tuple(axes), is_closed, _priority(cursor))


def _priority(cursor: Cursor) -> int | None:
    token = cursor.token
    if not token or not (token[0].isalpha() or token[0] == "_"):
        return None
    digits = token[1:]
    if token[0] != "p" or not (digits.isascii() and digits.isdigit()):
        cursor.fail("a priority in the form p<number>", code="priority", hint='write it like {"x"}p1')
    if len(digits) > 1 and digits[0] == "0":
        cursor.fail("a priority without leading zeros", code="priority", hint=f"write p{digits.lstrip('0') or 0}")
    if int(digits) >= 2**63:
        cursor.fail("a priority of at most 63 bits", code="priority", hint="priorities may have gaps; use small ones")
    cursor.advance()
    return int(digits)


def _mesh_axis(cursor: Cursor) -> MeshAxis:
    name = cursor.string("an axis name")
    cursor.expect("=")
    return MeshAxis(name, cursor.integer("the size of the axis"))


def _device_id(cursor: Cursor) -> int:
    return cursor.integer("a device id")


def _mesh(cursor: Cursor) -> Mesh:
    cursor.expect("<")
    cursor.expect("[")
    axes = _list(cursor, "]", _mesh_axis)
    device_ids: tuple[int, ...] = ()
    if cursor.accept(","):
        cursor.expect("device_ids")
        cursor.expect("=")
        cursor.expect("[")
        device_ids = (_device_id(cursor),)
        if not cursor.accept("]"):
            cursor.expect(",", "]")
            device_ids += _list(cursor, "]", _device_id)
    cursor.expect(">", ",")
    return Mesh(axes, device_ids)


def _tensor_sharding(cursor: Cursor) -> TensorSharding:
    cursor.expect("<")
    mesh = _mesh(cursor) if cursor.accept("mesh") else cursor.symbol()
    cursor.expect(",")
    cursor.expect("[")
    dims = _list(cursor, "]", _dim_sharding)
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    reduction: ReductionOp = "sum"
    while cursor.accept(","):
        if not replicated and cursor.accept("replicated"):
            cursor.expect("=")
            replicated = _axes(cursor)
        elif not unreduced and cursor.accept("unreduced"):
            if cursor.accept("="):
                reduction = _reduction(cursor)
            unreduced = _axes(cursor)
        else:
            cursor.fail("'replicated' or 'unreduced', each at most once")
    cursor.expect(">", ",")
    return TensorSharding(mesh, dims, replicated, unreduced, reduction)


def _reduction(cursor: Cursor) -> ReductionOp:
    if cursor.token not in _REDUCTIONS:
        return "sum"
    return _REDUCTIONS[cursor.advance()]


def _axes(cursor: Cursor) -> tuple[AxisRef, ...]:
    cursor.expect("{")
    if cursor.token == "}":
        cursor.fail("an axis name in double quotes", hint="leave the list out where there are no axes")
    return _list(cursor, "}", _axis_ref)


def _tensor_sharding_per_value(cursor: Cursor) -> TensorShardingPerValue:
    cursor.expect("<")
    cursor.expect("[")
    shardings = _list(cursor, "]", _tensor_sharding)
    cursor.expect(">")
    return TensorShardingPerValue(shardings)


def _manual_axes(cursor: Cursor) -> ManualAxes:
    cursor.expect("{")
    return ManualAxes(_list(cursor, "}", lambda inner: inner.string("an axis name")))


@lru_cache(maxsize=4096)
def _split_factors(word: str) -> DimMapping | None:
    """Return the factors of a word like ``ijz_2``, or None where it is not made of factor symbols."""
    if not _FACTORS(word):
        return None
    return tuple(int(number) + _Z if number else ord(letter) - ord("i") for number, letter in _FACTOR(word))


def _factors(cursor: Cursor) -> DimMapping:
    factors = _split_factors(cursor.token)
    if factors is None:
        cursor.fail("factor symbols, which are i to z, then z_1, z_2, ...", code="factor-symbol")
    cursor.advance()
    return factors


def _dim_mapping(cursor: Cursor) -> DimMapping:
    """Parse one dimension; MLIR accepts a missing one and leaves the complaint to verification."""
    return () if cursor.token in {",", "]"} else _factors(cursor)


def _tensor_mapping(cursor: Cursor) -> TensorMapping:
    cursor.expect("[")
    return _list(cursor, "]", _dim_mapping)


def _tensor_mappings(cursor: Cursor) -> tuple[TensorMapping, ...]:
    cursor.expect("(")
    if cursor.token == ")":
        cursor.fail("'['", hint="a rule needs at least one operand and one result")
    return _list(cursor, ")", _tensor_mapping)


def _single_factor(cursor: Cursor) -> int:
    factors = _split_factors(cursor.token)
    if factors is None or len(factors) != 1:
        cursor.fail("a single factor symbol, one of i to z, z_1, z_2, ...", code="factor-symbol")
    cursor.advance()
    return factors[0]


def _factor_sizes(cursor: Cursor) -> tuple[int, ...]:
    sizes: list[int] = []

    def item(inner: Cursor) -> None:
        expected = factor_symbol(len(sizes))
        if _split_factors(inner.token) != (len(sizes),):
            hint = "factor sizes are listed in the order i, j, ..., z, z_1, z_2, ... without gaps"
            inner.fail(f"factor symbol '{expected}'", code="factor-order", hint=hint)
        inner.advance()
        inner.expect("=")
        sizes.append(inner.integer(f"the size of factor {expected}"))

    if cursor.accept("{"):
        _list(cursor, "}", item)
    return tuple(sizes)


def _special_factors(cursor: Cursor, keyword: str) -> tuple[int, ...]:
    if not cursor.accept(keyword):
        return ()
    cursor.expect("=")
    return _list(cursor, "}", _single_factor) if cursor.accept("{") else ()


def _op_sharding_rule(cursor: Cursor) -> OpShardingRule:
    cursor.expect("<")
    operands = _tensor_mappings(cursor)
    cursor.expect("->")
    results = _tensor_mappings(cursor)
    sizes = _factor_sizes(cursor)
    reduction = _special_factors(cursor, "reduction")
    need_replication = _special_factors(cursor, "need_replication")
    permutation = _special_factors(cursor, "permutation")
    blocked = _special_factors(cursor, "blocked_propagation")
    is_custom = cursor.accept(",")
    if is_custom:
        cursor.expect("custom")
    cursor.expect(
        ">", ",", "reduction={...}", "need_replication={...}", "permutation={...}", "blocked_propagation={...}"
    )
    return OpShardingRule(sizes, operands, results, reduction, need_replication, permutation, blocked, is_custom)


def _whole(text: str, production: Callable[[Cursor], _T]) -> _T:
    cursor = Cursor(text)
    value = production(cursor)
    cursor.end()
    return value


def parse_axis_ref(text: str) -> AxisRef:
    """Parse an axis or a sub-axis.

    >>> parse_axis_ref('"x":(2)4').sub_axis
    SubAxis(pre_size=2, size=4)

    Raises:
        ParseError: the text has another form; likewise all functions of this module.
    """
    return _whole(text, _axis_ref)


def parse_dim_sharding(text: str) -> DimensionSharding:
    """Parse a dimension sharding like ``{"x", ?}p1``."""
    return _whole(text, _dim_sharding)


def parse_mesh(text: str) -> Mesh:
    """Parse a mesh like ``<["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>``."""
    return _whole(text, _mesh)


def parse_tensor_sharding(text: str) -> TensorSharding:
    """Parse a tensor sharding like ``<@mesh, [{"x"}, {?}], replicated={"y"}, unreduced={"z"}>``."""
    return _whole(text, _tensor_sharding)


def parse_tensor_sharding_per_value(text: str) -> TensorShardingPerValue:
    """Parse the shardings of several values, ``<[<@mesh, [...]>, ...]>``."""
    return _whole(text, _tensor_sharding_per_value)


def parse_manual_axes(text: str) -> ManualAxes:
    """Parse the axes of a manual computation, ``{"x", "y"}``."""
    return _whole(text, _manual_axes)


def parse_op_sharding_rule(text: str) -> OpShardingRule:
    """Parse a sharding rule like ``<([i, k], [k, j])->([i, j]) {i=8, j=4, k=16} reduction={k}>``."""
    return _whole(text, _op_sharding_rule)


_PRODUCTIONS: dict[str, Callable[[Cursor], ShardingValue]] = {
    "sharding": _tensor_sharding,
    "sharding_per_value": _tensor_sharding_per_value,
    "mesh": _mesh,
    "op_sharding_rule": _op_sharding_rule,
    "manual_axes": _manual_axes,
}
_MNEMONICS = {
    TensorSharding: "sharding",
    TensorShardingPerValue: "sharding_per_value",
    Mesh: "mesh",
    OpShardingRule: "op_sharding_rule",
}


def _attribute(cursor: Cursor) -> ShardingValue:
    prefix, _, mnemonic = cursor.token.partition(".")
    if prefix != "#sdy":
        cursor.fail("an attribute like #sdy.sharding<...>")
    if mnemonic == "manual_axes":
        cursor.fail("the form #sdy<manual_axes{...}>")
    if mnemonic:
        return _production(cursor, mnemonic)(cursor)
    cursor.advance()
    cursor.expect("<")
    value = _production(cursor, cursor.token)(cursor)
    cursor.expect(">")
    return value


def _production(cursor: Cursor, mnemonic: str) -> Callable[[Cursor], ShardingValue]:
    if mnemonic not in _PRODUCTIONS:
        cursor.fail("one of the attributes " + ", ".join(_PRODUCTIONS), code="unknown-attribute")
    cursor.advance()
    return _PRODUCTIONS[mnemonic]


def parse_attribute(text: str) -> ShardingValue:
    """Parse a whole attribute as MLIR prints it.

    >>> parse_attribute('#sdy<manual_axes{"x"}>')
    ManualAxes(names=('x',))

    Raises:
        ParseError: with code ``unknown-attribute`` for another attribute, else as for the parts.
    """
    return _whole(text, _attribute)


def format_attribute(value: Any) -> str:
    """Return the whole attribute of a value, the inverse of `parse_attribute`.

    Raises:
        ParseError: the value has no attribute form.
    """
    if isinstance(value, ManualAxes):
        return f"#sdy<manual_axes{value}>"
    mnemonic = _MNEMONICS.get(type(value))
    if mnemonic is None:
        raise ParseError(Diagnostic("unknown-attribute", f"a {type(value).__name__} is not an #sdy attribute: {value}"))
    return f"#sdy.{mnemonic}{value}"

"""The grammar of attributes: one function per form parses it from a cursor on tokens to a value."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module

from shardy_py.sharding.axes import AxisRef, SdyAttribute, SubAxis
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.lexer import Cursor, comma_list
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.rule import DimMapping, OpShardingRule, TensorMapping, factor_symbol
from shardy_py.sharding.tensor import (
    DimensionSharding,
    ManualAxes,
    ReductionOp,
    TensorSharding,
    TensorShardingPerValue,
)
from shardy_py.support.late_patterns import late_pattern

_REDUCTIONS: dict[str, ReductionOp] = {"sum": "sum", "max": "max", "min": "min"}


def axis_ref(cursor: Cursor) -> AxisRef:
    """Parse an axis or a sub-axis."""
    name = cursor.string("an axis name")
    if not cursor.accept(":"):
        return AxisRef(name)
    cursor.expect("(")
    pre_size = cursor.integer("the pre-size of a sub-axis")
    cursor.expect(")")
    return AxisRef(name, SubAxis(pre_size, cursor.integer("the size of a sub-axis")))


def dim_sharding(cursor: Cursor) -> DimensionSharding:
    """Parse a dimension sharding."""
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
        axes.append(axis_ref(cursor))
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
    if len(digits) > 19 or int(digits) >= 2**63:
        cursor.fail("a priority of at most 63 bits", code="priority", hint="priorities may have gaps; use small ones")
    cursor.advance()
    return int(digits)


def _mesh_axis(cursor: Cursor) -> MeshAxis:
    name = cursor.string("an axis name")
    cursor.expect("=")
    return MeshAxis(name, cursor.integer("the size of the axis"))


def _device_id(cursor: Cursor) -> int:
    return cursor.integer("a device id")


def mesh(cursor: Cursor) -> Mesh:
    """Parse a mesh."""
    cursor.expect("<")
    cursor.expect("[")
    axes = comma_list(cursor, "]", _mesh_axis)
    device_ids: tuple[int, ...] = ()
    if cursor.accept(","):
        cursor.expect("device_ids")
        cursor.expect("=")
        cursor.expect("[")
        device_ids = (_device_id(cursor),)
        if not cursor.accept("]"):
            cursor.expect(",", "]")
            device_ids += comma_list(cursor, "]", _device_id)
    cursor.expect(">", ",")
    return Mesh(axes, device_ids)


def tensor_sharding(cursor: Cursor) -> TensorSharding:
    """Parse a tensor sharding, its mesh named or inlined."""
    cursor.expect("<")
    mesh_or_name = mesh(cursor) if cursor.accept("mesh") else cursor.symbol()
    cursor.expect(",")
    cursor.expect("[")
    dims = comma_list(cursor, "]", dim_sharding)
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    reduction: ReductionOp = "sum"
    while cursor.accept(","):
        if not replicated and cursor.accept("replicated"):
            cursor.expect("=")
            replicated = axis_list(cursor)
        elif not unreduced and cursor.accept("unreduced"):
            if cursor.accept("="):
                reduction = _reduction(cursor)
            unreduced = axis_list(cursor)
        else:
            cursor.fail("'replicated' or 'unreduced', each at most once")
    cursor.expect(">", ",")
    return TensorSharding(mesh_or_name, dims, replicated, unreduced, reduction)


def _reduction(cursor: Cursor) -> ReductionOp:
    if cursor.token not in _REDUCTIONS:
        return "sum"
    return _REDUCTIONS[cursor.advance()]


def axis_list(cursor: Cursor) -> tuple[AxisRef, ...]:
    """Parse a list of axes in braces, not empty."""
    cursor.expect("{")
    if cursor.token == "}":
        cursor.fail("an axis name in double quotes", hint="leave the list out where there are no axes")
    return comma_list(cursor, "}", axis_ref)


def tensor_sharding_per_value(cursor: Cursor) -> TensorShardingPerValue:
    """Parse the shardings of several values."""
    cursor.expect("<")
    cursor.expect("[")
    shardings = comma_list(cursor, "]", tensor_sharding)
    cursor.expect(">")
    return TensorShardingPerValue(shardings)


def manual_axes(cursor: Cursor) -> ManualAxes:
    """Parse the axes of a manual computation."""
    cursor.expect("{")
    return ManualAxes(comma_list(cursor, "}", lambda inner: inner.string("an axis name")))


_FACTORS = late_pattern(r"(?:z_[1-9][0-9]*|[i-z](?!_))+")
_FACTOR = late_pattern(r"z_([0-9]+)|([i-z])")
_COMBINERS = {combiner.value: combiner for combiner in Combiner}
_Z = ord("z") - ord("i")


@lru_cache(maxsize=4096)
def _split_factors(word: str) -> DimMapping | None:
    """Return the factors of a word like ``ijz_2``, or None where it is not made of factor symbols."""
    if not _FACTORS.fullmatch(word):
        return None
    return tuple(int(number) + _Z if number else ord(letter) - ord("i") for number, letter in _FACTOR.findall(word))


def _factors(cursor: Cursor) -> DimMapping:
    factors = _split_factors(cursor.token)
    if factors is None:
        cursor.fail("factor symbols, which are i to z, then z_1, z_2, ...", code="factor-symbol")
    cursor.advance()
    return factors


def _dim_mapping(cursor: Cursor) -> DimMapping:
    """Parse one dimension; a missing one is accepted, as in MLIR, and found by verification."""
    return () if cursor.token in {",", "]"} else _factors(cursor)


def _tensor_mapping(cursor: Cursor) -> TensorMapping:
    cursor.expect("[")
    return comma_list(cursor, "]", _dim_mapping)


def _tensor_mappings(cursor: Cursor) -> tuple[TensorMapping, ...]:
    cursor.expect("(")
    if cursor.token == ")":
        cursor.fail("'['", hint="a rule needs at least one operand and one result")
    return comma_list(cursor, ")", _tensor_mapping)


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
        comma_list(cursor, "}", item)
    return tuple(sizes)


def _special_factors(cursor: Cursor, keyword: str) -> tuple[int, ...]:
    if not cursor.accept(keyword):
        return ()
    cursor.expect("=")
    return comma_list(cursor, "}", _single_factor) if cursor.accept("{") else ()


def _reductions(cursor: Cursor) -> tuple[tuple[int, ...], tuple[tuple[int, Combiner], ...]]:
    """Parse reduction factors and the combiners of those that are not summed: ``reduction={i} reduction=max{j}``."""
    factors = _special_factors(cursor, "reduction") if cursor.ahead(2) not in _COMBINERS else ()
    combiners: list[tuple[int, Combiner]] = []
    while cursor.token == "reduction" and cursor.ahead(2) in _COMBINERS:
        cursor.advance()
        cursor.expect("=")
        combiner = _COMBINERS[cursor.advance()]
        cursor.expect("{")
        combiners += [(factor, combiner) for factor in comma_list(cursor, "}", _single_factor)]
    if not combiners:
        return factors, ()
    named = tuple(sorted(factors + tuple(factor for factor, _ in combiners)))
    return named, tuple(sorted((item for item in combiners if item[1] is not Combiner.ADD), key=lambda item: item[0]))


def _initial_operands(cursor: Cursor) -> tuple[int, ...]:
    if not cursor.accept("initial"):
        return ()
    cursor.expect("=")
    cursor.expect("{")
    return comma_list(cursor, "}", lambda inner: inner.integer("the number of an operand"))


def op_sharding_rule(cursor: Cursor) -> OpShardingRule:
    """Parse a sharding rule."""
    cursor.expect("<")
    operands = _tensor_mappings(cursor)
    cursor.expect("->")
    results = _tensor_mappings(cursor)
    sizes = _factor_sizes(cursor)
    reduction, combiners = _reductions(cursor)
    need_replication = _special_factors(cursor, "need_replication")
    permutation = _special_factors(cursor, "permutation")
    blocked = _special_factors(cursor, "blocked_propagation")
    initial = _initial_operands(cursor)
    is_custom = cursor.accept(",")
    if is_custom:
        cursor.expect("custom")
    cursor.expect(
        ">", ",", "reduction={...}", "need_replication={...}", "permutation={...}", "blocked_propagation={...}"
    )
    kinds = (reduction, need_replication, permutation, blocked)
    return OpShardingRule(sizes, operands, results, *kinds, is_custom, combiners, initial)


Production = Callable[[Cursor], SdyAttribute]


def _on_demand(name: str) -> Production:
    """Return a production of the module that is imported when a text needs it."""

    def parse(cursor: Cursor) -> SdyAttribute:
        production: Production = getattr(import_module("shardy_py.sharding.op_attributes"), name)
        return production(cursor)

    return parse


_PRODUCTIONS: dict[str, Production] = {
    "sharding": tensor_sharding,
    "sharding_per_value": tensor_sharding_per_value,
    "mesh": mesh,
    "op_sharding_rule": op_sharding_rule,
    "manual_axes": manual_axes,
    "axis_ref_list": _on_demand("axis_ref_list"),
    "list_of_axis_ref_lists": _on_demand("list_of_axis_ref_lists"),
    "all_to_all_param_list": _on_demand("all_to_all_param_list"),
    "propagation_edges": _on_demand("propagation_edges"),
}
_ARRAYS = frozenset(("manual_axes", "axis_ref_list", "list_of_axis_ref_lists", "all_to_all_param_list"))
"""The attributes that MLIR writes inside the brackets, see `SdyAttribute.is_array`."""


def attribute(cursor: Cursor) -> SdyAttribute:
    """Parse a whole attribute, ``#sdy.name...`` or ``#sdy<name...>``."""
    prefix, _, mnemonic = cursor.token.partition(".")
    if prefix != "#sdy":
        cursor.fail("an attribute like #sdy.sharding<...>")
    if mnemonic in _ARRAYS:
        cursor.fail(f"the form #sdy<{mnemonic}...>")
    if mnemonic:
        return _production(cursor, mnemonic)(cursor)
    cursor.advance()
    cursor.expect("<")
    value = _production(cursor, cursor.token)(cursor)
    cursor.expect(">")
    return value


def _production(cursor: Cursor, mnemonic: str) -> Production:
    if mnemonic not in _PRODUCTIONS:
        cursor.fail("one of the attributes " + ", ".join(_PRODUCTIONS), code="unknown-attribute")
    cursor.advance()
    return _PRODUCTIONS[mnemonic]

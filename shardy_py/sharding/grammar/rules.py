"""Grammar of sharding rules."""

from __future__ import annotations

import re
from functools import lru_cache

from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.lexer import Cursor, comma_list
from shardy_py.sharding.rule import DimMapping, OpShardingRule, TensorMapping, factor_symbol

_FACTORS = re.compile(r"(?:z_[1-9][0-9]*|[i-z](?!_))+").fullmatch
_FACTOR = re.compile(r"z_([0-9]+)|([i-z])").findall
_COMBINERS = {combiner.value: combiner for combiner in Combiner}
_Z = ord("z") - ord("i")


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

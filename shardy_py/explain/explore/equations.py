"""Equations of products: which dimensions an op multiplies and sums, in letters: ``nd,df->nf``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from string import ascii_lowercase
from types import MappingProxyType

from shardy_py.sharding.rule import OpShardingRule, TensorMapping

_UNKNOWN: Mapping[str, int] = MappingProxyType({})
_FIRST = ascii_lowercase.index("i")
_LETTERS = ascii_lowercase[_FIRST:] + ascii_lowercase[:_FIRST]


def equation_of(
    rule: OpShardingRule, written: str = "", *, is_backward: bool = False, sizes: Mapping[str, int] = _UNKNOWN
) -> str:
    """Return the equation of a product, or "" for a rule that multiplies and sums nothing.

    Args:
        rule: The rule of the op.
        written: The einsum that the op was written as; its letters are taken where only one choice of them fits.
        is_backward: Whether the op computes a gradient of that einsum.
        sizes: The sizes of letters, as far as they are known.
    """
    if not _is_product(rule):
        return ""
    choices = dict.fromkeys(
        _text(rule, letters) for letters in letters_of(rule, written, is_backward=is_backward, sizes=sizes)
    )
    # The order in which the result was written tells operands apart that differ in letters only.
    exact = [text for text in choices if text.partition("->")[2] in _terms(written)]
    best = exact or list(choices)
    return best[0] if len(best) == 1 else _text(rule, _in_order(rule))


def _terms(written: str) -> list[str]:
    """Return the terms of an einsum, the result last."""
    return written.replace(" ", "").replace("->", ",").split(",")


def _text(rule: OpShardingRule, letters: dict[int, str]) -> str:
    terms = [_term(mapping, letters) for mapping in (*rule.operand_mappings, *rule.result_mappings)]
    count = len(rule.operand_mappings)
    return f"{','.join(terms[:count])}->{','.join(terms[count:])}"


def _is_product(rule: OpShardingRule) -> bool:
    """Return whether two operands share a factor that the result is summed over."""
    if len(rule.operand_mappings) != 2:
        return False
    first, second = ({factor for dim in mapping for factor in dim} for mapping in rule.operand_mappings)
    return any(factor in first and factor in second for factor in rule.reduction_factors)


def _in_order(rule: OpShardingRule) -> dict[int, str]:
    """Return letters from i on, in the order in which the operands have the factors."""
    mappings = (*rule.operand_mappings, *rule.result_mappings)
    factors = dict.fromkeys(factor for mapping in mappings for dim in mapping for factor in dim)
    return {
        factor: _LETTERS[at] if at < len(_LETTERS) else f"{_LETTERS[at % len(_LETTERS)]}{at // len(_LETTERS)}"
        for at, factor in enumerate(factors)
    }


def letters_of(
    rule: OpShardingRule, written: str, *, is_backward: bool = False, sizes: Mapping[str, int] = _UNKNOWN
) -> Iterator[dict[int, str]]:
    """Yield the letters of an einsum that fit the dimensions of a product, by factor.

    A gradient takes the gradient of the result and one of the operands, and has the dimensions of the other one.
    """
    terms = _terms(written)
    if "->" not in written or len(terms) != 3 or not all(term.isalpha() for term in terms):
        return
    for order in permutations(range(3)):
        if (order[2] != 2) is is_backward:
            letters = _fitted(rule, [terms[number] for number in order])
            if letters is not None and _fit_sizes(rule, letters, sizes):
                yield letters


def _fit_sizes(rule: OpShardingRule, letters: dict[int, str], sizes: Mapping[str, int]) -> bool:
    known = [(factor, sizes[letter]) for factor, letter in letters.items() if letter in sizes]
    return all(rule.factor_sizes[factor] == size for factor, size in known)


def _fitted(rule: OpShardingRule, terms: Sequence[str]) -> dict[int, str] | None:
    """Return the letters of factors for which the operands have two terms, and the result the letters of the last."""
    letters: dict[int, str] = {}
    for mapping, term in zip(rule.operand_mappings, terms, strict=False):
        if len(mapping) != len(term) or any(len(dim) != 1 for dim in mapping):
            return None
        for (factor,), letter in zip(mapping, term, strict=True):
            if letters.setdefault(factor, letter) != letter:
                return None
    ends = [letters.get(factor) for dim in rule.result_mappings[0] for factor in dim]
    is_whole = len(set(letters.values())) == len(letters) and sorted(map(str, ends)) == sorted(terms[2])
    return letters if is_whole else None


def _term(mapping: TensorMapping, letters: dict[int, str]) -> str:
    dims = ("".join(letters[factor] for factor in dim) or "1" for dim in mapping)
    return "".join(f"({text})" if len(text) > 1 else text for text in dims)

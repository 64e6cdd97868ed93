"""The function `rule`: a rule text with marks, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import index
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, RuleError, did_you_mean
from shardy_py.sharding.combiner import Combiner, split_words
from shardy_py.sharding.einsum.problems import spec_problems
from shardy_py.sharding.einsum.spec import KINDS, Factors, RuleSpec
from shardy_py.sharding.einsum.text import parse_tensors
from shardy_py.support.arguments import shown
from shardy_py.support.integers import as_integer


def rule(
    text: str,
    /,
    *,
    reduction: str | Iterable[str] | Mapping[str, str | Combiner] = (),
    need_replication: str | Iterable[str] = (),
    permutation: str | Iterable[str] = (),
    blocked: str | Iterable[str] = (),
    pass_through: str | Iterable[str] = (),
    initial: int | Iterable[int] = (),
    order: str | Iterable[str] = (),
    **sizes: int,
) -> RuleSpec:
    """Return a sharding rule written as text.

    A factor that is a whole dimension somewhere has that dimension's size, which must be the same in all tensors; only
    along factors that need replication, are permuted or blocked may sizes differ, and then the smallest counts. A
    compound may have one factor whose size is not known otherwise.

    Args:
        text: The dimensions of the operands, ``->``, those of the results. Nothing on one side stands for one scalar,
            or for no tensor at all, whichever the op has.
        reduction: The factors that are reduced over, as names or as one text. Partial results are added, unless a word
            behind a colon says otherwise: ``"k, cols:max"``; so does ``{"cols": "max"}``. The words are ``add``,
            ``mul``, ``min``, ``max``, ``and``, ``or``, and ``not`` for what cannot be combined: the factor needs
            replication then.
        need_replication: The factors that must be whole on each device, as names or as one text.
        permutation: The factors that are moved along, as names or as one text.
        blocked: Factors along which shardings do not propagate, as names or as one text.
        pass_through: Factors that pass through, as those do that have no mark. For those that no result has, so that
            nobody takes them for reductions without a mark.
        initial: The numbers of the operands that a reduction starts from. Along reduced factors they count once, and
            not once per shard.
        order: Factors that come first in the rule, in their order; the others follow as the text has them. Where
            shardings conflict, propagation takes the factors in their order.
        sizes: Sizes of factors, as far as the shapes do not tell them.

    An ellipsis is marked as a whole: ``reduction="..."``.

    Raises:
        RuleError: the text is not a rule, or names do not fit it.

    >>> str(rule("i k, k j -> i j", reduction="k").bind([(8, 32), (32, 16)], [(8, 16)]))
    '<([i, j], [j, k])->([i, k]) {i=8, j=32, k=16} reduction={j}>'
    >>> str(rule("i k, k j -> i j", reduction="k", order="i j").bind([(8, 32), (32, 16)], [(8, 16)]))
    '<([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}>'
    >>> str(rule("rows cols -> rows", reduction="cols:max").bind([(8, 4)], [(8,)]))
    '<([i, j])->([i]) {i=8, j=4} reduction=max{j}>'
    """
    if not isinstance(text, str):
        # Refused before it is hashed.
        parse_tensors(text)
    reduced = split_words(_checked("reduction", reduction))
    whole = (*_names("need_replication", need_replication), *(name for name, combiner in reduced if combiner is None))
    marks = (
        tuple(name for name, combiner in reduced if combiner is not None),
        whole,
        _names("permutation", permutation),
        _names("blocked", blocked),
        _names("pass_through", pass_through),
    )
    words = tuple((name, combiner) for name, combiner in reduced if combiner not in (None, Combiner.ADD))
    sizes = {name: _size(name, size) for name, size in sizes.items()}
    return _make_rule(text, tuple(sizes.items()), marks, words, _numbers(initial), _names("order", order))


def _names(mark: str, given: str | Iterable[str]) -> Factors:
    names = _checked(mark, given)
    return tuple(names.replace(",", " ").split()) if isinstance(names, str) else tuple(names)


def _checked(mark: str, given: Any) -> Any:
    """Return the factors of a mark: a text, a mapping, or a tuple of names."""
    if isinstance(given, str):
        return given
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        message = f"{mark} is {shown(given)}, not names of factors"
        raise RuleError(Diagnostic("invalid-rule", message, hint=f'{mark}="k" or {mark}=("k",)'))
    names = given if isinstance(given, Mapping) else tuple(given)
    wrong = [shown(name) for name in names if not isinstance(name, str)]
    if wrong:
        raise RuleError(Diagnostic("invalid-rule", f"{mark} names {wrong[0]}, which is no factor", hint=f'{mark}="k"'))
    return names


def _numbers(initial: int | Iterable[int]) -> tuple[int, ...]:
    items: list[Any] = list(initial) if isinstance(initial, Iterable) and not isinstance(initial, str) else [initial]
    numbers = [number for number in map(as_integer, items) if number is not None]
    if len(numbers) < len(items):
        message = f"initial: {shown(initial)} is no number of an operand"
        raise RuleError(Diagnostic("initial-operand", message, hint="operands are numbered from 0: initial=0"))
    return tuple(sorted(set(numbers)))


def _size(name: str, size: Any) -> int:
    try:
        return index(size)
    except TypeError:
        message = f"the size of factor {name} is {size!r}, not an integer"
        hint = did_you_mean(name, KINDS, likeness=0.8)
        raise RuleError(Diagnostic("factor-size", message, hint=hint)) from None


@lru_cache(maxsize=1024)
def _make_rule(
    text: str,
    sizes: tuple[tuple[str, int], ...],
    marks: tuple[Factors, ...],
    combiners: tuple[tuple[str, Combiner], ...],
    initial: tuple[int, ...],
    order: Factors,
) -> RuleSpec:
    operands, results = parse_tensors(text)
    named: dict[str, Any] = dict(zip(KINDS, marks, strict=True))
    spec = evolve(RuleSpec(text, operands, results, sizes, combiners=combiners, initial=initial, order=order), **named)
    problems = spec_problems(spec)
    if problems:
        raise RuleError(*problems)
    return spec

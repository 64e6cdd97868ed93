"""The function `rule`: a rule text with marks, checked for unknown names, factors of two kinds and missing sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from operator import index
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, RuleError, did_you_mean
from shardy_py.sharding.combiner import Combiner, split_words
from shardy_py.sharding.einsum.spec import EXCLUSIVE, KINDS, Factors, RuleSpec, ellipsis, names_in
from shardy_py.sharding.einsum.text import Dim, excerpt, parse_tensors
from shardy_py.support.arguments import as_integer, shown


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
    replicated = (
        *_names("need_replication", need_replication),
        *(name for name, combiner in reduced if combiner is None),
    )
    marks = (
        tuple(name for name, combiner in reduced if combiner is not None),
        replicated,
        _names("permutation", permutation),
        _names("blocked", blocked),
        _names("pass_through", pass_through),
    )
    words = tuple((name, combiner) for name, combiner in reduced if combiner not in (None, Combiner.ADD))
    sizes = {name: _size(name, size) for name, size in sizes.items()}
    return _make_rule(text, tuple(sizes.items()), marks, words, _numbers(initial), _names("order", order))


def _names(mark: str, argument: str | Iterable[str]) -> Factors:
    names = _checked(mark, argument)
    return tuple(names.replace(",", " ").split()) if isinstance(names, str) else tuple(names)


def _checked(mark: str, argument: Any) -> Any:
    """Return the factors of a mark: a text, a mapping, or a tuple of names."""
    if isinstance(argument, str):
        return argument
    if not isinstance(argument, Iterable) or isinstance(argument, bytes):
        message = f"{mark} is {shown(argument)}, not names of factors"
        raise RuleError(Diagnostic("invalid-rule", message, hint=f'{mark}="k" or {mark}=("k",)'))
    names = argument if isinstance(argument, Mapping) else tuple(argument)
    wrong = [shown(name) for name in names if not isinstance(name, str)]
    if wrong:
        message = f"{mark} names {wrong[0]}, which is not a factor"
        raise RuleError(Diagnostic("invalid-rule", message, hint=f'{mark}="k"'))
    return names


def _numbers(initial: int | Iterable[int]) -> tuple[int, ...]:
    items: list[Any] = list(initial) if isinstance(initial, Iterable) and not isinstance(initial, str) else [initial]
    numbers = [number for number in map(as_integer, items) if number is not None]
    if len(numbers) < len(items):
        message = f"initial: {shown(initial)} is not the number of an operand"
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


_MOST_PROBLEMS = 20
"""The number of problems of one rule that are reported."""


def spec_problems(spec: RuleSpec) -> list[Diagnostic]:
    """Return the problems of a spec; unknown sizes only where there are no others."""
    problems = list(islice(chain(_name_problems(spec), _kind_problems(spec), _initial_problems(spec)), _MOST_PROBLEMS))
    return problems or list(islice(_unknown_sizes(spec), _MOST_PROBLEMS))


def _initial_problems(spec: RuleSpec) -> Iterator[Diagnostic]:
    """Find initial operands that do not exist, or that have a reduced factor."""
    for number in spec.initial:
        if not isinstance(number, int) or not 0 <= number < len(spec.operands):
            message = f"initial: the rule has no operand {number!r}"
            yield _problem(spec, "initial-operand", message, hint=f"it has {len(spec.operands)}, numbered from 0")
            continue
        for name in names_in(spec.operands[number]):
            if name in spec.reduction:
                message = f"initial: operand {number} has the factor {name}, which is reduced"
                hint = "a reduction starts from something of the shape of its result"
                yield _problem(spec, "initial-operand", message, column=spec.operands[number].column, hint=hint)


def _dims(spec: RuleSpec) -> Iterator[Dim]:
    for tensor in spec.tensors:
        yield from tensor.dims


def _problem(spec: RuleSpec, code: str, message: str, *, column: int = -1, hint: str = "") -> Diagnostic:
    return Diagnostic(code, message, hint=hint, excerpt=excerpt(spec.text, column))


def _name_problems(spec: RuleSpec) -> Iterator[Diagnostic]:
    """Find names that are not in the rule, invalid sizes, and factors that a tensor has twice."""
    columns: dict[str, int] = {}
    for name, column in (factor for dim in _dims(spec) for factor in dim.factors):
        columns.setdefault(name, column)
    for tensor in spec.tensors:
        if tensor.batch is not None:
            columns.setdefault(ellipsis(tensor.batch), tensor.column)
    names_by_mark = {
        "size": [name for name, _ in spec.sizes],
        **{kind: getattr(spec, kind) for kind in (*KINDS, "order")},
    }
    for what, names in names_by_mark.items():
        for name in names:
            if name not in columns:
                hint = _name_hint(name, columns)
                yield _problem(spec, "unknown-factor", f"{what}: the rule has no factor {name!r}", hint=hint)
    for name, size in spec.sizes:
        if size < 1:
            message = f"the size of factor {name} is {size}, not positive"
            yield _problem(spec, "factor-size", message, column=columns.get(name, -1))
    for tensor in spec.tensors:
        seen: set[str] = set()
        for name, column in (factor for dim in tensor.dims for factor in dim.factors):
            if name in seen:
                message = f"factor {name} occurs twice in one tensor"
                yield _problem(spec, "duplicate-factor", message, column=column, hint="give one of them another name")
            seen.add(name)


def _name_hint(name: str, columns: Iterable[str]) -> str:
    """Return a hint for a marked name that no dimension has."""
    known = list(columns)
    letters = list(name)
    if len(letters) > 1 and all(letter in known for letter in letters):
        return f"names are separated by spaces or commas: {' '.join(letters)!r}"
    if len(letters) == 1 and any(name in other for other in known if len(other) > 1 and other.isidentifier()):
        return f"the factors are {', '.join(known)}; are there spaces between all dimensions?"
    return f"the factors are {', '.join(known)}"


def _kind_problems(spec: RuleSpec) -> Iterator[Diagnostic]:
    """Find factors of two kinds, and reduced ones that a result still has."""
    owner: dict[str, str] = {}
    for kind in EXCLUSIVE:
        for name in getattr(spec, kind):
            other = owner.setdefault(name, kind)
            if other != kind:
                message = f"factor {name} cannot be both {other} and {kind}"
                yield _problem(spec, "factor-kinds", message, hint="keep it in one of them")
    for kind in KINDS:
        names = getattr(spec, kind)
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield _problem(spec, "factor-kinds", f"{kind} names factor {name} twice", hint="name it once")
    for tensor in spec.results:
        batch = () if tensor.batch is None else ((ellipsis(tensor.batch), tensor.column),)
        for name, column in (*batch, *(factor for dim in tensor.dims for factor in dim.factors)):
            if name in spec.reduction:
                message = f"a result has the factor {name}, which is reduced"
                hint = "a reduced factor is gone from every result"
                yield _problem(spec, "factor-reduction", message, column=column, hint=hint)


def _unknown_sizes(spec: RuleSpec) -> Iterator[Diagnostic]:
    """Find factors whose sizes no shapes can tell."""
    known = {name for name, _ in spec.sizes} | {dim.names[0] for dim in _dims(spec) if len(dim.factors) == 1}
    compounds = [dim for dim in _dims(spec) if len(dim.factors) > 1]
    while solved := {open_[0] for dim in compounds if len(open_ := [n for n in dim.names if n not in known]) == 1}:
        known |= solved
    reported: set[str] = set()
    for dim in compounds:
        for name, column in dim.factors:
            if name not in known and name not in reported:
                reported.add(name)
                message = f"factor {name} occurs in compounds only, where its size cannot be told"
                yield _problem(spec, "unknown-size", message, column=column, hint=f"give its size: {name}=...")

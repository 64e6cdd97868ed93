"""Problems of a rule text: unknown names, factors of two kinds, sizes that no shape tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from shardy_py.errors import Diagnostic
from shardy_py.sharding.einsum.spec import EXCLUSIVE, KINDS, RuleSpec, ellipsis, names_in
from shardy_py.sharding.einsum.text import Dim, excerpt

_MOST_PROBLEMS = 20
"""The number of problems of one rule that are reported."""


def spec_problems(spec: RuleSpec) -> list[Diagnostic]:
    """Return the problems of a spec; unknown sizes only where there are no others."""
    found = list(islice(chain(_name_problems(spec), _kind_problems(spec), _initial_problems(spec)), _MOST_PROBLEMS))
    return found or list(islice(_unknown_sizes(spec), _MOST_PROBLEMS))


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
    """Find names that are not in the rule, sizes that are none, and a factor twice in one tensor."""
    columns: dict[str, int] = {}
    for name, column in (factor for dim in _dims(spec) for factor in dim.factors):
        columns.setdefault(name, column)
    for tensor in spec.tensors:
        if tensor.batch is not None:
            columns.setdefault(ellipsis(tensor.batch), tensor.column)
    given = {"size": [name for name, _ in spec.sizes], **{kind: getattr(spec, kind) for kind in (*KINDS, "order")}}
    for what, names in given.items():
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
    """Return what to write instead of a name that is marked and that no dimension has."""
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

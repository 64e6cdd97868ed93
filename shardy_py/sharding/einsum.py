"""Sharding rules as one line of text: ``i k, k j -> i j``.

The notation is that of JAX's ``SdyShardingRule``. Tensors are separated by commas, dimensions by spaces; a dimension is
a factor, or a compound of factors in parentheses, major first. Factors have names of any length. ``...`` at the start
of a tensor stands for any number of leading dimensions, the same wherever it occurs; ``...1``, ``...2`` are others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from operator import index
from typing import Any

from attrs import evolve, field, frozen

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.sharding.combiner import Combiner, split_words
from shardy_py.sharding.einsum_text import Dim, TensorSpec, excerpt, parse_tensors
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import HasShardableValues, Shape, tensor_shape

KINDS = ("reduction", "need_replication", "permutation", "blocked", "pass_through")
EXCLUSIVE = ("reduction", "need_replication", "permutation", "pass_through")
_MOST_PROBLEMS = 20
"""How many problems of one rule are told."""
Factors = tuple[str, ...]
Sizes = dict[str, int]


@frozen(cache_hash=True)
class RuleSpec:
    """A sharding rule before the shapes are known; a rule function of an op, too.

    Made by `rule`. Sizes come from the shapes when it is bound to them.

    Args:
        text: The rule as it was written.
        operands: The dimensions of each operand.
        results: The dimensions of each result.
        sizes: The sizes that were given, by factor.
        reduction: The factors that are reduced over.
        need_replication: The factors that must be whole on each device.
        permutation: The factors that are moved along.
        blocked: Factors along which shardings do not propagate.
        pass_through: The factors that are said to pass through; others without a mark do so, too.
        combiners: How the reduced factors combine that are not summed.
        initial: The numbers of the operands that a reduction starts from.
    """

    text: str
    operands: tuple[TensorSpec, ...] = field(repr=False)
    results: tuple[TensorSpec, ...] = field(repr=False)
    sizes: tuple[tuple[str, int], ...] = ()
    reduction: Factors = ()
    need_replication: Factors = ()
    permutation: Factors = ()
    blocked: Factors = ()
    pass_through: Factors = ()
    combiners: tuple[tuple[str, Combiner], ...] = ()
    initial: tuple[int, ...] = ()

    def bind(self, operand_shapes: Iterable[Shape], result_shapes: Iterable[Shape]) -> OpShardingRule:
        """Return the rule for the given shapes; () stands for a scalar and for anything that is no tensor.

        Raises:
            RuleError: number, ranks or sizes of the tensors are not those of the rule.
        """
        operands, results = tuple(map(tuple, operand_shapes)), tuple(map(tuple, result_shapes))
        if operands and results:
            return _bind(self, operands, results)
        spec = evolve(self, operands=_if_any(self.operands, operands), results=_if_any(self.results, results))
        return _bind(spec, operands, results)

    def __call__(self, op: HasShardableValues) -> OpShardingRule:
        """Return the rule of an op; so a spec is a rule function.

        Raises:
            RuleError: see `bind`.
        """
        return self.bind(map(tensor_shape, op.operands), map(tensor_shape, op.results))

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Operands, then results."""
        return self.operands + self.results

    @property
    def unmarked(self) -> Factors:
        """The factors that only operands have and no mark speaks of: most likely reductions that are not marked."""
        marked = {name for kind in EXCLUSIVE for name in getattr(self, kind)}
        kept = {name for tensor in self.results for name in _names_in(tensor)}
        found = dict.fromkeys(name for tensor in self.operands for name in _names_in(tensor))
        return tuple(name for name in found if name not in marked and name not in kept)

    def __str__(self) -> str:
        sizes = "".join(f" {name}={size}" for name, size in self.sizes)
        words = {name: combiner.value for name, combiner in self.combiners}
        marks = {kind: getattr(self, kind) for kind in KINDS}
        marks["reduction"] = tuple(f"{name}:{words[name]}" if name in words else name for name in self.reduction)
        kinds = "".join(f" {kind}={{{', '.join(names)}}}" for kind, names in marks.items() if names)
        initial = f" initial={{{', '.join(map(str, self.initial))}}}" if self.initial else ""
        return f"{self.text}{sizes}{kinds}{initial}"


def _names_in(tensor: TensorSpec) -> Iterator[str]:
    """Yield the names in a tensor, an ellipsis among them."""
    if tensor.batch is not None:
        yield ellipsis(tensor.batch)
    for dim in tensor.dims:
        yield from dim.names


def ellipsis(batch: int) -> str:
    """Return an ellipsis as it is written.

    >>> ellipsis(0), ellipsis(2)
    ('...', '...2')
    """
    return f"...{batch or ''}"


def _if_any(tensors: tuple[TensorSpec, ...], shapes: tuple[Shape, ...]) -> tuple[TensorSpec, ...]:
    """Return no tensor for a side of the arrow where nothing is written, if the op has none there."""
    is_empty = len(tensors) == 1 and tensors[0].batch is None and not tensors[0].dims
    return () if is_empty and not shapes else tensors


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
        sizes: Sizes of factors, as far as the shapes do not tell them.

    An ellipsis is marked as a whole: ``reduction="..."``.

    Raises:
        RuleError: the text is not a rule, or names do not fit it.

    >>> str(rule("i k, k j -> i j", reduction="k").bind([(8, 32), (32, 16)], [(8, 16)]))
    '<([i, j], [j, k])->([i, k]) {i=8, j=32, k=16} reduction={j}>'
    >>> str(rule("rows cols -> rows", reduction="cols:max").bind([(8, 4)], [(8,)]))
    '<([i, j])->([i]) {i=8, j=4} reduction=max{j}>'
    """
    reduced = split_words(reduction)
    whole = (*_names(need_replication), *(name for name, combiner in reduced if combiner is None))
    marks = (
        tuple(name for name, combiner in reduced if combiner is not None),
        whole,
        _names(permutation),
        _names(blocked),
        _names(pass_through),
    )
    words = tuple((name, combiner) for name, combiner in reduced if combiner not in (None, Combiner.ADD))
    numbers = (initial,) if isinstance(initial, int) else tuple(sorted(set(initial)))
    return _make_rule(text, tuple((name, _size(name, size)) for name, size in sizes.items()), marks, words, numbers)


def _names(given: str | Iterable[str]) -> Factors:
    return tuple(given.replace(",", " ").split()) if isinstance(given, str) else tuple(given)


def _size(name: str, size: Any) -> int:
    try:
        return index(size)
    except TypeError:
        raise RuleError(Diagnostic("factor-size", f"the size of factor {name} is {size!r}, not an integer")) from None


@lru_cache(maxsize=1024)
def _make_rule(
    text: str,
    sizes: tuple[tuple[str, int], ...],
    marks: tuple[Factors, ...],
    combiners: tuple[tuple[str, Combiner], ...],
    initial: tuple[int, ...],
) -> RuleSpec:
    operands, results = parse_tensors(text)
    named: dict[str, Any] = dict(zip(KINDS, marks, strict=True))
    spec = evolve(RuleSpec(text, operands, results, sizes, combiners=combiners, initial=initial), **named)
    found = list(islice(chain(_name_problems(spec), _kind_problems(spec), _initial_problems(spec)), _MOST_PROBLEMS))
    problems = found or list(islice(_unknown_sizes(spec), _MOST_PROBLEMS))
    if problems:
        raise RuleError(*problems)
    return spec


def _initial_problems(spec: RuleSpec) -> Iterator[Diagnostic]:
    """Find operands that do not exist, or have a reduced factor, among those that a reduction starts from."""
    for number in spec.initial:
        if not isinstance(number, int) or not 0 <= number < len(spec.operands):
            message = f"initial: the rule has no operand {number!r}"
            yield _problem(spec, "initial-operand", message, hint=f"it has {len(spec.operands)}, numbered from 0")
            continue
        for name in _names_in(spec.operands[number]):
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
    given = {"size": [name for name, _ in spec.sizes], **{kind: getattr(spec, kind) for kind in KINDS}}
    for what, names in given.items():
        for name in names:
            if name not in columns:
                hint = f"the factors are {', '.join(columns)}"
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


@lru_cache(maxsize=4096)
def _bind(spec: RuleSpec, operand_shapes: tuple[Shape, ...], result_shapes: tuple[Shape, ...]) -> OpShardingRule:
    binding = _Binding(spec, operand_shapes, result_shapes)
    tensors = binding.expand()
    sizes = binding.find_sizes(tensors)
    indices: dict[str, int] = {}
    mappings = []
    for dims in tensors:
        kept = [_without_ones(dim, sizes) for dim in dims]
        mappings.append(tuple(tuple(indices.setdefault(name, len(indices)) for name in names) for names in kept))
    reduction, need_replication, permutation, blocked = (
        tuple(sorted(index for name in getattr(spec, kind) for index in _indices(name, indices))) for kind in KINDS[:4]
    )
    combiners = ((index, combiner) for name, combiner in spec.combiners for index in _indices(name, indices))
    count = len(spec.operands)
    return OpShardingRule(
        factor_sizes=tuple(sizes[name] for name in indices),
        operand_mappings=tuple(mappings[:count]),
        result_mappings=tuple(mappings[count:]),
        reduction_factors=reduction,
        need_replication_factors=need_replication,
        permutation_factors=permutation,
        blocked_propagation_factors=blocked,
        combiners=tuple(sorted(combiners, key=lambda item: item[0])),
        initial_operands=spec.initial,
    )


def _indices(name: str, indices: dict[str, int]) -> list[int]:
    """Return the factors that a name stands for: none of size 1 in a compound, all dimensions of an ellipsis."""
    if not name.startswith("..."):
        return [indices[name]] if name in indices else []
    start = f"...{int(name[3:] or 0)}."
    return [index for factor, index in indices.items() if factor.startswith(start)]


def _without_ones(dim: Dim, sizes: Sizes) -> list[str]:
    """Return the factors of a dimension but those of size 1, which a compound cannot have."""
    return [name for name in dim.names if sizes[name] != 1] or [dim.names[0]]


class _Binding:
    """A spec with the shapes it is bound to."""

    def __init__(self, spec: RuleSpec, operand_shapes: tuple[Shape, ...], result_shapes: tuple[Shape, ...]) -> None:
        self.spec = spec
        self.shapes = operand_shapes + result_shapes
        self.shown = f"operands {_shapes(operand_shapes)}; results {_shapes(result_shapes)}"
        self.places = [*_places("operand", operand_shapes), *_places("result", result_shapes)]
        for what, tensors, shapes in (
            ("operand", spec.operands, operand_shapes),
            ("result", spec.results, result_shapes),
        ):
            if len(tensors) != len(shapes):
                raise self.error("rule-arity", f"the rule has {_count(len(tensors), what)}, the op {len(shapes)}")

    def error(self, code: str, message: str, *, column: int = -1, hint: str = "") -> RuleError:
        """Return an error that shows rule, place and shapes."""
        shown = f"{excerpt(self.spec.text, column)}\n{self.shown}"
        return RuleError(Diagnostic(code, message, hint=hint, excerpt=shown))

    def expand(self) -> list[tuple[Dim, ...]]:
        """Return the dimensions of each tensor, with those that ``...`` stands for."""
        ranks: dict[int, int] = {}
        tensors = []
        for tensor, shape, place in zip(self.spec.tensors, self.shapes, self.places, strict=True):
            extra = len(shape) - len(tensor.dims)
            if extra < 0 or (extra and tensor.batch is None):
                least = "at least " if tensor.batch is not None else ""
                message = f"{place} has rank {len(shape)}, in the rule {least}{len(tensor.dims)}"
                raise self.error("rule-rank", message, column=tensor.column)
            if tensor.batch is None:
                tensors.append(tensor.dims)
                continue
            if ranks.setdefault(tensor.batch, extra) != extra:
                message = f"the ellipsis stands for {ranks[tensor.batch]} and, in {place}, for {extra} dimensions"
                hint = "number ellipses that are not the same: ...1, ...2"
                raise self.error("rule-rank", message, column=tensor.column, hint=hint)
            # Not a name a factor could have.
            batch = tuple(Dim(((f"...{tensor.batch}.{dim}", tensor.column),)) for dim in range(extra))
            tensors.append(batch + tensor.dims)
        return tensors

    def find_sizes(self, tensors: list[tuple[Dim, ...]]) -> Sizes:
        """Return the size of every factor."""
        sizes = dict(self.spec.sizes)
        self._whole_dims(tensors, sizes)
        compounds = [
            (dim, size, place)
            for dims, shape, place in zip(tensors, self.shapes, self.places, strict=True)
            for dim, size in zip(dims, shape, strict=True)
            if len(dim.factors) > 1
        ]
        waiting = compounds
        while waiting:
            waiting = [item for item in waiting if not self._solve(item[0], item[1], item[2], sizes)]
        for dim, size, place in compounds:
            self._check_product(dim, size, place, sizes)
        return sizes

    def _whole_dims(self, tensors: list[tuple[Dim, ...]], sizes: Sizes) -> None:
        given = dict(self.spec.sizes)
        first: dict[str, str] = {}
        may_differ = {*self.spec.need_replication, *self.spec.permutation, *self.spec.blocked}
        may_differ |= {f"...{int(name[3:] or 0)}" for name in may_differ if name.startswith("...")}
        for dims, shape, place in zip(tensors, self.shapes, self.places, strict=True):
            for dim, size in zip(dims, shape, strict=True):
                if len(dim.factors) > 1:
                    continue
                ((name, column),) = dim.factors
                known = sizes.setdefault(name, size)
                where = first.setdefault(name, "as given" if name in given else f"in {place}")
                if known == size:
                    continue
                if may_differ.isdisjoint((name, name.rpartition(".")[0])):
                    shown = "a dimension of ..." if name.startswith("...") else f"factor {name}"
                    message = f"{shown} has size {known} {where}, but {size} in {place}"
                    raise self.error("rule-size", message, column=column, hint=_DIFFERENT)
                sizes[name] = min(known, size)

    def _solve(self, dim: Dim, size: int, place: str, sizes: Sizes) -> bool:
        """Find the size of the one unknown factor of a compound; return False where there are more yet."""
        unknown = [(name, column) for name, column in dim.factors if name not in sizes]
        if len(unknown) > 1:
            return False
        for name, column in unknown:
            rest = _product(sizes[other] for other in dim.names if other != name)
            if rest == 0 or size % rest:
                message = (
                    f"a dimension of {place} has size {size}, which {rest} does not divide: factor {name} has no size"
                )
                raise self.error("rule-size", message, column=column)
            sizes[name] = size // rest
        return True

    def _check_product(self, dim: Dim, size: int, place: str, sizes: Sizes) -> None:
        if _product(sizes[name] for name in dim.names) != size:
            shown = " * ".join(f"{name}={sizes[name]}" for name in dim.names)
            message = f"a dimension of {place} has size {size}, its factors {shown}"
            raise self.error("rule-size", message, column=dim.factors[0][1])


_DIFFERENT = "use two factors, or say that it needs replication, is permuted or blocked"


def _product(sizes: Iterable[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _shapes(shapes: tuple[Shape, ...]) -> str:
    return ", ".join("x".join(map(str, shape)) or "scalar" for shape in shapes) or "none"


def _places(what: str, shapes: tuple[Any, ...]) -> list[str]:
    return [what] if len(shapes) == 1 else [f"{what} {number}" for number in range(len(shapes))]


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"

"""Reductions in their canonical form: of rows or of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import prod

from attrs import field

from shardy_py.indexing import Variable, VariableKind, op_maps
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.fusion.combiners import starts_of
from shardy_py.kernels.fusion.fusion import Fusion, bits_of, element_type_of
from shardy_py.values import frozen

_MAX_RACE_FREE_MINOR = 16384
_MAX_RACE_FREE_MAJOR = 8
_MAX_RACE_FREE_COLUMN = 4096
_SHORT_COLUMNS = ((32, None), (64, 32), (128, 8), (256, 3))


@frozen
class CanonicalReduction:
    """A reduction of a tensor of three dimensions.

    Args:
        is_row: Whether dimensions 0 and 2 are reduced and 1 stays; otherwise 1 is reduced and the others stay.
        dims: The sizes.
    """

    is_row: bool
    dims: tuple[int, int, int]

    @property
    def text(self) -> str:
        """The reduced dimensions in words, and the sizes of all by their names."""
        names = "major, kept and reduced" if self.is_row else "major, reduced and kept"
        return f"{'rows' if self.is_row else 'columns'} of {' x '.join(map(str, self.dims))}, {names} dimensions"

    @property
    def is_race_free(self) -> bool:
        """True if one block reduces all elements of a result."""
        major, middle, minor = self.dims
        if self.is_row:
            return minor <= _MAX_RACE_FREE_MINOR and major <= _MAX_RACE_FREE_MAJOR
        return middle <= _MAX_RACE_FREE_COLUMN

    @property
    def is_real(self) -> bool:
        """True if the reduction emitter takes it."""
        _, middle, minor = self.dims
        if self.is_row:
            return minor >= 32 or 32 % minor == 0
        return not any(middle < size and (columns is None or minor < columns) for size, columns in _SHORT_COLUMNS)


def reduced_dims(fusion: Fusion, op: Op) -> tuple[int, ...] | None:
    """Return the dimensions of the operands that an op reduces, or None where it does not reduce whole dimensions."""
    facts = fusion.facts[op.id]
    if not facts.is_reduction or not op.operands:
        return None
    map_ = facts.maps[0]
    if map_.is_undefined:
        return None
    dims = tuple(
        number
        for number, result in enumerate(map_.results)
        if isinstance(result, Variable) and result.kind is VariableKind.RANGE
    )
    full_reduction = op_maps.reduce(facts.result_shapes[0], facts.operand_shapes[0], dims)
    return dims if all(other == full_reduction for other in facts.maps[: len(op.results)]) else None


def canonical(shape: Sequence[int], reduced: Sequence[int]) -> CanonicalReduction | None:
    """Return the canonical form of a reduction, or None where it has none.

    >>> canonical((2, 3, 4), (1,))
    CanonicalReduction(is_row=False, dims=(2, 3, 4))
    >>> canonical((2, 3, 4), (0, 2))
    CanonicalReduction(is_row=True, dims=(2, 3, 4))
    """
    kept_dims = [number for number in range(len(shape)) if number not in reduced]
    if not kept_dims:
        return CanonicalReduction(True, (1, 1, prod(shape)))
    if _is_consecutive(kept_dims):
        before, middle, after = _thirds(shape, kept_dims)
        if middle == 1:
            return CanonicalReduction(True, (1, 1, before * after))
        if after == 1:
            return CanonicalReduction(False, (1, before, middle))
        return CanonicalReduction(True, (before, middle, after))
    if _is_consecutive(reduced):
        before, middle, after = _thirds(shape, reduced)
        if after == 1:
            return CanonicalReduction(True, (1, before, middle))
        return CanonicalReduction(False, (before, middle, after))
    return None


def _is_consecutive(numbers: Sequence[int]) -> bool:
    return all(after == before + 1 for before, after in pairwise(sorted(numbers)))


def _thirds(shape: Sequence[int], middle: Sequence[int]) -> tuple[int, int, int]:
    first, last = min(middle), max(middle) + 1
    return prod(shape[:first]), prod(shape[first:last]), prod(shape[last:])


def canonical_of(fusion: Fusion, op: Op) -> CanonicalReduction | None:
    """Return the canonical form of the reduction that an op is, or None.

    Rows and columns are those of row-major tensors; others have none.
    """
    if not all(fusion.is_row_major(value) for value in (*op.operands, *op.results)):
        return None
    reduced = reduced_dims(fusion, op)
    return None if reduced is None else canonical(fusion.facts[op.id].operand_shapes[0], reduced)


def real_reduction(fusion: Fusion, root: Op | None, hero: Op | None) -> CanonicalReduction | None:
    """Return the canonical form of a hero that the reduction emitter takes, or None.

    Its threads share the elements of a result, so that these may be combined in groups and in any order.
    """
    if hero is None:
        return None
    form = canonical_of(fusion, hero)
    if form is None or not form.is_real or starts_of(fusion, hero) is None:
        return None
    return form if root is hero or form.is_race_free else None


@frozen
class ElementBits:
    """The bits of the elements that a reduction reads.

    Args:
        smallest: Those of the smallest.
        largest: Those of the largest.
        has_complex: Whether one is complex.
    """

    smallest: int
    largest: int
    has_complex: bool


@frozen(eq=False, slots=False)
class RootReductions:
    """The reductions from which roots are computed; they have one form.

    Args:
        fusion: The fusion.
        canonical: The canonical form.
        heroes: By the number of a root its reduction; other roots have as many elements as the operands.
    """

    fusion: Fusion = field(repr=False)
    canonical: CanonicalReduction
    heroes: Mapping[int, Op]

    @cached_property
    def bits(self) -> ElementBits:
        """The bits of the elements of the parameters that are read, or of what is reduced where none is."""
        fusion = self.fusion
        types = [element_type_of(value) for value in fusion.parameters if fusion.users.get(value.id)]
        types = types or [element_type_of(hero.operands[0]) for hero in self.heroes.values()]
        bits = [bits_of(type_) for type_ in types]
        return ElementBits(min(bits), max(bits), any(type_.startswith("complex") for type_ in types))

    @property
    def accumulator_bytes(self) -> int:
        """The bytes of one partial result of every reduction."""
        results = [value for hero in set(self.heroes.values()) for value in hero.results]
        return sum(-(-bits_of(element_type_of(value)) // 8) for value in results)

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the roots in groups with a reduction each; roots that share an op are in one."""
        above = [_read_by(self.fusion, root) for root in self.fusion.roots]
        groups: list[set[int]] = []
        for number, ids in enumerate(above):
            touching = [group for group in groups if any(ids & above[other] for other in group)]
            merged = {number}.union(*touching)
            groups = [group for group in groups if group not in touching] + [merged]
        with_reduction = [group for group in groups if not group.isdisjoint(self.heroes)]
        # Roots without a reduction go with the first group.
        with_reduction[0].update(*(group for group in groups if group.isdisjoint(self.heroes)))
        return tuple(tuple(sorted(group)) for group in sorted(with_reduction, key=min))


def root_reductions(fusion: Fusion, roots: Sequence[Op | None], heroes: Sequence[Op | None]) -> RootReductions | None:
    """Return the reductions among the heroes that the reduction emitter takes; None where it takes none.

    One kernel computes them all: where the forms differ, or a root beside them has other elements than they read, it
    takes none.
    """
    pairs = enumerate(zip(roots, heroes, strict=True))
    forms = {number: form for number, (root, hero) in pairs if (form := real_reduction(fusion, root, hero)) is not None}
    if len(set(forms.values())) != 1:
        return None
    first = min(forms)
    hero_of_root = {number: hero for number, hero in enumerate(heroes) if hero is not None and number in forms}
    reduced = fusion.elements(hero_of_root[first].operands[0])
    if any(elements != reduced for number, elements in enumerate(fusion.root_elements) if number not in forms):
        return None
    return RootReductions(fusion, forms[first], hero_of_root)


def _read_by(fusion: Fusion, root: Value) -> set[int]:
    """Return the ids of the values that a root is computed from, without scalars and what follows from scalars only."""
    op = fusion.producer(root)
    if op is None:
        return set()
    ids = {value.id for value in op.results}
    pending = list(op.operands)
    while pending:
        value = pending.pop()
        if value.id in ids or fusion.elements(value) == 1:
            continue
        producer = fusion.producer(value)
        if producer is not None and all(fusion.elements(operand) == 1 for operand in producer.operands):
            continue
        ids.add(value.id)
        pending += () if producer is None else producer.operands
    return ids

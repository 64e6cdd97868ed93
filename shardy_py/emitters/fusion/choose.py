"""The choice of an emitter for a fusion."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from shardy_py.emitters.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.emitters.fusion.heroes import hero_of
from shardy_py.emitters.fusion.reductions import CanonicalReduction, canonical_of
from shardy_py.emitters.fusion.transposes import Transpose, transpose_of
from shardy_py.indexing import IndexingMap, compose, op_maps
from shardy_py.ir.graph import Op

MAX_CONCATENATED = 4


class EmitterKind(Enum):
    """The emitters, by the names that XLA gives them."""

    LOOP = "loop"
    TRANSPOSE = "transpose"
    REDUCTION = "reduction"
    CONCATENATE = "concatenate"
    IN_PLACE_DYNAMIC_UPDATE_SLICE = "in_place_dynamic_update_slice"
    SCATTER = "scatter"


@frozen(eq=False)
class Choice:
    """The emitter of a fusion and why.

    Args:
        kind: The emitter.
        reason: Why, in the terms of the rules.
        heroes: The hero of every root; None for a root that is a parameter.
        reduction: The canonical form of the reductions, for that emitter.
        transpose: The form of the transposes, for that one.
    """

    kind: EmitterKind
    reason: str
    heroes: tuple[Op | None, ...]
    reduction: CanonicalReduction | None = None
    transpose: Transpose | None = None


def choose(fusion: Fusion) -> Choice:
    """Return the emitter for a fusion."""
    roots = [fusion.producer(root) for root in fusion.roots]
    heroes = tuple(None if root is None else hero_of(fusion, root) for root in roots)
    reduction = _common_reduction(fusion, heroes)
    if reduction is not None:
        return Choice(EmitterKind.REDUCTION, f"a root's hero is a reduction of {reduction}", heroes, reduction)
    transpose = _common_transpose(fusion, heroes)
    if transpose is not None:
        return Choice(EmitterKind.TRANSPOSE, f"a root's hero is a tiled {transpose}", heroes, transpose=transpose)
    if all(root is not None and in_place_update(fusion, root) is not None for root in roots):
        reason = "every root updates a part of a parameter in place"
        return Choice(EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE, reason, heroes)
    if len(roots) > 1:
        return Choice(EmitterKind.LOOP, "there are several roots", heroes)
    if roots[0] is not None and fusion.is_scatter(roots[0]):
        return Choice(EmitterKind.SCATTER, "the root is a scatter", heroes)
    hero = heroes[0]
    if hero is not None and fusion.is_concatenation(hero) and len(hero.operands) <= MAX_CONCATENATED:
        return Choice(EmitterKind.CONCATENATE, f"the hero joins at most {MAX_CONCATENATED} operands", heroes)
    return Choice(EmitterKind.LOOP, "nothing needs another emitter", heroes)


def real_reduction(fusion: Fusion, root: Op | None, hero: Op | None) -> CanonicalReduction | None:
    """Return the canonical form of a hero that the reduction emitter takes, or None."""
    if hero is None:
        return None
    form = canonical_of(fusion, hero)
    if form is None or not form.is_real:
        return None
    return form if root is hero or form.is_race_free else None


def _common_reduction(fusion: Fusion, heroes: tuple[Op | None, ...]) -> CanonicalReduction | None:
    roots = [fusion.producer(root) for root in fusion.roots]
    forms = [real_reduction(fusion, root, hero) for root, hero in zip(roots, heroes, strict=True)]
    place = next((number for number, form in enumerate(forms) if form is not None), None)
    if place is None:
        return None
    first, hero = forms[place], heroes[place]
    assert hero is not None
    elements = fusion.elements(hero.operands[0])
    for root, form in zip(fusion.roots, forms, strict=True):
        if form is not None and form != first:
            return None
        if form is None and fusion.elements(root) != elements:
            return None
    return first


def _common_transpose(fusion: Fusion, heroes: tuple[Op | None, ...]) -> Transpose | None:
    forms = [None if hero is None else transpose_of(fusion, hero) for hero in heroes]
    tiled = [form for form in forms if form is not None and form.is_tiled]
    if not tiled:
        return None
    first = tiled[0]
    elements = fusion.elements(fusion.roots[[*forms].index(first)])
    for root, form in zip(fusion.roots, forms, strict=True):
        is_same = form is not None and form.is_tiled
        if is_same and form is not None and (form.shape, form.permutation) != (first.shape, first.permutation):
            return None
        if not is_same and fusion.elements(root) != elements:
            return None
    return first


def in_place_update(fusion: Fusion, root: Op) -> Op | None:
    """Return the dynamic update that a root is, if it can write into the buffer of its operand; otherwise None.

    The operand has to be a parameter that nothing else reads at other indices.
    """
    op: Op | None = root
    while op is not None and fusion.is_bitcast(op):
        op = fusion.producer(op.operands[0])
    if op is None or not fusion.is_dynamic_update(op):
        return None
    source = op.operands[0]
    while (producer := fusion.producer(source)) is not None and fusion.is_bitcast(producer):
        source = producer.operands[0]
    if source.id not in fusion.parameter_ids or element_type_of(source) != element_type_of(root.results[0]):
        return None
    return op if _reads_only_what_it_writes(fusion, op, source.id) else None


def _reads_only_what_it_writes(fusion: Fusion, update: Op, parameter: int) -> bool:
    """Return whether the update and its starts read of a parameter at most the element that they overwrite."""
    shape = shape_of(update.operands[1])
    written = op_maps.dynamic_slice(shape, shape_of(update.operands[0]))
    pending = [(update.operands[1], op_maps.identity(shape))]
    pending += [(start, op_maps.scalar(shape)) for start in update.operands[2:]]
    seen: set[tuple[int, IndexingMap]] = set()
    while pending:
        value, read = pending.pop()
        if value.id == parameter:
            if read != written:
                return False
            continue
        producer = fusion.producer(value)
        if producer is None or (value.id, read) in seen:
            continue
        seen.add((value.id, read))
        maps = fusion.maps(producer)
        pending += [(operand, compose(read, map_)) for operand, map_ in zip(producer.operands, maps, strict=True)]
    return True

"""The choice of an emitter for a fusion."""

from __future__ import annotations

from enum import Enum

from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.emission import KernelEmitter
from shardy_py.kernels.fusion.combiners import starts_of
from shardy_py.kernels.fusion.fusion import Fusion
from shardy_py.kernels.fusion.heroes import hero_of
from shardy_py.kernels.fusion.in_place import in_place_updates
from shardy_py.kernels.fusion.reductions import CanonicalReduction, canonical_of
from shardy_py.kernels.fusion.transposes import Transpose, transpose_of
from shardy_py.values import frozen

MAX_CONCATENATED = 4


class EmitterKind(Enum):
    """The emitters, by the names that XLA gives them, and those of plugins."""

    LOOP = "loop"
    TRANSPOSE = "transpose"
    REDUCTION = "reduction"
    CONCATENATE = "concatenate"
    IN_PLACE_DYNAMIC_UPDATE_SLICE = "in_place_dynamic_update_slice"
    SCATTER = "scatter"
    PLUGIN = "plugin"


@frozen(eq=False)
class Choice:
    """The emitter of a fusion and why.

    Args:
        kind: The emitter.
        reason: Why, in the terms of the rules.
        heroes: The hero of every root; None for a root that is a parameter.
        reduction: The canonical form of the reductions, for that emitter.
        transpose: The form of the transposes, for that one.
        emitter: The emitter of a plugin.
    """

    kind: EmitterKind
    reason: str
    heroes: tuple[Op | None, ...]
    reduction: CanonicalReduction | None = None
    transpose: Transpose | None = None
    emitter: KernelEmitter | None = None

    @property
    def name(self) -> str:
        """The name of the emitter."""
        return self.kind.value if self.emitter is None else self.emitter.name


def choose(fusion: Fusion) -> Choice:
    """Return the emitter for a fusion."""
    roots = [fusion.producer(root) for root in fusion.roots]
    heroes = tuple(None if root is None else hero_of(fusion, root) for root in roots)
    for emitter in fusion.registry.emitters.values():
        reason = emitter.accepts(fusion)
        if reason:
            return Choice(EmitterKind.PLUGIN, reason, heroes, emitter=emitter)
    reduction = _common_reduction(fusion, heroes)
    if reduction is not None:
        # Roots that are no reductions are computed beside them, by functions of their own.
        heroes = tuple(
            root if real_reduction(fusion, root, hero) is None else hero
            for root, hero in zip(roots, heroes, strict=True)
        )
        return Choice(EmitterKind.REDUCTION, f"a root's hero is a reduction of {reduction}", heroes, reduction)
    transpose = _common_transpose(fusion, heroes)
    if transpose is not None:
        return Choice(EmitterKind.TRANSPOSE, f"a root's hero is a tiled {transpose}", heroes, transpose=transpose)
    if updates := in_place_updates(fusion):
        reason = "every root updates a part of a parameter in place"
        return Choice(EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE, reason, updates)
    if len(roots) > 1:
        return Choice(EmitterKind.LOOP, "there are several roots", heroes)
    if roots[0] is not None and fusion.is_scatter(roots[0]):
        return Choice(EmitterKind.SCATTER, "the root is a scatter", heroes)
    hero = heroes[0]
    if hero is not None and fusion.is_concatenation(hero) and len(hero.operands) <= MAX_CONCATENATED:
        return Choice(EmitterKind.CONCATENATE, f"the hero joins at most {MAX_CONCATENATED} operands", heroes)
    return Choice(EmitterKind.LOOP, "nothing needs another emitter", heroes)


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

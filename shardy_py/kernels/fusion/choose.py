"""The choice of an emitter for a fusion, by its heroes, and the parameters whose memory its results share."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import gcd

from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.emission import KernelEmitter
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.bodies import joined_lengths
from shardy_py.kernels.fusion.fusion import Fusion, IterationSpace
from shardy_py.kernels.fusion.in_place import in_place_updates, updated_parameter
from shardy_py.kernels.fusion.reductions import RootReductions, root_reductions
from shardy_py.kernels.fusion.scatters import RootScatter, root_scatter
from shardy_py.kernels.fusion.transposes import RootTransposes, is_tiled_transpose, root_transposes
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
        form: What the emitter is for: the transposes, reductions or scatter from which the roots are computed, else the
            elements over which threads are spread; the emitter itself where it is a plugin's.
    """

    kind: EmitterKind
    reason: str
    heroes: tuple[Op | None, ...]
    form: RootTransposes | RootReductions | RootScatter | IterationSpace | KernelEmitter

    @property
    def name(self) -> str:
        """The name of the emitter."""
        match self.form:
            case RootTransposes() | RootReductions() | RootScatter() | IterationSpace():
                return self.kind.value
            case emitter:
                return emitter.name


def choose(fusion: Fusion, device: DeviceSpec) -> Choice:
    """Return the emitter for a fusion on a device.

    Raises:
        UnsupportedError: the root is a scatter that cannot update the memory of its operand.
    """
    roots = [fusion.producer(root) for root in fusion.roots]
    heroes = tuple(None if root is None else hero_of(fusion, root) for root in roots)
    for emitter in fusion.registry.emitters.values():
        reason = emitter.accepts(fusion)
        if reason:
            return Choice(EmitterKind.PLUGIN, reason, heroes, emitter)
    reductions = root_reductions(fusion, roots, heroes)
    if reductions is not None:
        # Roots that are no reductions are computed beside them, by functions of their own.
        heroes = tuple(reductions.heroes.get(number, root) for number, root in enumerate(roots))
        reason = f"a root's hero is a reduction of {reductions.canonical.text}"
        return Choice(EmitterKind.REDUCTION, reason, heroes, reductions)
    transposes = root_transposes(fusion, heroes)
    needed = 0 if transposes is None else transposes.tile_bytes()
    if transposes is not None and needed <= device.shared_bytes:
        reason = f"a root's hero is a transpose of {transposes.form.bits} bits in tiles"
        return Choice(EmitterKind.TRANSPOSE, reason, heroes, transposes)
    if transposes is None and roots[0] is not None and fusion.facts[roots[0].id].is_scatter:
        return Choice(EmitterKind.SCATTER, "the root is a scatter", heroes, root_scatter(fusion))
    kind, reason = EmitterKind.LOOP, "nothing needs another emitter"
    over, divisible, hero = fusion.roots[0], 0, heroes[0]
    if transposes is not None:
        tiles = f"the tiles of its transposes need {needed} bytes of shared memory"
        reason = f"{tiles}, more than the {device.shared_bytes} of {device.name}"
    elif updates := in_place_updates(fusion):
        kind, reason = EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE, "every root updates a part of a parameter in place"
        over, heroes = updates[0].operands[1], updates
    elif len(roots) > 1:
        reason = "there are several roots"
    elif hero is not None and fusion.facts[hero.id].is_concatenation and len(hero.operands) <= MAX_CONCATENATED:
        kind, reason = EmitterKind.CONCATENATE, f"the hero joins at most {MAX_CONCATENATED} operands"
        lengths = joined_lengths(hero)
        # No thread's elements reach over the end of an operand.
        over, divisible = hero.operands[lengths.index(max(lengths))], gcd(*lengths)
    is_expensive = kind is EmitterKind.LOOP and any(fusion.facts[op.id].is_expensive for op in fusion.ops)
    space = fusion.space_of(over, divisible=divisible, is_expensive=is_expensive)
    return Choice(kind, reason, heroes, space)


MAX_OPERANDS = 3


def hero_of(fusion: Fusion, root: Op) -> Op:
    """Return the hero of a root.

    From the root up through ops with one operand that keep elements apart, then the only tiled transpose, or else the
    only concatenate, that is reached through such ops with few operands; else a reduction right there, or the root.
    """
    start = root
    while is_intermediate(fusion, start, max_operands=1):
        producer = fusion.producer(start.operands[0])
        if producer is None:
            break
        start = producer

    for is_kind in (is_tiled_transpose, _is_concatenation):
        hero = _only(fusion, start, is_kind)
        if hero is not None:
            return hero
    return start if fusion.facts[start.id].is_reduction else root


def _is_concatenation(fusion: Fusion, op: Op) -> bool:
    return fusion.facts[op.id].is_concatenation


def is_intermediate(fusion: Fusion, op: Op, *, max_operands: int = MAX_OPERANDS) -> bool:
    """Return whether an op keeps elements apart and has few operands."""
    if not op.operands or len(op.operands) > max_operands:
        return False
    facts = fusion.facts[op.id]
    return facts.is_elementwise or facts.is_bitcast


def _only(fusion: Fusion, start: Op, is_kind: Callable[[Fusion, Op], bool]) -> Op | None:
    """Return the only op of a kind among the producers of an op, if only intermediate ops lie below it."""
    matches: dict[int, Op] = {}
    seen: set[int] = set()
    pending = [start]
    while pending:
        op = pending.pop(0)
        if op.id in seen:
            continue
        seen.add(op.id)
        if is_kind(fusion, op):
            matches[op.id] = op
        elif is_intermediate(fusion, op):
            pending += [producer for value in op.operands if (producer := fusion.producer(value)) is not None]
    if len(matches) != 1:
        return None
    (only,) = matches.values()
    return only if _leads_through_intermediates(fusion, only) else None


def _leads_through_intermediates(fusion: Fusion, op: Op) -> bool:
    """Return whether all that is computed from an op are intermediate ops."""
    seen: set[int] = set()
    pending: list[Value] = list(op.results)
    while pending:
        for user in fusion.users.get(pending.pop().id, ()):
            if user.id in seen:
                continue
            seen.add(user.id)
            if not is_intermediate(fusion, user):
                return False
            pending += user.results
    return True


def aliases_of(fusion: Fusion, choice: Choice) -> tuple[int | None, ...]:
    """Return for every root the number of the parameter whose memory it shares, or None."""
    if isinstance(choice.form, RootScatter):
        op = choice.form.op
        return tuple(
            fusion.parameters.index(fusion.updated(op.operands[op.results.index(root)])) for root in fusion.roots
        )
    if choice.kind is not EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE:
        return (None,) * len(fusion.roots)
    sources = [updated_parameter(fusion, update) for update in choice.heroes if update is not None]
    return tuple(fusion.parameters.index(source) for source in sources)


def slices_of(fusion: Fusion, choice: Choice) -> tuple[int, ...]:
    """Return the number of the buffer of every parameter, then of every root."""
    count = len(fusion.parameters)
    slices = list(range(count))
    following = count
    for alias in aliases_of(fusion, choice):
        slices.append(following if alias is None else alias)
        following += alias is None
    return tuple(slices)

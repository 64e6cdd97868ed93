"""Costs of bringing a value from the op that makes it to all its users, in each mode of these."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

from attrs import evolve, field

from shardy_py.ir.graph.op_names import ALL_GATHER, ALL_REDUCE
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.local.communication.axis_group import AxisGroup, UnfitAxes
from shardy_py.local.communication.choices import ModeChoices
from shardy_py.local.communication.mode_choice import SHARDED, WHOLE, Leg, ModeChoice
from shardy_py.local.communication.moves import (
    all_reduce_bytes,
    collective_bytes,
    is_one_reduce_scatter,
    reshard_bytes,
)
from shardy_py.local.communication.routes import Route
from shardy_py.local.early_gathers import cheaper_producer
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.combiner import parse_reduction_op
from shardy_py.sharding.tensor import ReductionOp, TensorSharding
from shardy_py.support.identity import identity
from shardy_py.values import define, frozen

if TYPE_CHECKING:
    from shardy_py.local.communication.partial_choices import PartialChoices

ModeOf = Callable[[ModeChoice], int]
_IMPOSSIBLE = 1e30


@frozen(eq=False)
class Shipment:
    """The way of a value to its users.

    Args:
        cost: The bytes that a device sends for one run of it.
        source: The sharding that the value has.
        summed: The axes along which partial results are combined first.
        through: A sharding that it gets before all others; None where it is brought to each directly.
        is_collected: Whether users whose local form sends what it needs take the value as it is.
    """

    cost: float
    source: TensorSharding
    summed: tuple[AxisRef, ...] = ()
    through: TensorSharding | None = None
    is_collected: bool = False


Shipments = dict[Hashable, dict[tuple[int, ...], Shipment]]


@define(eq=False)
class Delivery:
    """A value with the op that makes it and its users.

    Attributes:
        value: The value.
        producer: What makes it.
        routes: Its ways to its users now.
        users: The choices of these users, in the same order.
        group: The axes.
        block: The block in which collectives for it would stand.
        runs: How often that runs.
        sent: The bytes that are sent for it now.
        shipments: The known ways of all values along the axes, by what they follow from, and by modes.
    """

    value: Value
    producer: ModeChoice
    routes: Sequence[Route]
    users: Sequence[ModeChoice]
    group: AxisGroup
    block: Block
    runs: float
    sent: float
    shipments: Shipments = field(factory=dict)
    _known: dict[tuple[int, ...], Shipment] = field(init=False)
    """By the modes of the producer and the users."""
    _flexible: list[ModeChoice] | None = field(default=None, init=False)
    _legs: list[Leg] = field(init=False)
    _sources: tuple[TensorSharding, TensorSharding] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._legs = [Leg.of(route, user, self._closed) for route, user in zip(self.routes, self.users, strict=True)]
        first, second = self.producer.value_modes[self.value.id]
        self._sources = self._closed(first), self._closed(second)
        self._known = self.shipments.setdefault(self._key(), {})

    def _key(self) -> Hashable:
        """Return what the ways to the users follow from; the group keeps the shardings alive."""
        ends = tuple((*map(identity, leg.targets), leg.collected) for leg in self._legs)
        sums = self.routes[0].summed_axes, self.producer.partial, self.producer.current
        return self.value.type, *map(identity, self._sources), ends, sums, self.runs

    @property
    def flexible_users(self) -> list[ModeChoice]:
        """The users that need another sharding of the value in another mode, each once, without the producer."""
        if self._flexible is None:
            flexible_users = {
                leg.user.number: leg.user
                for leg in self._legs
                if len(leg.user.modes) > 1 and leg.user is not self.producer and leg.targets[0] != leg.targets[1]
            }
            self._flexible = list(flexible_users.values())
        return self._flexible

    @property
    def reduction(self) -> ReductionOp:
        """The combination of partial results."""
        for route in self.routes:
            for step in route.steps:
                if "reduction_op" in step.attributes:
                    return parse_reduction_op(step.attributes["reduction_op"])
        return self.producer.reduction

    def targets(self, mode_of: ModeOf) -> dict[TensorSharding, list[Route]]:
        """Return the routes by the sharding that their users get."""
        shipment = self.shipment(mode_of)
        routes_by_target: dict[TensorSharding, list[Route]] = {}
        for route, leg in zip(self.routes, self._legs, strict=True):
            mode = mode_of(leg.user)
            is_collected = shipment.is_collected and mode == WHOLE and leg.collected is not None
            routes_by_target.setdefault(shipment.source if is_collected else leg.targets[mode], []).append(route)
        return routes_by_target

    def cost(self, mode_of: ModeOf) -> float:
        """Return the bytes that a device sends for the value."""
        return self.shipment(mode_of).cost * self.runs

    def shipment(self, mode_of: ModeOf) -> Shipment:
        """Return the cheapest way of the value to its users.

        A user may take a sharded value though it gives whole results, and have its local form send what it needs.
        """
        modes = mode_of(self.producer), *map(mode_of, self.users)
        shipment = self._known.get(modes)
        if shipment is None:
            shipment = self._known[modes] = self._ship(*modes)
        return shipment

    def _ship(self, mode: int, *user_modes: int) -> Shipment:
        source, summed = self._sources[mode], self._summed(mode)
        may_be_collected = self.group.shards(source) and not summed
        targets: dict[TensorSharding, None] = {}
        others: dict[TensorSharding, None] = {}
        collected = 0.0
        for leg, user_mode in zip(self._legs, user_modes, strict=True):
            target = leg.targets[user_mode]
            targets[target] = None
            if may_be_collected and leg.collected is not None and user_mode == WHOLE:
                collected += leg.collected / self.runs
                others[source] = None
            else:
                others[target] = None
        direct = self._cheapest(source, summed, tuple(targets))
        if collected:
            part = self._cheapest(source, summed, tuple(others))
            if part.cost + collected < direct.cost:
                return evolve(part, cost=part.cost + collected, is_collected=True)
        return direct

    def _cheapest(
        self, source: TensorSharding, summed: tuple[AxisRef, ...], targets: Sequence[TensorSharding]
    ) -> Shipment:
        reduced = all_reduce_bytes(self.value.type, source, summed, self.group.mesh) if summed else 0.0
        if (
            len(targets) == 1
            and summed
            and is_one_reduce_scatter(self.value.type, source, targets[0], summed, self.group.mesh)
        ):
            return Shipment(reduced / 2, source, summed)
        direct = Shipment(reduced + self._bytes(source, targets), source, summed)
        through = self._closed(self.group.without(source))
        if through == source or len(targets) < 2:
            return direct
        others = [item for item in targets if item != source]
        indirect = reduced + self._bytes(source, [through]) + self._bytes(through, others)
        return Shipment(indirect, source, summed, through) if indirect < direct.cost else direct

    def _summed(self, mode: int) -> tuple[AxisRef, ...]:
        """Return the axes along which the value is partial in a mode of its producer."""
        summed_axes = self.routes[0].summed_axes
        if mode == self.producer.current:
            return summed_axes
        if mode == SHARDED:
            return (*summed_axes, *self.producer.partial)
        group_axes = self.group.own_axes(summed_axes)
        return tuple(axis for axis in summed_axes if axis not in group_axes)

    def _bytes(self, source: TensorSharding, targets: Sequence[TensorSharding]) -> float:
        total = 0.0
        for target in targets:
            sent = reshard_bytes(self.value.type, source, target, self.group.mesh)
            total += _IMPOSSIBLE if sent is None else sent
        return total

    def _closed(self, sharding: TensorSharding | None) -> TensorSharding:
        return self.group.closed(sharding, len(self.value.shape))


def deliveries(choices: ModeChoices) -> Iterator[Delivery]:
    """Yield the deliveries of the values whose collectives can be replaced; choices at the others are pinned."""
    shipments: Shipments = {}
    for value in choices.values:
        producer, routes = choices.by_value[value.id], choices.routes.of(value)
        users = [choices.by_use.get((route.user.id, route.number)) for route in routes]
        user_choices = [user for user in users if user is not None]
        has_steps = any(route.steps for route in routes)
        if not routes or (not has_steps and (not is_static(value) or not _is_flexible(producer, users))):
            continue
        if len(user_choices) < len(users) or not can_replace_collectives(
            value, producer, routes, user_choices, choices.group
        ):
            for choice in (producer, *user_choices):
                choice.pin()
            continue
        definition = value.owner if isinstance(value.owner, Block) else value.owner.parent
        assert definition is not None
        block = choices.counts.placement(definition, [route.user for route in routes])
        sent = sent_now(routes, choices)
        runs = choices.counts.of_block(block)
        yield Delivery(value, producer, routes, user_choices, choices.group, block, runs, sent, shipments)


def _is_flexible(producer: ModeChoice, users: Sequence[ModeChoice | None]) -> bool:
    """Return whether the op that makes a value, or one of its users, has several modes."""
    return len(producer.modes) > 1 or any(user is None or len(user.modes) > 1 for user in users)


def can_replace_collectives(
    value: Value, producer: ModeChoice, routes: Sequence[Route], users: Sequence[ModeChoice], group: AxisGroup
) -> bool:
    """Return whether the collectives of a value can be replaced by others along some axes.

    Args:
        value: The value.
        producer: What makes it.
        routes: Its ways to its users.
        users: The choices of these users.
        group: The axes.
    """
    if not is_static(value):
        return False
    first = routes[0]
    if any(not _is_on(step, group) for route in routes for step in route.steps):
        return False
    if any(route.summed_axes != first.summed_axes or _reductions(route) != _reductions(first) for route in routes):
        return False
    shardings = [*producer.value_modes[value.id]]
    for route, user in zip(routes, users, strict=True):
        shardings += user.operand_modes[route.user.id, route.number]
    try:
        for sharding in shardings:
            group.without(sharding)
        group.own_axes(first.summed_axes)
    except UnfitAxes:
        return False
    return True


def _early_share(step: Op, choices: ModeChoices | PartialChoices) -> float:
    """Return the part of its bytes that a gather sends where its conversion gathers the operands of the producer."""
    producer = cheaper_producer(step, choices.semantics) if step.name == ALL_GATHER else None
    if producer is None:
        return 1.0
    sizes = [prod(static_shape(value.type) or ()) for value in producer.operands]
    return sum(sizes) / max(1, prod(step.results[0].shape))


def _is_on(step: Op, group: AxisGroup) -> bool:
    """Return whether a collective is on the mesh of some axes."""
    sharding = step.program.sharding(step.results[0])
    return sharding is not None and sharding.mesh == group.mesh_name


def is_static(value: Value) -> bool:
    """Return whether a value is a tensor of known sizes."""
    return isinstance(value.type, TensorType) and value.type.is_static


def _reductions(route: Route) -> list[str]:
    return [str(step.attributes.get("reduction_op", "")) for step in route.steps if step.name == ALL_REDUCE]


def sent_now(routes: Sequence[Route], choices: ModeChoices | PartialChoices) -> float:
    """Return the bytes that a device sends on some routes, whose collectives are counted once."""
    group = choices.group if isinstance(choices, ModeChoices) else choices.kind.group
    steps: dict[int, Op] = {step.id: step for route in routes for step in route.steps}
    collected = 0.0
    for route in routes:
        # What is gathered for one such op only is not gathered: its local form sends what it needs.
        choice, step = choices.by_use.get((route.user.id, route.number)), route.steps[-1] if route.steps else None
        op_bytes = None if choice is None else choice.collected.get((route.user.id, route.number))
        if op_bytes is not None and step is not None and step.name == ALL_GATHER and step.results[0].has_one_use:
            steps.pop(step.id, None)
            sent = collective_bytes(step, choices.routes.sharding(step.operands[0]), group.mesh)
            collected += min(op_bytes, sent * choices.counts.of_block(step.parent))
    return collected + sum(
        collective_bytes(step, choices.routes.sharding(step.operands[0]), group.mesh)
        * _early_share(step, choices)
        * choices.counts.of_block(step.parent)
        for step in steps.values()
    )


def current_mode(choice: ModeChoice) -> int:
    """Return the mode in which a choice runs now."""
    return choice.current

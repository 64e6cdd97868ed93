"""Costs of bringing a value to its users where it, and some of these, may be partial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import field

from shardy_py.ir.graph.program import Block, Value
from shardy_py.local.communication.axis_group import AxisGroup
from shardy_py.local.communication.deliveries import ModeOf, can_replace_collectives, is_static, sent_now
from shardy_py.local.communication.mode_choice import Leg, ModeChoice
from shardy_py.local.communication.moves import all_reduce_bytes, is_one_reduce_scatter, reshard_bytes
from shardy_py.local.communication.partial_choices import PARTIAL, PartialChoices
from shardy_py.local.communication.routes import Route
from shardy_py.local.communication.run_counts import RunCounts
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define

_IMPOSSIBLE = 1e30
_MASKED = 0.01
"""The cost of keeping a value on one device only, in bytes: so little that it decides between equals."""


@define(eq=False)
class PartialDelivery:
    """A value with the op that makes it and its users.

    Attributes:
        value: The value.
        producer: What makes it.
        routes: Its ways to its users now.
        users: The choices of these users, in the same order.
        choices: All choices.
        sent: The bytes that are sent for it now.
    """

    value: Value
    producer: ModeChoice
    routes: Sequence[Route]
    users: Sequence[ModeChoice]
    choices: PartialChoices
    sent: float
    _known: dict[tuple[int, ...], float] = field(factory=dict, init=False)
    """The cost by the modes of the producer and the users."""
    _legs: list[tuple[Leg, bool]] = field(init=False)
    """The ways to the users, and whether these may take partial results."""
    _sources: tuple[TensorSharding, TensorSharding] = field(init=False)
    _is_produced_partial: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        rank, closed = len(self.value.shape), self.group.closed

        def close(sharding: TensorSharding | None) -> TensorSharding:
            return closed(sharding, rank)

        self._legs = [
            (Leg.of(route, user, close), (route.user.id, route.number) in self.choices.partial_uses)
            for route, user in zip(self.routes, self.users, strict=True)
        ]
        first, second = self.producer.value_modes[self.value.id]
        self._sources = close(first), close(second)
        self._is_produced_partial = self.choices.is_produced_partial(self.value)

    @property
    def group(self) -> AxisGroup:
        """The axes."""
        return self.choices.kind.group

    @property
    def flexible_users(self) -> list[ModeChoice]:
        """The users that need another sharding or partial results in another mode, each once, without the producer."""
        users_by_number: dict[int, ModeChoice] = {}
        for leg, may_be_partial in self._legs:
            depends_on_mode = may_be_partial or leg.targets[0] != leg.targets[1]
            if leg.user is not self.producer and len(leg.user.modes) > 1 and depends_on_mode:
                users_by_number[leg.user.number] = leg.user
        return list(users_by_number.values())

    def is_partial(self, mode_of: ModeOf) -> bool:
        """Return whether the value is partial."""
        return self._is_produced_partial or (len(self.producer.modes) > 1 and mode_of(self.producer) == PARTIAL)

    def source(self, mode_of: ModeOf) -> TensorSharding:
        """Return the sharding of the value."""
        return self._sources[mode_of(self.producer)]

    def targets(self, mode_of: ModeOf) -> dict[tuple[TensorSharding, bool], list[Route]]:
        """Return the routes by the sharding that their users want, and whether they want partial results."""
        routes_by_target: dict[tuple[TensorSharding, bool], list[Route]] = {}
        for route, (leg, may_be_partial) in zip(self.routes, self._legs, strict=True):
            mode = mode_of(leg.user)
            wants_partial = may_be_partial and len(leg.user.modes) > 1 and mode == PARTIAL
            routes_by_target.setdefault((leg.targets[mode], wants_partial), []).append(route)
        return routes_by_target

    def placement(self, routes: Sequence[Route]) -> Block:
        """Return the block in which collectives for some users stand."""
        definition = self.value.owner if isinstance(self.value.owner, Block) else self.value.owner.parent
        assert definition is not None
        return self.choices.counts.placement(definition, [route.user for route in routes])

    def cost(self, mode_of: ModeOf) -> float:
        """Return the bytes that a device sends for the value."""
        modes = mode_of(self.producer), *map(mode_of, self.users)
        sent_bytes = self._known.get(modes)
        if sent_bytes is None:
            sent_bytes = self._sent(self.source(mode_of), self.targets(mode_of), is_partial=self.is_partial(mode_of))
            self._known[modes] = sent_bytes
        return sent_bytes

    def is_scattered(self, source: TensorSharding, targets: Sequence[TensorSharding]) -> bool:
        """Return whether one reduce-scatter brings partial results to all complete targets."""
        if len(targets) != 1:
            return False
        return is_one_reduce_scatter(self.value.type, source, targets[0], self.group.axes, self.group.mesh)

    def _sent(
        self, source: TensorSharding, targets: dict[tuple[TensorSharding, bool], list[Route]], *, is_partial: bool
    ) -> float:
        counts: RunCounts = self.choices.counts
        complete = {target: routes for (target, wants_partial), routes in targets.items() if not wants_partial}
        partial = {target: routes for (target, wants_partial), routes in targets.items() if wants_partial}
        total = 0.0
        if is_partial:
            if any(target != source for target in partial):
                return _IMPOSSIBLE
            if complete:
                routes = [route for item in complete.values() for route in item]
                runs = counts.of_block(self.placement(routes))
                reduced = all_reduce_bytes(self.value.type, source, self.group.axes, self.group.mesh)
                total += runs * (reduced / 2 if self.is_scattered(source, list(complete)) else reduced)
        else:
            total += _MASKED * len(partial)
            complete = {**partial, **complete}
        for target, routes in complete.items():
            if target != source:
                sent = reshard_bytes(self.value.type, source, target, self.group.mesh)
                total += _IMPOSSIBLE if sent is None else sent * counts.of_block(self.placement(routes))
        return total


def partial_deliveries(choices: PartialChoices) -> Iterator[PartialDelivery]:
    """Yield the deliveries of the values that, or whose users, could be partial; what the others touch is pinned."""
    for value in choices.values:
        producer, routes = choices.by_value[value.id], choices.routes.of(value)
        users = [choices.by_use.get((route.user.id, route.number)) for route in routes]
        user_choices = [user for user in users if user is not None]
        if not routes or all(len(choice.modes) == 1 for choice in (producer, *user_choices)):
            continue
        is_fit = is_static(value) and len(user_choices) == len(users)
        is_fit = is_fit and can_replace_collectives(value, producer, routes, user_choices, choices.kind.group)
        has_other_sums = bool(routes[0].summed_axes) and not choices.is_produced_partial(value)
        if not is_fit or has_other_sums:
            for choice in (producer, *user_choices):
                choice.pin()
            continue
        yield PartialDelivery(value, producer, routes, user_choices, choices, sent_now(routes, choices))

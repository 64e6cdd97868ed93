"""Costs of bringing a value to its users where it, and some of these, may be partial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import field

from shardy_py.ir.graph.program import Block, Value
from shardy_py.local.communication.axis_group import AxisGroup
from shardy_py.local.communication.deliveries import ModeOf, can_replace_collectives, is_static, sent_now
from shardy_py.local.communication.mode_choice import ModeChoice
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
    _known: dict[object, float] = field(factory=dict, init=False)

    @property
    def group(self) -> AxisGroup:
        """The axes."""
        return self.choices.kind.group

    @property
    def flexible_users(self) -> list[ModeChoice]:
        """The users that need another sharding or partial results in another mode, each once, without the producer."""
        users_by_number: dict[int, ModeChoice] = {}
        for route, user in zip(self.routes, self.users, strict=True):
            key = route.user.id, route.number
            depends_on_mode = key in self.choices.partial_uses or len({*map(self._closed, user.operand_modes[key])}) > 1
            if user is not self.producer and len(user.modes) > 1 and depends_on_mode:
                users_by_number[user.number] = user
        return list(users_by_number.values())

    def is_partial(self, mode_of: ModeOf) -> bool:
        """Return whether the value is partial."""
        if self.choices.is_produced_partial(self.value):
            return True
        return len(self.producer.modes) > 1 and mode_of(self.producer) == PARTIAL

    def source(self, mode_of: ModeOf) -> TensorSharding:
        """Return the sharding of the value."""
        return self._closed(self.producer.value_modes[self.value.id][mode_of(self.producer)])

    def targets(self, mode_of: ModeOf) -> dict[tuple[TensorSharding, bool], list[Route]]:
        """Return the routes by the sharding that their users want, and whether they want partial results."""
        routes_by_target: dict[tuple[TensorSharding, bool], list[Route]] = {}
        for route, user in zip(self.routes, self.users, strict=True):
            key, mode = (route.user.id, route.number), mode_of(user)
            wants_partial = key in self.choices.partial_uses and len(user.modes) > 1 and mode == PARTIAL
            routes_by_target.setdefault((self._closed(user.operand_modes[key][mode]), wants_partial), []).append(route)
        return routes_by_target

    def placement(self, routes: Sequence[Route]) -> Block:
        """Return the block in which collectives for some users stand."""
        definition = self.value.owner if isinstance(self.value.owner, Block) else self.value.owner.parent
        assert definition is not None
        return self.choices.counts.placement(definition, [route.user for route in routes])

    def cost(self, mode_of: ModeOf) -> float:
        """Return the bytes that a device sends for the value."""
        targets = self.targets(mode_of)
        key = self.is_partial(mode_of), self.source(mode_of), tuple((key, len(item)) for key, item in targets.items())
        if key not in self._known:
            self._known[key] = self._sent(self.source(mode_of), targets, is_partial=self.is_partial(mode_of))
        return self._known[key]

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

    def _closed(self, sharding: TensorSharding | None) -> TensorSharding:
        return self.group.closed(sharding, len(self.value.shape))


def partial_deliveries(choices: PartialChoices) -> Iterator[PartialDelivery]:
    """Yield the deliveries of the values that, or whose users, could be partial; what the others touch is pinned."""
    for value in choices.values:
        producer, routes = choices.by_value[value.id], choices.routes.of(value)
        users = [choices.by_use.get((route.user.id, route.number)) for route in routes]
        known = [user for user in users if user is not None]
        if not routes or all(len(choice.modes) == 1 for choice in (producer, *known)):
            continue
        is_fit = is_static(value) and len(known) == len(users)
        is_fit = is_fit and can_replace_collectives(value, producer, routes, known, choices.kind.group)
        has_other_sums = bool(routes[0].summed_axes) and not choices.is_produced_partial(value)
        if not is_fit or has_other_sums:
            for choice in (producer, *known):
                choice.pin()
            continue
        yield PartialDelivery(value, producer, routes, known, choices, sent_now(routes, choices))

"""The cheapest modes of the ops of a program, as minimum cuts of the parts that depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrs import field

from shardy_py.ir.graph.program import Value
from shardy_py.local.communication.deliveries import ModeOf
from shardy_py.local.communication.minimum_cut import INFINITE, FlowNetwork
from shardy_py.local.communication.mode_choice import SHARDED, WHOLE, ModeChoice
from shardy_py.local.communication.routes import Route
from shardy_py.values import define, frozen


class Movement(Protocol):
    """A value with the op that makes it and its users, whose collectives depend on the modes of these."""

    @property
    def value(self) -> Value:
        """The value."""
        ...

    @property
    def producer(self) -> ModeChoice:
        """The op, or the edge, that makes it."""
        ...

    @property
    def routes(self) -> Sequence[Route]:
        """Its ways to its users now."""
        ...

    @property
    def users(self) -> Sequence[ModeChoice]:
        """The choices of these users, in the same order."""
        ...

    @property
    def sent(self) -> float:
        """The bytes that are sent for it now."""
        ...

    @property
    def flexible_users(self) -> list[ModeChoice]:
        """The users that want the value otherwise in another mode, each once."""
        ...

    def cost(self, mode_of: ModeOf) -> float:
        """Return the bytes that a device sends for the value."""
        ...


_LEAST_GAIN = 0.5
"""The bytes that a change must save."""
_MOST_DELIVERIES = 4000
"""The size of a part beyond which its ops keep their modes."""


@frozen(eq=False)
class Improvement:
    """Modes of some ops under which less is sent.

    Args:
        deliveries: The values that are brought to their users in another way.
        modes: The new mode of each choice that changes.
        before: The bytes that are sent now.
        after: The bytes that are sent then.
    """

    deliveries: Sequence[Movement]
    modes: dict[int, int]
    before: float
    after: float

    def mode_of(self, choice: ModeChoice) -> int:
        """Return the mode of a choice."""
        return self.modes.get(choice.number, choice.current)


def improvements(deliveries: Sequence[Movement]) -> list[Improvement]:
    """Return the modes under which less is sent, for each independent part of a program.

    Args:
        deliveries: The values with their users.
    """
    results = []
    for part in _parts(deliveries):
        sent = sum(choice.sent[choice.current] for choice in _flexible(part).values())
        if not sent and not any(item.sent for item in part):
            continue
        improvement = _improve(part)
        if improvement is not None:
            results.append(improvement)
    return results


def _improve(part: Sequence[Movement]) -> Improvement | None:
    choices = _flexible(part)
    modes = _cut(part, choices) if choices and len(part) <= _MOST_DELIVERIES else {}
    modes |= _collecting(part, choices, modes)
    modes = {number: mode for number, mode in modes.items() if mode != choices[number].current}
    candidates = [modes, {}] if modes else [{}]
    best: Improvement | None = None
    for candidate in candidates:
        before = sum(delivery.sent for delivery in part)
        before += sum(choice.sent[choice.current] for choice in choices.values())
        item = Improvement(part, candidate, before, 0.0)
        after = sum(delivery.cost(item.mode_of) for delivery in part)
        after += sum(choice.sent[item.mode_of(choice)] for choice in choices.values())
        work = sum(choices[number].work * (1 if mode == WHOLE else -1) for number, mode in candidate.items())
        if after < item.before - _LEAST_GAIN and after + work < item.before - _LEAST_GAIN:
            total = after + work
            if best is None or total < best.after + _work_of(best, choices):
                best = Improvement(part, candidate, item.before, after)
    return best


def _collecting(part: Sequence[Movement], choices: dict[int, ModeChoice], modes: dict[int, int]) -> dict[int, int]:
    """Return the ops to make whole as their local forms send what they need of a sharded value.

    In the network a value with several users is brought to such an op in both modes.

    Args:
        part: The values that are brought to their users.
        choices: The choices with several modes.
        modes: Their modes in the cheapest cut.
    """
    touching: dict[int, list[Movement]] = {
        number: [] for number, mode in modes.items() if mode == SHARDED and choices[number].collected
    }
    for item in part if touching else ():
        for number in {choice.number for choice in (item.producer, *item.users)} & touching.keys():
            touching[number].append(item)
    result: dict[int, int] = {}
    for number, items in touching.items():
        choice = choices[number]
        sharded_cost, whole_cost = (
            choice.sent[mode] + sum(item.cost(_mode_among(modes | result | {number: mode})) for item in items)
            for mode in (SHARDED, WHOLE)
        )
        if whole_cost + choice.work < sharded_cost - _LEAST_GAIN:
            result[number] = WHOLE
    return result


def _mode_among(modes: dict[int, int]) -> ModeOf:
    return lambda choice: modes.get(choice.number, choice.current)


def _work_of(item: Improvement, choices: dict[int, ModeChoice]) -> float:
    return sum(choices[number].work * (1 if mode == WHOLE else -1) for number, mode in item.modes.items())


def _flexible(part: Sequence[Movement]) -> dict[int, ModeChoice]:
    """Return the choices with several modes, by number."""
    choices: dict[int, ModeChoice] = {}
    for item in part:
        for choice in (item.producer, *item.flexible_users):
            if len(choice.modes) > 1:
                choices[choice.number] = choice
    return choices


def _cut(part: Sequence[Movement], choices: dict[int, ModeChoice]) -> dict[int, int]:
    """Return the mode of each choice in the cheapest cut; the side of the source is sharded, that of the sink whole."""
    network = FlowNetwork()
    nodes = {}
    for number in sorted(choices):
        sent = choices[number].sent
        nodes[number] = network.add_node(at_source=sent[SHARDED], at_sink=sent[WHOLE] + choices[number].work)
    for item in part:
        _Costs(item).enter(network, nodes)
    whole_nodes = network.sink_side()
    return {number: WHOLE if node in whole_nodes else SHARDED for number, node in nodes.items()}


@define(eq=False)
class _Costs:
    """The costs of a delivery in a network.

    Attributes:
        item: The delivery.
    """

    item: Movement
    _users: list[ModeChoice] = field(init=False)
    _numbers: set[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._users = self.item.flexible_users
        self._numbers = {user.number for user in self._users}

    def enter(self, network: FlowNetwork, nodes: dict[int, int]) -> None:
        """Add the costs of a node for the producer and of one for the users, which is whole as soon as one user is."""
        producer = nodes.get(self.item.producer.number)
        if not self._users:
            if producer is not None:
                network.add_cost(producer, self._cost(SHARDED, SHARDED), self._cost(WHOLE, WHOLE))
            return
        users = self._add_users(network, nodes)
        if producer is None:
            mode = self.item.producer.current
            network.add_cost(users, self._cost(mode, SHARDED), self._cost(mode, WHOLE))
            return
        both_sharded, gathered = self._cost(SHARDED, SHARDED), self._cost(SHARDED, WHOLE)
        sliced, both_whole = self._cost(WHOLE, SHARDED), self._cost(WHOLE, WHOLE)
        # Pieces can be cut from what is gathered, so that several reshards never cost more than it.
        both_sharded = min(both_sharded, gathered + sliced - both_whole)
        network.add_cost(producer, both_sharded, sliced)
        network.add_cost(users, 0.0, both_whole - sliced)
        network.add_edge(producer, users, gathered + sliced - both_whole - both_sharded)

    def _add_users(self, network: FlowNetwork, nodes: dict[int, int]) -> int:
        """Return the node that is whole as soon as one of the users is; a single user is that by itself."""
        collected = list(map(self._collected, self._users))
        if collected == [INFINITE]:
            return nodes[self._users[0].number]
        users = network.add_node()
        for user, cost in zip(self._users, collected, strict=True):
            network.add_edge(users, nodes[user.number], cost)
        return users

    def _collected(self, user: ModeChoice) -> float:
        """Return the cost of a user that computes whole results from the sharded value."""
        costs = [user.collected.get((route.user.id, route.number)) for route in self.item.routes]
        known_costs = [cost for cost in costs if cost is not None]
        return sum(known_costs) if known_costs else INFINITE

    def _cost(self, producer: int, users: int) -> float:
        source, numbers = self.item.producer, self._numbers

        def mode_of(choice: ModeChoice) -> int:
            if choice is source:
                return producer
            return users if choice.number in numbers else choice.current

        return self.item.cost(mode_of)


def _parts(deliveries: Sequence[Movement]) -> list[list[Movement]]:
    """Return the deliveries that share choices with several modes, in groups."""
    parents: dict[int, int] = {}

    def root(number: int) -> int:
        while parents.setdefault(number, number) != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    keys: list[int | None] = []
    for item in deliveries:
        numbers = [choice.number for choice in (item.producer, *item.flexible_users) if len(choice.modes) > 1]
        for number in numbers[1:]:
            parents[root(numbers[0])] = root(number)
        keys.append(numbers[0] if numbers else None)
    groups: dict[int, list[Movement]] = {}
    alone: list[list[Movement]] = []
    for item, key in zip(deliveries, keys, strict=True):
        if key is None:
            alone.append([item])
        else:
            groups.setdefault(root(key), []).append(item)
    return [*groups.values(), *alone]

"""Other modes of ops, written into a program: shardings of values, and reshards on the ways to their users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.op_names import ALL_REDUCE, RESHARD
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.local.communication.deliveries import Delivery, ModeOf, current_mode
from shardy_py.local.communication.mode_choice import SHARDED, WHOLE, ModeChoice
from shardy_py.local.communication.report import CommunicationChange
from shardy_py.local.communication.routes import Route, erase_unused_steps
from shardy_py.local.communication.solve import Improvement, Movement
from shardy_py.sharding.combiner import reduction_op_text
from shardy_py.sharding.op_attributes import AxisRefList
from shardy_py.sharding.tensor import TensorSharding

_MOST_NAMES = 3
"""The names of ops that a change lists."""


def apply_improvement(program: Program, item: Improvement) -> None:
    """Give ops their new modes, and bring values to their users as these want them."""
    changed = {choice.number: choice for delivery in item.deliveries for choice in (delivery.producer, *delivery.users)}
    for choice in changed.values():
        if item.mode_of(choice) != choice.current:
            set_shardings(program, choice, item.mode_of(choice))
    for delivery in item.deliveries:
        if isinstance(delivery, Delivery) and _has_to_be_rewritten(delivery, item):
            _deliver(program, delivery, item.mode_of)


def describe(item: Improvement) -> CommunicationChange:
    """Return what an improvement changes, in words: the ops that communication moves behind, or before."""
    moved: dict[int, dict[str, None]] = {SHARDED: {}, WHOLE: {}}
    sources: dict[str, None] = {}
    concerned: dict[str, None] = {}
    for delivery in item.deliveries:
        if not has_changed_delivery(delivery, item):
            continue
        producer = delivery.value.defining_op
        sources["an argument" if producer is None else producer.name] = None
        ops = [(delivery.producer, producer)] if producer is not None else []
        ops += [(user, route.user) for user, route in zip(delivery.users, delivery.routes, strict=True)]
        for choice, op in ops:
            concerned[op.location] = None
            if item.mode_of(choice) != choice.current:
                moved[item.mode_of(choice)][op.name] = None
    words = (("moved behind", moved[SHARDED]), ("moved before", moved[WHOLE]))
    parts = [f"{word} {first_names(names)}" for word, names in words if names]
    description = " and ".join(parts) or f"what {first_names(sources)} gives is sent once"
    locations = tuple(location for location in concerned if location)
    return CommunicationChange(description, item.before, item.after, next(iter(locations), ""), locations)


def has_changed_delivery(delivery: Movement, item: Improvement) -> bool:
    """Return whether an improvement changes how a value gets to its users, or what is sent for it."""
    choices = (delivery.producer, *delivery.users)
    has_other_mode = any(item.mode_of(choice) != current_mode(choice) for choice in choices)
    return has_other_mode or delivery.sent > delivery.cost(item.mode_of)


def first_names(names: Iterable[str]) -> str:
    """Return the first names of a list, and the number of the others."""
    all_names = list(names)
    suffix = f" and {len(all_names) - _MOST_NAMES} more" if len(all_names) > _MOST_NAMES else ""
    return ", ".join(all_names[:_MOST_NAMES]) + suffix


def set_shardings(program: Program, choice: ModeChoice, mode: int) -> None:
    """Give the results of an op, or the values of an edge, their shardings in a mode."""
    for number, modes in choice.value_modes.items():
        sharding = modes[mode]
        if sharding is None:
            program.shardings.pop(number, None)
        else:
            program.shardings[number] = sharding


def _has_to_be_rewritten(delivery: Delivery, item: Improvement) -> bool:
    """Return whether a value has to be brought to its users in another way."""
    if any(item.mode_of(choice) != choice.current for choice in (delivery.producer, *delivery.users)):
        return True
    return delivery.cost(item.mode_of) < delivery.sent


def _deliver(program: Program, delivery: Delivery, mode_of: ModeOf) -> None:
    shipment, targets = delivery.shipment(mode_of), delivery.targets(mode_of)
    block, anchor = delivery.block, first_user(delivery.block, delivery.routes)
    value, sharding = delivery.value, shipment.source
    if shipment.summed:
        attributes = {"reduction_axes": AxisRefList(shipment.summed)}
        if delivery.reduction != "sum":
            attributes["reduction_op"] = RawAttribute(reduction_op_text(delivery.reduction))  # type: ignore[assignment]
        value = insert(program, ALL_REDUCE, value, {**attributes, "out_sharding": sharding}, sharding, block, anchor)
    source = value
    if shipment.through is not None:
        value, sharding = reshard(program, value, shipment.through, block, anchor), shipment.through
    for target, routes in targets.items():
        arrived = source if target == shipment.source else value
        if target not in (sharding, shipment.source):
            arrived = reshard(program, value, target, block, anchor)
        for route in routes:
            route.user.set_operand(route.number, arrived)
    erase_unused_steps(delivery.routes)


def first_user(block: Block, routes: Sequence[Route]) -> Op:
    """Return the first op of a block that uses a value, or has such an op in it.

    Args:
        block: The block.
        routes: The ways of the value to its users.
    """
    users: set[int] = set()
    for route in routes:
        op: Op | None = route.user
        while op is not None and op.parent is not block:
            op = op.parent_op
        if op is not None:
            users.add(op.id)
    return next(op for op in block.ops if op.id in users)


def reshard(program: Program, value: Value, sharding: TensorSharding, block: Block, anchor: Op) -> Value:
    """Insert a reshard before an op of a block, and return its result."""
    return insert(program, RESHARD, value, {"sharding": sharding}, sharding, block, anchor)


def insert(
    program: Program,
    name: str,
    value: Value,
    attributes: Mapping[str, object],
    sharding: TensorSharding,
    block: Block,
    anchor: Op,
) -> Value:
    """Insert an op on a value, whose result has its type, before another op of a block; return the result."""
    op = Op(program, name, [value], [value.type], dict(attributes))
    block.insert_before(anchor, op)
    program.shardings[op.results[0].id] = evolve(sharding)
    return op.results[0]

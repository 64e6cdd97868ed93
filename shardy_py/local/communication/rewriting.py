"""Other modes of ops, written into a program: shardings of values, and reshards on the ways to their users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.op_names import ALL_REDUCE, RESHARD
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.local.communication.choices import WHOLE, ModeChoice
from shardy_py.local.communication.deliveries import Delivery, ModeOf, modes_now
from shardy_py.local.communication.report import CommunicationChange
from shardy_py.local.communication.routes import Route
from shardy_py.local.communication.solve import Improvement
from shardy_py.sharding.combiner import reduction_op_text
from shardy_py.sharding.op_attributes import AxisRefList
from shardy_py.sharding.tensor import TensorSharding


def apply_improvement(program: Program, item: Improvement) -> None:
    """Give ops their new modes, and bring values to their users as these want them."""
    changed = {choice.number: choice for own in item.deliveries for choice in (own.producer, *own.users)}
    for choice in changed.values():
        if item.mode_of(choice) != choice.current:
            set_shardings(program, choice, item.mode_of(choice))
    for own in item.deliveries:
        if isinstance(own, Delivery) and _is_concerned(own, item):
            _deliver(program, own, item.mode_of)


def describe(item: Improvement) -> CommunicationChange:
    """Return what an improvement changes, in words."""
    gathered: list[str] = []
    where = ""
    for own in item.deliveries:
        modes = [item.mode_of(user) for user in own.users]
        before = [modes_now(user) for user in own.users]
        if modes != before or own.sent > own.cost(item.mode_of):
            producer = own.value.defining_op
            name = "an argument" if producer is None else producer.name
            where = where or (own.routes[0].user.location if producer is None else producer.location)
            gathered.append(name)
    names = list(dict.fromkeys(gathered))
    if item.modes:
        whole = sum(mode == WHOLE for mode in item.modes.values())
        sharded = len(item.modes) - whole
        count, how = (whole, "whole") if whole >= sharded else (sharded, "sharded")
        kind = f"{count} op{'s' * (count > 1)} {'run' if count > 1 else 'runs'} {how}"
    else:
        kind = "sent once"
    what = f"{kind} behind {', '.join(names[:3])}" if names else kind
    return CommunicationChange(what, item.before, item.after, where)


def set_shardings(program: Program, choice: ModeChoice, mode: int) -> None:
    """Give the results of an op, or the values of an edge, their shardings in a mode."""
    for number, modes in choice.given.items():
        sharding = modes[mode]
        if sharding is None:
            program.shardings.pop(number, None)
        else:
            program.shardings[number] = sharding


def _is_concerned(own: Delivery, item: Improvement) -> bool:
    """Return whether a value has to be brought to its users in another way."""
    if any(item.mode_of(choice) != choice.current for choice in (own.producer, *own.users)):
        return True
    return own.cost(item.mode_of) < own.sent


def _deliver(program: Program, own: Delivery, mode_of: ModeOf) -> None:
    shipment, targets = own.shipment(mode_of), own.targets(mode_of)
    block, anchor = own.block, first_user(own.block, own.routes)
    value, sharding = own.value, shipment.source
    if shipment.summed:
        attributes = {"reduction_axes": AxisRefList(shipment.summed)}
        if own.reduction != "sum":
            attributes["reduction_op"] = RawAttribute(reduction_op_text(own.reduction))  # type: ignore[assignment]
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
    depths = {step: depth for route in own.routes for depth, step in enumerate(route.steps)}
    for step in sorted(depths, key=lambda step: -depths[step]):
        if not step.results[0].uses:
            step.erase()


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

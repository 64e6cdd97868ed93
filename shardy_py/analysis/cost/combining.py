"""Small all-reduces that a compiler combines into one.

As in XLA's all_reduce_combiner.cc: those of one kind over the same groups, of which none needs the result of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import evolve

from shardy_py.analysis.cost.graph import Node, Section, user_in
from shardy_py.analysis.cost.values import Transfer
from shardy_py.ir.types import TensorType
from shardy_py.values import define


@define(eq=False)
class Priced:
    """A transfer with its node.

    Args:
        node: The node.
        transfer: The transfer.
        group: What all-reduces that become one have in common.
        is_halo: Whether it is the halo of a window.
        operand: The number of the operand that a halo is of.
    """

    node: Node
    transfer: Transfer
    group: object = None
    is_halo: bool = False
    operand: int = 0


def combine(priced: Iterable[Priced], most: float, price: Callable[[Priced, int], float | None]) -> None:
    """Combine all-reduces, in place.

    Args:
        priced: The transfers of one section.
        most: The largest number of bytes of those that become one.
        price: Returns the time of an all-reduce of more bytes.
    """
    reduces = [item for item in priced if item.transfer.kind == "all_reduce" and item.transfer.bytes]
    if most <= 0 or len(reduces) < 2:
        return
    levels = _levels(reduces)
    groups: dict[tuple[object, ...], list[Priced]] = {}
    for item in reduces:
        groups.setdefault((item.group, levels[id(item)], item.node.depth), []).append(item)
    for members in groups.values():
        for part in _up_to(members, most):
            _make_one(part, price)


def group_key(node: Node, axes: str, devices: int) -> object:
    """Return what all-reduces have in common that become one: types, groups and the reduction."""
    type_ = node.op.operands[0].type
    element_type = type_.element_type if isinstance(type_, TensorType) else ""
    return element_type, axes, devices, str(node.op.attributes.get("reduction_op"))


def _up_to(members: list[Priced], most: float) -> Iterable[list[Priced]]:
    """Yield lists of members whose bytes together are at most so many."""
    part: list[Priced] = []
    size = 0.0
    for item in members:
        if part and size + item.transfer.bytes > most:
            yield part
            part, size = [], 0.0
        part.append(item)
        size += item.transfer.bytes
    yield part


def _make_one(members: list[Priced], price: Callable[[Priced, int], float | None]) -> None:
    if len(members) < 2:
        return
    total = sum(item.transfer.bytes for item in members)
    seconds = price(members[0], total)
    first = members[0].transfer.op_id
    for item in members:
        share = None if seconds is None else seconds * item.transfer.bytes / total
        combined_with = first if item is not members[0] else -1
        item.transfer = evolve(item.transfer, seconds=share, combined_with=combined_with, combined=len(members))


def _levels(reduces: list[Priced]) -> dict[int, int]:
    """Return, for each all-reduce, how many others in a row need its result; those of one level never do."""
    section: Section = reduces[0].node.section
    wanted = {item.node.position for item in reduces}
    below = [0] * len(section.nodes)
    for node in reversed(section.nodes):
        deepest = 0
        for tensor in node.outputs:
            for user in tensor.users:
                here = user if user.section is section else user_in(section, user)
                if here is not None and here.position > node.position:
                    depth = below[here.position] + (here.position in wanted)
                    if depth > deepest:
                        deepest = depth
        below[node.position] = deepest
    return {id(item): below[item.node.position] for item in reduces}

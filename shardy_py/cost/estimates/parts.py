"""Ops of one result that compute what a result of another op is, as the largest numbers beside their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardy_py.cost.estimates.graph import Node, Section, Tensor, makers_above, walk
from shardy_py.ir.graph.op_names import ALL_REDUCE
from shardy_py.ir.interfaces.costs import Part
from shardy_py.support.identity import identity


def take_parts(main: Section) -> None:
    """Let what uses such ops use the results of the other ones, which run where the former did.

    Sums over devices stand between them: a reduction of parts is not the same.
    """
    taken: dict[int, Tensor] = {}
    for section in _sections(main):
        taken |= _take(section)
    if not taken:
        return
    for section in _sections(main):
        section.results = [taken.get(identity(tensor), tensor) for tensor in section.results]
        for node in section.nodes:
            for item in node.carried:
                item.initial = taken.get(identity(item.initial), item.initial)
                item.yielded = [taken.get(identity(tensor), tensor) for tensor in item.yielded]


def _sections(main: Section) -> list[Section]:
    return [main, *(inner for node in walk(main) for inner in node.sections)]


def _take(section: Section) -> Mapping[int, Tensor]:
    """Replace the results of ops of one section by those of others; return by what, by the ids of the former."""
    whole = [node for node in section.nodes if node.kind.has_parts and len(node.outputs) > 1]
    if not whole:
        return {}
    alone: dict[tuple[object, ...], Node] = {}
    for node in section.nodes:
        if node.kind.has_parts and len(node.outputs) == 1:
            alone |= {key: node for key, _ in _parts(node)}
    taken: dict[int, Tensor] = {}
    for node in whole:
        for key, tensor in _parts(node):
            other = alone.pop(key, None)
            if other is None or any(user.op.name == ALL_REDUCE for user in other.outputs[0].users):
                continue
            _replace(other.outputs[0], tensor)
            taken[identity(other.outputs[0])] = tensor
            _move(section, node, other.position)
    return taken


def _parts(node: Node) -> Iterator[tuple[tuple[object, ...], Tensor]]:
    """Yield what tells a result of a node from others, with the result."""
    parts: list[Part | None] = [] if node.kind.cost is None else list(node.kind.cost.get_parts(node.op))
    for part, tensor in zip(parts, node.outputs, strict=False):
        if part is not None:
            name, numbers = part
            yield (name, tensor.value.type, node.depth, *[identity(node.inputs[number]) for number in numbers]), tensor


def _replace(old: Tensor, new: Tensor) -> None:
    for user in old.users:
        user.inputs = [new if tensor is old else tensor for tensor in user.inputs]
    new.users += old.users
    old.users = []


def _move(section: Section, node: Node, place: int) -> None:
    """Move a node, and what it is made from, up to a place, if it stands behind it."""
    if node.position < place:
        return
    moved = {node.position, *makers_above(node, place)}
    before, after = section.nodes[:place], section.nodes[place:]
    section.nodes = [
        *before,
        *(item for item in after if item.position in moved),
        *(item for item in after if item.position not in moved),
    ]
    for position, item in enumerate(section.nodes):
        item.position = position

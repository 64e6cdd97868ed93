"""Order in which kernels run: that of the program, or breadth first.

Breadth first, a kernel runs as soon as what it reads is there, those that wait longest first, as in XLA's
bfs_scheduler.cc: what reads arguments alone runs at the start, and what ends branches of equal length runs together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shardy_py.cost.estimates.graph import Node, Section, Tensor, user_in
from shardy_py.support.identity import identity

Steps = list[list[Node]]
"""Nodes that run at the same time, one step after the other."""


def readers(section: Section, tensor: Tensor) -> list[int]:
    """Return the positions of the nodes of a section that end the kernels that read a value."""
    positions: dict[int, None] = {}
    for user in tensor.users:
        for root in user.roots or (user,):
            reader = root if root.section is section else user_in(section, root)
            if reader is not None:
                positions[reader.position] = None
    return list(positions)


def breadth_first(
    section: Section,
    reader_positions: Mapping[int, Sequence[int]],
    together: Mapping[int, Sequence[Node]],
    copies_of: Callable[[Node], int],
) -> Steps:
    """Return the nodes of a section breadth first.

    Args:
        section: The section.
        reader_positions: The positions of the readers of each value, by its id.
        together: The nodes that run at the same time as one, by the id of each of them.
        copies_of: Gives the number of kernels that copy for a node, one after the other, before its result is there.
    """
    nodes = section.nodes
    # A step has the number of its first node.
    first = list(range(len(nodes)))
    for node in nodes if together else ():
        for other in together.get(identity(node), ()):
            first[node.position] = min(first[node.position], other.position)
    members: dict[int, list[Node]] = {}
    for node, number in zip(nodes, first, strict=True):
        members.setdefault(number, []).append(node)
    waiting, after = [0] * len(nodes), {}
    for number, step in members.items():
        users = {
            first[place] for node in step for item in node.outputs for place in reader_positions.get(identity(item), ())
        }
        users.discard(number)
        after[number] = sorted(users)
        for user in users:
            waiting[user] += 1
    copies = {number: max(map(copies_of, step)) for number, step in members.items()}
    ready, order = [number for number in members if not waiting[number]], []
    for number in ready:
        if copies[number]:
            copies[number] -= 1
            ready.append(number)
            continue
        order.append(number)
        for user in after[number]:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    return [members[number] for number in order] if len(order) == len(members) else [[node] for node in nodes]

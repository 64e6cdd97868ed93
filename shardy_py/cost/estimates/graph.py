"""Flat form of a program for its cost: calls and manual computations are part of what runs them.

A compiler inlines calls before anything else, so that fusion, liveness and hoisting see through them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from attrs import Factory

from shardy_py.cost.estimates.flops import NOTHING, Work
from shardy_py.cost.estimates.op_kinds import OpKind
from shardy_py.ir.graph.program import Op, Value
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.support.identity import identity
from shardy_py.values import define

RuleOf = Callable[[Op], OpShardingRule | None]


@define(eq=False)
class Tensor:
    """A value of the flat form.

    Args:
        value: A value of the program with its type and sharding.
        maker: The node that makes it; None for a parameter of a section.
        users: The nodes that take it, once per operand.
        depth: The number of loops and branches around the place where it changes.
        is_result: Whether the main function returns it.
        is_kept: Whether it is an argument that is not donated.
        stored_bytes: The bytes that it takes in memory, once `Traffic` knows.
    """

    value: Value
    maker: Node | None = None
    users: list[Node] = Factory(list)
    depth: int = 0
    is_result: bool = False
    is_kept: bool = False
    stored_bytes: int | None = None


@define(eq=False)
class Carried:
    """A value that a loop carries from one iteration to the next.

    Args:
        initial: What it starts as.
        parameters: What it is called in the regions.
        yielded: What an iteration hands on.
        output: The result of the loop.
        is_unchanged: Whether each iteration hands it on as it is.
    """

    initial: Tensor
    parameters: list[Tensor]
    yielded: list[Tensor]
    output: Tensor | None
    is_unchanged: bool = False


@define(eq=False)
class Node:
    """An op, once for each place that runs it.

    Args:
        op: The op.
        kind: Its kind.
        section: The section that it stands in.
        inputs: Its operands.
        outputs: Its results.
        runs: The number of runs on one device.
        parts: How many parts of the whole program's work it stands for; see `Run`.
        depth: The number of loops and branches around the place where it runs.
        is_hoisted: Whether it runs before a loop that it stands in.
        position: Its number in the section.
        sections: Its regions, where it is control flow.
        carried: The values that it carries, where it is a loop.
        work: Its work, once it is counted.
        roots: The roots of the kernels that it is part of, once `Fusion` knows; () for itself.
        is_fusible: Whether it may be computed within the kernel that uses its result, once `Fusion` knows.
    """

    op: Op
    kind: OpKind
    section: Section
    inputs: list[Tensor]
    outputs: Sequence[Tensor] = ()
    runs: float = 1.0
    parts: int = 1
    depth: int = 0
    is_hoisted: bool = False
    position: int = 0
    sections: Sequence[Section] = ()
    carried: Sequence[Carried] = ()
    work: Work = NOTHING
    roots: tuple[Node, ...] = ()
    is_fusible: bool | None = None

    def __repr__(self) -> str:
        return f"Node({self.op.name}, {self.op.id})"


@define(eq=False)
class Section:
    """A region, or the main function.

    Args:
        owner: The node whose region it is; None for the main function.
        parameters: Its arguments.
        nodes: Its nodes, in program order.
        results: What it hands on at its end.
        depth: The number of loops and branches around its nodes.
        runs: The number of its runs on one device.
    """

    owner: Node | None = None
    parameters: list[Tensor] = Factory(list)
    nodes: list[Node] = Factory(list)
    results: list[Tensor] = Factory(list)
    depth: int = 0
    runs: float = 1.0


def walk(section: Section) -> Iterator[Node]:
    """Iterate over the nodes of a section and of the regions in it, a node before its regions."""
    for node in section.nodes:
        yield node
        for inner in node.sections:
            yield from walk(inner)


def put_back(section: Section) -> None:
    """Let hoisted nodes that only move data run where they stand, or as far out as what uses them is hoisted.

    As in XLA's while_loop_invariant_code_motion.cc::NotWorthHoistingIndividually: they fuse into what uses them.
    """
    for node in reversed(section.nodes):
        for inner in node.sections:
            put_back(inner)
        if not node.is_hoisted or not node.kind.is_hoisted_for_users_only:
            continue
        depths = [user.depth for tensor in node.outputs for user in tensor.users]
        users_depth = min([section.depth, *depths])
        place: Section | None = section
        while place is not None and place.depth > users_depth and place.owner is not None:
            place = place.owner.section
        if place is not None and users_depth > node.depth:
            node.depth, node.runs, node.is_hoisted = users_depth, place.runs, users_depth < section.depth
            for tensor in node.outputs:
                tensor.depth = users_depth


def user_in(section: Section, node: Node) -> Node | None:
    """Return the node of a section that is a node or has it in its regions; None where there is none."""
    current: Node | None = node
    while current is not None and current.section is not section:
        current = current.section.owner
    return current


def makers_above(node: Node, first: int) -> set[int]:
    """Return the positions, from a first one on, of the nodes of its section whose results a node needs."""
    positions: set[int] = set()
    waiting = [node]
    while waiting:
        for tensor in read_by(waiting.pop()):
            maker = tensor.maker
            if maker is None or maker.section is not node.section:
                continue
            if maker.position >= first and maker.position not in positions:
                positions.add(maker.position)
                waiting.append(maker)
    return positions


def read_by(node: Node) -> list[Tensor]:
    """Return what a node and its regions read."""
    if not node.sections:
        return node.inputs
    return [*node.inputs, *(tensor for inner in node.sections for other in walk(inner) for tensor in other.inputs)]


def without_repeats(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors, each once."""
    return list({identity(tensor): tensor for tensor in tensors}.values())

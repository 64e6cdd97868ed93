"""Kernels: the ops that a compiler computes together, and the bytes that each kernel reads and writes.

What passes between the ops of a kernel is never written to memory. An op that several kernels use is computed in each
of them if it is cheap (as in instruction_fusion.cc), and stored otherwise.
A halo is sliced off in a kernel of its own, which computes once more what it slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import Factory, evolve, field

from shardy_py.analysis.cost.flops import Work
from shardy_py.analysis.cost.graph import Node, Section, Tensor
from shardy_py.ir.interfaces import Broadcast, ConstantLike, Elementwise, PassThrough, Reduction
from shardy_py.ir.types import static_shape
from shardy_py.plugins import Registry
from shardy_py.values import define

_FUSIBLE = frozenset((Elementwise, Broadcast, ConstantLike, PassThrough))
_SLICE = "sdy.all_slice"
_MOST_BETWEEN = 200
"""The number of ops between an op and its user that are looked at; behind more of them, it is taken as stored."""


@define(eq=False)
class Kernel:
    """Nodes that are computed together.

    Args:
        root: The last one, whose results are stored; for a halo, the node that it is for.
        nodes: All of them, in program order.
        is_halo: Whether it is computed to be sliced and sent.
    """

    root: Node
    nodes: list[Node] = Factory(list)
    is_halo: bool = False


@define(eq=False)
class Fusion:
    """The kernels of a program.

    Args:
        registry: The definitions of ops.
        works: The work of each node, by its id.
        slices: For tensors, by id, the nodes that stand for the slices of them that are sent as halos.
        kernels: The kernels, in the order of their roots.
    """

    registry: Registry
    works: dict[int, Work]
    slices: dict[int, list[Node]] = Factory(dict)
    kernels: list[Kernel] = field(factory=list, init=False)
    _roots: dict[int, tuple[Node, ...]] = field(factory=dict, init=False)
    _fusible: dict[int, bool] = field(factory=dict, init=False)

    def add(self, section: Section) -> None:
        """Divide the nodes of a section, and of the regions in it, into kernels."""
        escaping = {id(tensor) for tensor in section.results}
        found: dict[int, Kernel] = {}
        for node in reversed(section.nodes):
            for inner in node.sections:
                self.add(inner)
            roots = self._find_roots(node, escaping)
            self._roots[id(node)] = roots
            for root in roots:
                found.setdefault(id(root), Kernel(root)).nodes.append(node)
        for node in section.nodes:
            kernel = found.pop(id(node), None)
            if kernel is not None:
                kernel.nodes.reverse()
                self.kernels.append(kernel)
        for kernel in found.values():
            kernel.nodes.reverse()
            self.kernels.append(evolve(kernel, is_halo=True))

    def roots_of(self, node: Node) -> tuple[Node, ...]:
        """Return the roots of the kernels that a node is part of."""
        return self._roots.get(id(node), (node,))

    def is_stored(self, tensor: Tensor) -> bool:
        """Return whether a value lies in memory."""
        maker = tensor.maker
        if maker is None:
            return True
        roots = self._roots.get(id(maker))
        return roots is None or (len(roots) == 1 and roots[0] is maker)

    def is_fusible(self, node: Node) -> bool:
        """Return whether a node may be computed within the kernel that uses its result."""
        found = self._fusible.get(id(node))
        if found is None:
            found = self._fusible[id(node)] = self._may_fuse(node)
        return found

    def _find_roots(self, node: Node, escaping: set[int]) -> tuple[Node, ...]:
        if not self.is_fusible(node) or any(id(tensor) in escaping for tensor in node.outputs):
            return (node,)
        users = [user for tensor in node.outputs for user in tensor.users]
        if not users or not all(self._takes(user, node) for user in users):
            return (node,)
        if len(users) == 1 and not self.slices:
            roots = self.roots_of(users[0])
        else:
            slices = [item for tensor in node.outputs for item in self.slices.get(id(tensor), ())]
            roots = (*{id(root): root for user in users for root in self.roots_of(user)}.values(), *slices)
        if len(roots) > 1 and not self._is_computed_again(node, users):
            return (node,)
        return roots

    def _takes(self, user: Node, node: Node) -> bool:
        """Return whether a user computes a node in its own kernel."""
        if user.section is not node.section or user.depth != node.depth:
            return False
        return self.is_fusible(user) or self.registry.has_trait(user.op, Reduction)

    def _may_fuse(self, node: Node) -> bool:
        if node.sections or not node.outputs:
            return False
        if node.op.name == _SLICE:
            return True
        if not self.registry.get_traits(node.op).isdisjoint(_FUSIBLE):
            return True
        cost = self.registry.get_cost(node.op)
        return cost is not None and cost.is_fusible(node.op)

    def _is_computed_again(self, node: Node, users: Sequence[Node]) -> bool:
        """Return whether several kernels compute a node: it is cheap, and either reads little or is stored nowhere.

        As in XLA's instruction_fusion.cc::ComputeGloballyUnfusible, EffectivelyAtMostUnary and CanFuseOnAllPaths.
        """
        if self.works[id(node)].transcendentals:
            return False
        if sum(1 for tensor in node.inputs if static_shape(tensor.value.type) not in ((), (1,))) <= 1:
            return True
        distinct = {id(user): user for user in users}.values()
        return not any(self._is_split(node, user) for user in distinct)

    def _is_split(self, node: Node, user: Node) -> bool:
        """Return whether a stored value stands between a node and one of its users."""
        between = self._before(user, node)
        if between is None:
            return True
        reached = {id(node)}
        for other in sorted(between, key=lambda item: item.position):
            if self._gets_halo(other, reached):
                return True
            if any(id(tensor.maker) in reached for tensor in other.inputs if tensor.maker is not None):
                if self.roots_of(other) == (other,):
                    return True
                reached.add(id(other))
        return self._gets_halo(user, reached)

    def _gets_halo(self, node: Node, makers: set[int]) -> bool:
        """Return whether a node reads a halo of what one of some nodes makes."""
        return any(id(tensor) in self.slices and id(tensor.maker) in makers for tensor in node.inputs)

    def _before(self, user: Node, node: Node) -> list[Node] | None:
        """Return the nodes behind a node that lead to its user, without the latter; None where they are many."""
        found: dict[int, Node] = {}
        waiting = [user]
        while waiting:
            for tensor in waiting.pop().inputs:
                maker = tensor.maker
                if maker is None or maker.section is not node.section or maker.position <= node.position:
                    continue
                if id(maker) not in found:
                    found[id(maker)] = maker
                    waiting.append(maker)
            if len(found) > _MOST_BETWEEN:
                return None
        return list(found.values())

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self.kernels)

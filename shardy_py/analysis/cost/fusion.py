"""Kernels: the ops that a compiler computes together, and the bytes that each kernel reads and writes.

What passes between the ops of a kernel is never written to memory. An op that several kernels use is computed in each
of them if it is cheap (as in instruction_fusion.cc), and stored otherwise.
A halo is sliced off in a kernel of its own, which computes once more what it slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import Factory, evolve, field

from shardy_py.analysis.cost.graph import Node, Section, Tensor
from shardy_py.analysis.cost.library import LibraryKernels
from shardy_py.analysis.cost.repeats import Repeats
from shardy_py.ir.types import static_shape
from shardy_py.values import define

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
        slices: For tensors, by id, the nodes that stand for the slices of them that are sent as halos.
        library: Finds the kernels that a library computes, or None for none.
        repeats: Counts how often the code of an op stands in a kernel, or None where that does not matter.
        kernels: The kernels, in the order of their roots.
    """

    slices: dict[int, list[Node]] = Factory(dict)
    library: LibraryKernels | None = None
    repeats: Repeats | None = None
    kernels: list[Kernel] = field(factory=list, init=False)
    _library_roots: dict[int, Node] = field(factory=dict, init=False)

    def add(self, section: Section) -> None:
        """Divide the nodes of a section, and of the regions in it, into kernels."""
        escaping = {id(tensor) for tensor in section.results}
        if self.library is not None:
            self._library_roots |= self.library.find(section, escaping)
        found: dict[int, Kernel] = {}
        for node in reversed(section.nodes):
            for inner in node.sections:
                self.add(inner)
            roots = node.roots = self._find_roots(node, escaping)
            for root in roots:
                kernel = found.get(id(root))
                if kernel is None:
                    kernel = found[id(root)] = Kernel(root)
                kernel.nodes.append(node)
        for node in section.nodes:
            if id(node) in found:
                kernel = found.pop(id(node))
                kernel.nodes.reverse()
                self.kernels.append(kernel)
        for kernel in found.values():
            kernel.nodes.reverse()
            self.kernels.append(evolve(kernel, is_halo=True))

    def roots_of(self, node: Node) -> tuple[Node, ...]:
        """Return the roots of the kernels that a node is part of."""
        return node.roots or (node,)

    def is_stored(self, tensor: Tensor) -> bool:
        """Return whether a value lies in memory."""
        maker = tensor.maker
        if maker is None:
            return True
        roots = maker.roots
        return not roots or (roots[0] is maker and len(roots) == 1)

    def is_fusible(self, node: Node) -> bool:
        """Return whether a node may be computed within the kernel that uses its result."""
        found = node.is_fusible
        if found is None:
            found = node.is_fusible = self._may_fuse(node)
        return found

    def is_in_library(self, node: Node) -> bool:
        """Return whether a kernel of the library computes a node."""
        return id(node) in self._library_roots

    def is_own_kernel(self, node: Node) -> bool:
        """Return whether the compiler's own kernels compute a node with what makes its operands, and in any layout."""
        return self.is_fusible(node) and id(node) not in self._library_roots

    def _find_roots(self, node: Node, escaping: set[int]) -> tuple[Node, ...]:
        taken = self._library_roots.get(id(node))
        if taken is not None:
            return (taken,)
        if not self.is_fusible(node):
            return (node,)
        users: list[Node] = []
        for tensor in node.outputs:
            if id(tensor) in escaping:
                return (node,)
            users += tensor.users
        if not users:
            return (node,)
        section, depth = node.section, node.depth
        # A user takes a node into its own kernel.
        for user in users:
            if user.section is not section or user.depth != depth or id(user) in self._library_roots:
                return (node,)
            if not (user.kind.is_reduction or self.is_fusible(user)):
                return (node,)
        if len(users) == 1 and not self.slices:
            roots = self.roots_of(users[0])
        else:
            slices = [item for tensor in node.outputs for item in self.slices.get(id(tensor), ())]
            roots = (*{id(root): root for user in users for root in self.roots_of(user)}.values(), *slices)
        if len(roots) > 1 and not self._is_computed_again(node, users):
            return (node,)
        if self.repeats is not None and not self._has_halo(node) and not self.repeats.add(node, users, roots):
            return (node,)
        return roots

    def _has_halo(self, node: Node) -> bool:
        """Return whether a node reads a halo, which the partitioner makes other ops for."""
        return bool(self.slices) and any(id(tensor) in self.slices for tensor in node.inputs)

    def _may_fuse(self, node: Node) -> bool:
        kind = node.kind
        if node.sections or not node.outputs:
            return False
        if kind.is_fusible:
            return True
        return kind.has_fusible and kind.cost is not None and kind.cost.is_fusible(node.op)

    def _is_computed_again(self, node: Node, users: Sequence[Node]) -> bool:
        """Return whether several kernels compute a node: it is cheap, and either reads little or is stored nowhere.

        As in XLA's instruction_fusion.cc::ComputeGloballyUnfusible, EffectivelyAtMostUnary and CanFuseOnAllPaths.
        """
        if node.work.transcendentals or (node.kind.has_expensive and self._is_expensive(node)):
            return False
        if sum(1 for tensor in node.inputs if static_shape(tensor.value.type) not in ((), (1,))) <= 1:
            return True
        distinct = {id(user): user for user in users}.values()
        return not any(self._is_split(node, user) for user in distinct)

    def _is_expensive(self, node: Node) -> bool:
        return node.kind.cost is not None and node.kind.cost.is_expensive(node.op)

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

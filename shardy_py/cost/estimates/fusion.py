"""Kernels: the ops that a compiler computes together, and the bytes that each kernel reads and writes.

What passes between the ops of a kernel is never written to memory. An op that several kernels use is computed in each
of them if it is cheap (as in instruction_fusion.cc), and stored otherwise.
A halo is sliced off in a kernel of its own, which computes once more what it slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from attrs import Factory, evolve, field

from shardy_py.cost.estimates.graph import Node, Section, Tensor
from shardy_py.cost.estimates.library_kernels import LibraryKernels, Repeats
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.ops import Broadcast, Reduction
from shardy_py.support.identity import identity
from shardy_py.values import define

_MOST_BETWEEN = 200
"""The number of ops between an op and its user that are looked at; behind more of them, it is taken as stored."""


@define(eq=False)
class CostKernel:
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
class CostFusion:
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
    kernels: list[CostKernel] = field(factory=list, init=False)
    _library_roots: dict[int, Node] = field(factory=dict, init=False)

    def add(self, section: Section) -> None:
        """Divide the nodes of a section, and of the regions in it, into kernels."""
        escaping = {identity(tensor) for tensor in section.results}
        if self.library is not None:
            self._library_roots |= self.library.find(section, escaping)
        kernels: dict[int, CostKernel] = {}
        for node in reversed(section.nodes):
            for inner in node.sections:
                self.add(inner)
            roots = node.roots = self._find_roots(node, escaping)
            for root in roots:
                kernel = kernels.get(identity(root))
                if kernel is None:
                    kernel = kernels[identity(root)] = CostKernel(root)
                kernel.nodes.append(node)
        for node in section.nodes:
            if identity(node) in kernels:
                kernel = kernels.pop(identity(node))
                kernel.nodes.reverse()
                self.kernels.append(kernel)
        for kernel in kernels.values():
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
        return not maker.roots or maker.roots[0] is maker

    def is_fusible(self, node: Node) -> bool:
        """Return whether a node may be computed within the kernel that uses its result."""
        is_fusible = node.is_fusible
        if is_fusible is None:
            is_fusible = node.is_fusible = self._may_fuse(node)
        return is_fusible

    def is_in_library(self, node: Node) -> bool:
        """Return whether a kernel of the library computes a node."""
        return identity(node) in self._library_roots

    def is_own_kernel(self, node: Node) -> bool:
        """Return whether the compiler's own kernels compute a node with what makes its operands, and in any layout."""
        return self.is_fusible(node) and identity(node) not in self._library_roots

    def _find_roots(self, node: Node, escaping: set[int]) -> tuple[Node, ...]:
        library_root = self._library_roots.get(identity(node))
        if library_root is not None:
            return (library_root,)
        if not self.is_fusible(node):
            return (node,)
        users = [user for tensor in node.outputs for user in tensor.users]
        takers = [user for user in users if self._takes(user, node)]
        if not takers:
            return (node,)
        is_kept = len(takers) < len(users) or any(identity(tensor) in escaping for tensor in node.outputs)
        roots = [*{identity(root): root for user in takers for root in self.roots_of(user)}.values()]
        if self.slices:
            roots += [item for tensor in node.outputs for item in self.slices.get(identity(tensor), ())]
        if (is_kept or len(roots) > 1) and not self._is_repeated(node, takers, is_kept=is_kept):
            return (node,)
        if self.repeats is None or self.slices:
            # The partitioner makes other ops for halos, whose code is not known.
            fusing = roots
        else:
            fusing = list(self._fusing_roots(self.repeats, node, takers, roots, len(users) - len(takers)))
        return (*((node,) if is_kept or len(fusing) < len(roots) else ()), *fusing)

    def _takes(self, user: Node, node: Node) -> bool:
        """Return whether a user takes a node into its own kernel."""
        if user.section is not node.section or user.depth != node.depth or identity(user) in self._library_roots:
            return False
        return Reduction in user.kind.traits or self.is_fusible(user)

    def _fusing_roots(
        self, repeats: Repeats, node: Node, users: Sequence[Node], roots: Sequence[Node], others: int
    ) -> Iterator[Node]:
        """Yield the roots of the kernels that take a node: those whose code is not repeated too often with it.

        Args:
            repeats: Counts code.
            node: The node.
            users: Those that may take it.
            roots: The roots of their kernels.
            others: The number of its other users.
        """
        counts = {identity(root): sum(root is user or root in user.roots for user in users) for root in roots}
        readers = others + sum(counts.values())
        for root in sorted(roots, key=lambda item: -item.position):
            if repeats.add(node, users, (root,), readers=readers):
                readers -= counts[identity(root)]
                yield root

    def _may_fuse(self, node: Node) -> bool:
        kind = node.kind
        if node.sections or not node.outputs:
            return False
        if kind.is_fusible:
            return True
        return kind.implements("is_fusible") and kind.cost is not None and kind.cost.is_fusible(node.op)

    def _is_repeated(self, node: Node, users: Sequence[Node], *, is_kept: bool) -> bool:
        """Return whether several kernels compute a node: it is cheap, and either reads little or is stored nowhere.

        As in XLA's instruction_fusion.cc::ComputeGloballyUnfusible, EffectivelyAtMostUnary and CanFuseOnAllPaths. Halos
        are joined and masked, which splits kernels otherwise than here; what is stored is not computed again then.

        Args:
            node: The node.
            users: Those that may take it into their kernels.
            is_kept: Whether it is stored for other ones.
        """
        if not self._is_cheap(node) or (is_kept and self.slices):
            return False
        if self._reads_little(node):
            return True
        distinct = {identity(user): user for user in users}.values()
        return not is_kept and not any(self._is_split(node, user) for user in distinct)

    def _is_cheap(self, node: Node) -> bool:
        if node.kind.implements("is_expensive") and node.kind.cost is not None:
            return not node.kind.cost.is_expensive(node.op)
        return not node.work.transcendentals

    def _reads_little(self, node: Node) -> bool:
        """Return whether a node reads one tensor at most of as many dimensions as its results, or as few elements."""
        if self.slices:
            return sum(1 for tensor in node.inputs if static_shape(tensor.value.type) not in ((), (1,))) <= 1
        inputs = {identity(tensor): tensor for tensor in node.inputs}.values()
        rank = max(map(_true_rank, node.outputs), default=0)
        if sum(_true_rank(tensor) >= rank for tensor in inputs if not _is_broadcast(tensor)) <= 1:
            return True
        return sum(map(_elements, inputs)) <= sum(map(_elements, node.outputs))

    def _is_split(self, node: Node, user: Node) -> bool:
        """Return whether a stored value stands between a node and one of its users."""
        between = self._before(user, node)
        if between is None:
            return True
        reached = {identity(node)}
        for other in sorted(between, key=lambda item: item.position):
            if self._gets_halo(other, reached):
                return True
            if any(identity(tensor.maker) in reached for tensor in other.inputs if tensor.maker is not None):
                if self.roots_of(other)[0] is other:
                    return True
                reached.add(identity(other))
        return self._gets_halo(user, reached)

    def _gets_halo(self, node: Node, makers: set[int]) -> bool:
        """Return whether a node reads a halo of what one of some nodes makes."""
        return any(identity(tensor) in self.slices and identity(tensor.maker) in makers for tensor in node.inputs)

    def _before(self, user: Node, node: Node) -> list[Node] | None:
        """Return the nodes on the paths between a node and its user; None where they are too many."""
        between: dict[int, Node] = {}
        waiting = [user]
        while waiting:
            for tensor in waiting.pop().inputs:
                maker = tensor.maker
                if maker is None or maker.section is not node.section or maker.position <= node.position:
                    continue
                if identity(maker) not in between:
                    between[identity(maker)] = maker
                    waiting.append(maker)
            if len(between) > _MOST_BETWEEN:
                return None
        return list(between.values())

    def __iter__(self) -> Iterator[CostKernel]:
        return iter(self.kernels)


def _true_rank(tensor: Tensor) -> int:
    """Return the number of dimensions of more than one element."""
    return sum(size > 1 for size in static_shape(tensor.value.type) or ())


def _is_broadcast(tensor: Tensor) -> bool:
    """Return whether a value is a broadcast, or made of nothing."""
    return tensor.maker is not None and (Broadcast in tensor.maker.kind.traits or not tensor.maker.inputs)


def _elements(tensor: Tensor) -> int:
    return prod(static_shape(tensor.value.type) or ())

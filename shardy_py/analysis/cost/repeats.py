"""How often the code of an op stands in a kernel: once for each set of indices that its users compute it at.

As in XLA's fusion_node_indexing_evaluation.cc. An op whose code would stand there too often is stored, and so is one
that is computed in branches, such as a concatenation, where more than one place needs it.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field

from shardy_py.analysis.cost.graph import Node
from shardy_py.analysis.cost.sizes import LocalSizes
from shardy_py.values import define

_MOST = 15
"""The number of places of one op in a kernel."""
_RESULT = 0
"""Stands for the indices of the result of a kernel."""
_Key = tuple[int, int]


@define(eq=False)
class Repeats:
    """Counts the places of ops in kernels; ops are added with their users before them.

    Args:
        sizes: Measures values.
    """

    sizes: LocalSizes
    _indices: dict[_Key, frozenset[int]] = field(factory=dict, init=False)
    _counts: dict[_Key, int] = field(factory=dict, init=False)
    _taken: set[int] = field(factory=set, init=False)

    def add(self, node: Node, users: Sequence[Node], roots: Sequence[Node]) -> bool:
        """Add a node to the kernels of some roots, unless one of them would have its code too often.

        Args:
            node: The node.
            users: What uses it, all in these kernels.
            roots: The roots.

        Returns:
            Whether it is added.
        """
        distinct = [*{id(user): user for user in users}.values()]
        found = {id(root): self._places(node, distinct, root) for root in roots}
        for root, indices in found.items():
            # A first op is taken anyway, and so are broadcasts, which would be larger than what they read.
            if root in self._taken and not node.kind.is_broadcast and self._is_too_often(node, root, indices, distinct):
                return False
        for root, indices in found.items():
            self._indices[root, id(node)] = indices
            self._counts[root, id(node)] = self._count(root, indices)
            if not node.kind.is_constant:
                self._taken.add(root)
        return True

    def _is_too_often(self, node: Node, root: int, indices: frozenset[int], users: Sequence[Node]) -> bool:
        count = self._count(root, indices)
        if count > _MOST:
            return True
        kind = node.kind
        if not kind.has_branches or kind.cost is None or not kind.cost.is_branching(node.op):
            return False
        return count > 1 or len(users) > 1

    def _places(self, node: Node, users: Sequence[Node], root: Node) -> frozenset[int]:
        """Return what gives the indices that a kernel computes a node at: users that change them, or the result."""
        found: frozenset[int] = frozenset()
        shape = self.sizes.shape(node.op.results[0])
        for user in users:
            if user is not root and not any(item is root for item in user.roots):
                continue
            is_kept = user.kind.is_passing or self.sizes.shape(user.op.results[0]) == shape
            default = frozenset((_RESULT,)) if user is root else frozenset((id(user),))
            given = self._indices.get((id(root), id(user)), default) if is_kept else frozenset((id(user),))
            found = given if not found or found is given else found | given
        return found

    def _count(self, root: int, indices: frozenset[int]) -> int:
        return sum(self._counts.get((root, key), 1) for key in indices)

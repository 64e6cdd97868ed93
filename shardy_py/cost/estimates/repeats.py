"""Places of a kernel that the code of an op stands at: one for each set of indices that its users compute it at.

As in XLA's fusion_node_indexing_evaluation.cc. An op whose code would stand there too often is stored, and so is one
that is computed in branches, such as a concatenation, where more than one place needs it.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field

from shardy_py.cost.estimates.graph import Node
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.support.identity import identity
from shardy_py.values import define

_MOST = 15
"""The number of places of one op in a kernel."""
_Places = tuple[frozenset[int], int]
"""The ops that give the indices an op is computed at, by id, and the number of places that its code stands at."""
_OF_RESULT: _Places = (frozenset((0,)), 1)
"""Indices of the result of a kernel."""


@define(eq=False)
class Repeats:
    """Counts the places of ops in kernels; ops are added with their users before them.

    Args:
        sizes: Measures values.
    """

    sizes: LocalSizes
    _kernels: dict[int, dict[int, _Places]] = field(factory=dict, init=False)

    def add(self, node: Node, users: Sequence[Node], roots: Sequence[Node], *, readers: int | None = None) -> bool:
        """Add a node to the kernels of some roots, unless one of them would have its code too often.

        Args:
            node: The node.
            users: What uses it in these kernels.
            roots: The roots.
            readers: The number of its users that no kernel has taken it into; None for that of users.

        Returns:
            Whether it is added.
        """
        if len(users) > 1:
            users = [*{identity(user): user for user in users}.values()]
        found: list[tuple[dict[int, _Places], _Places]] = []
        for root in roots:
            kernel = self._kernels.get(identity(root))
            if kernel is None:
                kernel = self._kernels[identity(root)] = {}
            places = self._places(node, users, root, kernel)
            # A first op is taken anyway, and so are broadcasts, which would be larger than what they read.
            if (
                kernel
                and not node.kind.is_broadcast
                and self._is_too_often(node, places[1], len(users) if readers is None else readers)
            ):
                return False
            found.append((kernel, places))
        if not node.kind.is_constant:
            for kernel, places in found:
                kernel[identity(node)] = places
        return True

    def _is_too_often(self, node: Node, count: int, users: int) -> bool:
        if count > _MOST:
            return True
        kind = node.kind
        if not kind.has_branches or (count == 1 and users == 1):
            return False
        return kind.cost is not None and kind.cost.is_branching(node.op)

    def _places(self, node: Node, users: Sequence[Node], root: Node, kernel: dict[int, _Places]) -> _Places:
        """Return the places of a node in a kernel: those of its users, or one for each place of a user that moves."""
        shape = self.sizes.shape(node.op.results[0])
        parts: list[_Places] = []
        for user in users:
            if user is not root and root not in user.roots:
                continue
            places = kernel.get(identity(user), _OF_RESULT)
            if not (user.kind.is_passing or self.sizes.shape(user.op.results[0]) == shape):
                places = frozenset((identity(user),)), places[1]
            if not any(places[0] == other[0] for other in parts):
                parts.append(places)
        if len(parts) == 1:
            return parts[0]
        indices = frozenset().union(*(part[0] for part in parts))
        counts = {0: _OF_RESULT[1]} | {key: kernel.get(key, _OF_RESULT)[1] for key in indices if key}
        return indices, sum(counts[key] for key in indices)

"""Kernels of a library, such as YNNPACK on CPUs: reductions with the ops around them.

As in XLA's library_rewriter.cc: a kernel grows from a reduction, of those that are in none yet the last one first, to
what makes its operands and nothing else uses, and to its only user. No other kernel computes again what it takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from attrs import field

from shardy_py.cost.estimates.graph import Node, Section
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.ir.interfaces.costs import OpShapes
from shardy_py.ir.interfaces.ops import Broadcast, ConstantLike, PassThrough, Reduction
from shardy_py.support.identity import identity
from shardy_py.values import define


@define(eq=False)
class LibraryKernels:
    """Finds kernels of the library.

    Args:
        sizes: Measures values.
    """

    sizes: LocalSizes
    _operands: dict[int, frozenset[int] | None] = field(factory=dict, init=False)

    def find(self, section: Section, escaping: set[int]) -> dict[int, Node]:
        """Return the last node of the kernel that computes a node, by its id, for all that the library computes.

        Args:
            section: The section, without the regions in it.
            escaping: The ids of the tensors that it hands on.
        """
        last_nodes: dict[int, Node] = {}
        for node in reversed(section.nodes):
            if (
                Reduction in node.kind.traits
                and identity(node) not in last_nodes
                and self.operands_of(node) is not None
            ):
                inside = _Growth(self, section, escaping, last_nodes).grow(node)
                last = max(inside, key=lambda item: item.position)
                last_nodes.update((identity(item), last) for item in inside)
        return last_nodes

    def operands_of(self, node: Node) -> frozenset[int] | None:
        """Return the numbers of the operands whose makers a kernel may compute with a node, if the library has it."""
        key = identity(node)
        if key not in self._operands:
            self._operands[key] = self._library_operands(node)
        return self._operands[key]

    def _library_operands(self, node: Node) -> frozenset[int] | None:
        op, kind = node.op, node.kind
        if ConstantLike in kind.traits:
            return frozenset()
        if not kind.implements("get_library_operands") or kind.cost is None or node.sections:
            return None
        shapes = OpShapes(tuple(map(self.sizes.shape, op.operands)), tuple(map(self.sizes.shape, op.results)))
        operands = kind.cost.get_library_operands(op, shapes)
        return None if operands is None else frozenset(operands)


@define(eq=False)
class _Growth:
    library: LibraryKernels
    section: Section
    escaping: set[int]
    last_nodes: dict[int, Node]
    _inside: dict[int, Node] = field(factory=dict, init=False)

    def grow(self, start: Node) -> list[Node]:
        """Return the nodes of the kernel around one."""
        self._inside[identity(start)] = start
        count = 0
        # What a kernel takes downwards may be the last other user of something above.
        while count != len(self._inside):
            count = len(self._inside)
            waiting = deque((*self._above(start), *self._below(start)))
            for node in [*self._inside.values()][1:]:
                waiting += (*self._above(node), *self._below(node))
            while waiting:
                node, is_below = waiting.popleft()
                if identity(node) in self._inside or self.library.operands_of(node) is None:
                    continue
                self._inside[identity(node)] = node
                waiting += self._below(node) if is_below else self._above(node)
        return [*self._inside.values()]

    def _above(self, node: Node) -> Iterator[tuple[Node, bool]]:
        """Yield what makes the operands of a node, and only nodes of the kernel use."""
        for tensor in node.inputs:
            maker = tensor.maker
            if maker is None or not self._is_free(maker, node) or identity(tensor) in self.escaping:
                continue
            if all(identity(user) in self._inside for user in tensor.users):
                yield maker, False

    def _below(self, node: Node) -> Iterator[tuple[Node, bool]]:
        """Yield the only user of a node, if it goes on from it."""
        if len(node.outputs) != 1 or identity(node.outputs[0]) in self.escaping:
            return
        users = {identity(user): user for user in node.outputs[0].users}
        if len(users) == 1:
            (user,) = users.values()
            if self._is_free(user, node) and self._leads_on(node, user):
                yield user, True

    def _is_free(self, node: Node, other: Node) -> bool:
        return identity(node) not in self.last_nodes and node.section is self.section and node.depth == other.depth

    def _leads_on(self, node: Node, user: Node) -> bool:
        """Return whether a user goes on from a node; a broadcast does only if all go on that may."""
        numbers = self.library.operands_of(user)
        if numbers is None or any(
            tensor is node.outputs[0] and number not in numbers for number, tensor in enumerate(user.inputs)
        ):
            return False
        if Broadcast not in user.kind.traits:
            return True
        followers = [item for item in user.outputs[0].users if self.library.operands_of(item) is not None]
        return all(self._leads_on(user, item) for item in followers)


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
        additions: list[tuple[dict[int, _Places], _Places]] = []
        for root in roots:
            kernel = self._kernels.get(identity(root))
            if kernel is None:
                kernel = self._kernels[identity(root)] = {}
            places = self._places(node, users, root, kernel)
            # A first op is taken anyway, and so are broadcasts, which would be larger than what they read.
            if (
                kernel
                and Broadcast not in node.kind.traits
                and self._is_too_often(node, places[1], len(users) if readers is None else readers)
            ):
                return False
            additions.append((kernel, places))
        if ConstantLike not in node.kind.traits:
            for kernel, places in additions:
                kernel[identity(node)] = places
        return True

    def _is_too_often(self, node: Node, count: int, users: int) -> bool:
        if count > _MOST:
            return True
        kind = node.kind
        if not kind.implements("is_branching") or (count == 1 and users == 1):
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
            if not (PassThrough in user.kind.traits or self.sizes.shape(user.op.results[0]) == shape):
                places = frozenset((identity(user),)), places[1]
            if not any(places[0] == other[0] for other in parts):
                parts.append(places)
        if len(parts) == 1:
            return parts[0]
        indices = frozenset().union(*(part[0] for part in parts))
        counts = {0: _OF_RESULT[1]} | {key: kernel.get(key, _OF_RESULT)[1] for key in indices if key}
        return indices, sum(counts[key] for key in indices)

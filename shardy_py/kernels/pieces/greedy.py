"""Pieces of a program that can become kernels, found greedily from its outputs: a simple stand-in for XLA's fusion.

The rule: ops are looked at from the last to the first. An op joins the piece of its users if these all are in one
piece, so that nothing is computed twice; otherwise it is the root of a piece of its own. A value that the function
returns, or that an op outside of all pieces uses, is a root. An op that combines elements joins a piece only where the
piece reads each of its results once, and a piece has one such op. Constants, and what is made of one constant alone,
are in every piece that uses them. Ops that no kernel can have inside, contractions among them, are in no piece. What
makes the operand of a scatter, which is updated in its own memory, and what reads it do not join the scatter's piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import field

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.ir.interfaces.ops import Bitcast, Contraction, Elementwise, LibraryCall, Reduction, Reshape, Scatter
from shardy_py.kernels.fusion.fusion import Fusion, Layouts
from shardy_py.kernels.fusion.reductions import real_reduction
from shardy_py.kernels.fusion.refusals import problems_of_ops, problems_of_values
from shardy_py.kernels.fusion.scatters import form_problem
from shardy_py.plugins import Registry
from shardy_py.support.identity import identity
from shardy_py.values import define

PieceCallback = Callable[[int, int, str], None]
"""Receiver of the number of pieces that are made, of how many there are, and of the name of the next one."""


def no_callback(done: int, total: int, name: str) -> None:
    """Report nothing."""


def kernel_problem(op: Op, registry: Registry) -> Diagnostic | None:
    """Return why an op is in no piece; None for one that computes its elements one by one, or is a simple scatter."""
    if not op.results:
        return Diagnostic("no-results", "it has no results that a kernel could write", op.location, op.name)
    problem = next(iter(problems_of_values(op.operands, [op])), None)
    if problem is not None:
        return problem
    if registry.has_trait(op, Contraction):
        hint = "shardy_py.kernels.piece_of makes a kernel of it all the same"
        return Diagnostic("contraction", "contractions are left to libraries", op.location, op.name, hint)
    if registry.has_trait(op, LibraryCall):
        return Diagnostic("library", "a library computes it by a routine of its own", op.location, op.name)
    if is_scatter(op, registry):
        reason = form_problem(op)
        return Diagnostic("scatter-form", reason, op.location, op.name) if reason else None
    return next(iter(problems_of_ops([op], registry)), None)


def can_be_in_kernel(op: Op, registry: Registry) -> bool:
    """Return whether an op computes its elements one by one, or is a scatter that a kernel may end with."""
    return kernel_problem(op, registry) is None


def is_scatter(op: Op, registry: Registry) -> bool:
    """Return whether an op combines updates by its region into places that are known at run time."""
    return bool(op.regions) and registry.has_trait(op, Scatter)


@define(eq=False)
class _Piece:
    """A piece while it grows.

    Attributes:
        root: The op that it ends with.
        ops: The ids of its ops.
        at_root: The ids of those of which each element is read once, for the element of the root at its place.
        has_reduction: Whether one of them combines elements.
    """

    root: Op
    ops: set[int] = field(factory=set)
    at_root: set[int] = field(factory=set)
    has_reduction: bool = False


def is_control_flow(op: Op, registry: Registry) -> bool:
    """Return whether an op runs its regions: a loop or a branch."""
    return bool(op.regions) and registry.get_data_flow(op) is not None


def pieces_of(
    blocks: Sequence[Block], registry: Registry, layouts: Layouts, *, on_piece: PieceCallback = no_callback
) -> list[Fusion]:
    """Return the pieces of blocks, those of each block in the order of their roots.

    Args:
        blocks: The blocks; no op of one is in a piece of another one.
        registry: What is known about the ops.
        layouts: The layouts of values that are not row-major.
        on_piece: Called before each piece is made.
    """
    pieces: list[tuple[_Walk, _Piece]] = []
    for block in blocks:
        walk = _Walk(block, registry)
        pieces += [(walk, piece) for piece in sorted(walk.pieces(), key=walk.number_of)]
    fusions = []
    for number, (walk, piece) in enumerate(pieces):
        name = f"{_short(piece.root)}_{number}"
        on_piece(number, len(pieces), name)
        fusions.append(walk.fusion(piece, name, layouts))
    return fusions


def piece_of(roots: Sequence[Op], registry: Registry, *, name: str = "", layouts: Layouts | None = None) -> Fusion:
    """Return the piece of a program that ends with some ops: these, and what they are computed from.

    Args:
        roots: The ops, all in one block.
        registry: What is known about the ops.
        name: The name of the kernel; by default that of the first op.
        layouts: The layouts of values that are not row-major.

    Raises:
        UnsupportedError: one of the ops can be in no kernel.
    """
    members: dict[int, Op] = {}
    pending = list(roots)
    while pending:
        op = pending.pop()
        if op.id in members:
            continue
        members[op.id] = op
        producers = [value.defining_op for value in op.operands]
        pending += [item for item in producers if item is not None and _continues(item, registry)]
    results = [value for op in roots for value in op.results]
    return _fusion(members, results, name or _short(roots[0]), registry, layouts or {})


def _continues(op: Op, registry: Registry) -> bool:
    return can_be_in_kernel(op, registry) and not is_scatter(op, registry)


def _short(op: Op) -> str:
    return op.name.rpartition(".")[2]


class _Walk:
    """The walk from the last op of a block to the first."""

    def __init__(self, block: Block, registry: Registry) -> None:
        self._registry = registry
        self._ops = {op.id: op for op in block.ops if can_be_in_kernel(op, registry)}
        self.numbers = {op.id: number for number, op in enumerate(block.ops)}
        self._copied: set[int] = set()
        for op in self._ops.values():
            if self._is_copied(op):
                self._copied.add(op.id)
        # What a scatter updates has to be in memory, also where it is made of one constant.
        self._in_memory = {number for op in self._ops.values() for number in self._updated(op)}

    def number_of(self, piece: _Piece) -> int:
        """Return the number of a piece's root in the block."""
        return self.numbers[piece.root.id]

    def _is_copied(self, op: Op) -> bool:
        """Return whether an op makes its elements of nothing or of one constant."""
        producers = [value.defining_op for value in op.operands]
        if len(producers) > 1 or self._combines(op):
            return False
        return all(item is not None and item.id in self._copied for item in producers)

    def pieces(self) -> Iterable[_Piece]:
        """Return the pieces."""
        owners: dict[int, _Piece] = {}
        unused: set[int] = set()
        for op in reversed(self._ops.values()):
            users = {user.id: user for value in op.results for user in value.users if user.id not in unused}
            if not users:
                unused.add(op.id)
            is_copied = op.id in self._copied and self._in_memory.isdisjoint(value.id for value in op.results)
            if not users or (is_copied and all(user in self._ops for user in users)):
                continue
            piece = self._joined(op, users, owners)
            if piece is None:
                piece = _Piece(op)
                piece.at_root.add(op.id)
            piece.ops.add(op.id)
            piece.has_reduction |= self._combines(op)
            owners[op.id] = piece
        return {identity(piece): piece for piece in owners.values()}.values()

    def _combines(self, op: Op) -> bool:
        if self._registry.has_trait(op, Reduction):
            return True
        indexing = self._registry.get_indexing(op) if op.operands else None
        return indexing is not None and any(map_.ranges for map_ in indexing.output_to_input)

    def _joined(self, op: Op, users: Mapping[int, Op], owners: Mapping[int, _Piece]) -> _Piece | None:
        """Return the piece that an op joins, or None where it is a root."""
        user_pieces = {identity(owners[user]): owners[user] for user in users if user in owners}
        if len(user_pieces) != 1 or any(user not in owners for user in users) or is_scatter(op, self._registry):
            return None
        (piece,) = user_pieces.values()
        if any(self._rereads(users[user]) for user in users):
            return None
        updated = self._updated(piece.root)
        if not updated.isdisjoint(value.id for value in (*op.operands, *op.results)):
            return None
        is_at_root = all(user in piece.at_root and self._keeps_places(users[user]) for user in users)
        if self._combines(op) and (piece.has_reduction or not is_at_root or self._would_be_a_loop(op, piece)):
            return None
        if is_at_root:
            piece.at_root.add(op.id)
        return piece

    def _would_be_a_loop(self, op: Op, piece: _Piece) -> bool:
        """Return whether threads share the sums of an op by itself, and each would compute its own in a piece.

        As in XLA, the reduction emitter computes what follows a reduction only through ops of one operand.
        """
        if all(len(self._ops[number].operands) == 1 for number in piece.ops):
            return False
        alone = self.fusion(_Piece(op, {op.id}), _short(op), {})
        return real_reduction(alone, op, op) is not None

    def _rereads(self, op: Op) -> bool:
        """Return whether a scatter that a kernel gathers reads elements once for each window that each is in."""
        return len(op.regions) > 1 and self._registry.get_indexing(op) is None

    def _updated(self, op: Op) -> set[int]:
        """Return the values in whose memory an op writes its results: the operands of a scatter."""
        is_update = is_scatter(op, self._registry)
        return {value.id for value in op.operands[: len(op.results)]} if is_update else set()

    def _keeps_places(self, op: Op) -> bool:
        """Return whether an op reads each element of its operands once."""
        return any(self._registry.has_trait(op, trait) for trait in (Elementwise, Reshape, Bitcast))

    def fusion(self, piece: _Piece, name: str, layouts: Layouts) -> Fusion:
        """Return a piece as a fusion, with the constants that it uses."""
        members = {number: self._ops[number] for number in piece.ops}
        pending, updated = list(members.values()), self._updated(piece.root)
        while pending:
            for value in pending.pop().operands:
                if value.id in updated:
                    continue
                producer = value.defining_op
                if producer is not None and producer.id in self._copied and producer.id not in members:
                    members[producer.id] = producer
                    pending.append(producer)
        results = [value for value in piece.root.results if value.users]
        return _fusion(members, results, name, self._registry, layouts)


def _fusion(
    members: Mapping[int, Op], results: Sequence[Value], name: str, registry: Registry, layouts: Layouts
) -> Fusion:
    """Return the fusion of ops; its parameters are what they read of others, in the order of the program."""
    read = {value.id: value for op in members.values() for value in op.operands}
    outside = [value for value in read.values() if value.defining_op is None or value.defining_op.id not in members]
    parameters = tuple(sorted(outside, key=lambda value: value.id))
    fusion = Fusion(name, parameters, tuple(results), registry, layouts)
    fusion.check()
    return fusion

"""Record of the copies of constants per use: their reasons, their users and their outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import Literal

from attrs import field

from shardy_py.ir.graph.op_names import CALL, NAMED_COMPUTATION
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import is_scalar
from shardy_py.ir.interfaces.ops import Broadcast, ConstantFoldable, ConstantLike, OpSemantics
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define, frozen


class CopyReason(Enum):
    """The reason why an op is copied per use, in words, with the trait that counts."""

    CONSTANT = "constant (ConstantLike)"
    GENERATOR = "generator (ConstantFoldable)"
    FOLDABLE = "folds constants (ConstantFoldable)"
    ELEMENTWISE = "constants only (Elementwise)"
    SCALAR_EXPANSION = "scalar expanded (Broadcast)"
    CALL = "call on constants only"
    NAMED_COMPUTATION = "computation on constants only"


Outcome = Literal["kept", "merged", "removed"]
"""A copy is there, was replaced by one that is sharded alike, or went with what was around it."""

_REGION_OPS = {CALL: CopyReason.CALL, NAMED_COMPUTATION: CopyReason.NAMED_COMPUTATION}


@frozen
class ConstantCopy:
    """One copy of an op for one use.

    Args:
        op: The name of the op, as it was in the given program.
        location: The location of the original, or "".
        type: The type of its result.
        reason: The reason for the copy.
        user: The name of the op that got the copy.
        user_location: The location of that op, or "".
        operand: The number of the user's operand that it is, or is computed into.
        through: The name of the op that the user sees, where the copied one is only a part of what that is computed
            from; else "".
        original: The number of the original, the same for all of its copies, in program order.
        sharding: The sharding of the copy, or of the one that it was merged into; None where it is replicated.
        outcome: ``kept``, ``merged`` or ``removed``.
    """

    op: str
    location: str
    type: str
    reason: CopyReason
    user: str
    user_location: str
    operand: int
    through: str
    original: int
    sharding: TensorSharding | None
    outcome: Outcome


@frozen
class _CopyPerUse:
    """A copy as the pass made it; locations are texts, because the ops may be erased later."""

    original: Op
    copy: Op
    location: str
    reason: CopyReason
    user: Op
    user_location: str
    operand: int
    through: str


@define(eq=False)
class CopyLog:
    """Record of the copies that passes make and merge; without a log they record nothing.

    Args:
        semantics: Answers questions about ops.

    Attributes:
        given_names: The names in the given program of the ops that have another one, by their ids.
    """

    _semantics: OpSemantics
    _copies: list[_CopyPerUse] = field(factory=list, init=False)
    _pending: list[tuple[Op, Op]] = field(factory=list, init=False)
    _merged: dict[int, Op] = field(factory=dict, init=False)
    _replaced: dict[int, Op] = field(factory=dict, init=False)
    given_names: dict[int, str] = field(factory=dict, init=False)
    _stand_ins: list[tuple[Op, Op]] = field(factory=list, init=False)

    def converted(self, op: Op) -> None:
        """Record that a constant of a dialect is about to get another name."""
        self.given_names[op.id] = op.name

    def copied(self, original: Op, copy: Op) -> None:
        """Record a copy; `given` records its user."""
        self._pending.append((original, copy))

    def given(self, user: Op, operand: int) -> None:
        """Record the user of the copies since the last call; the last copy is the operand itself."""
        if not self._pending:
            return
        root = self._pending[-1][0]
        for original, copy in self._pending:
            through = "" if original is root else root.name
            reason = self._reason(original)
            self._copies.append(
                _CopyPerUse(original, copy, original.location, reason, user, user.location, operand, through)
            )
        self._pending.clear()

    def merged(self, op: Op, remaining: Op) -> None:
        """Record that an op is about to be replaced by an equal one."""
        self._merged[op.id] = remaining

    def replaced(self, op: Op, stand_in: Op) -> None:
        """Record that another op replaces an op: a named computation a call, or the other way round."""
        self._replaced[op.id] = stand_in
        self._stand_ins.append((op, stand_in))

    def stand_ins(self) -> Iterator[tuple[Op, Op, Op | None]]:
        """Yield each replaced or copied op, its replacement or copy, and the user of a copy per use."""
        yield from ((op, stand_in, None) for op, stand_in in self._stand_ins)
        for copy in self._copies:
            yield copy.original, copy.copy, copy.user

    def report(self, program: Program) -> tuple[ConstantCopy, ...]:
        """Return the copies by original, in the order in which passes made them.

        An original that its only copy replaced is left out: the number of ops is the same.
        """
        counts = Counter(item.original.id for item in self._copies)
        counts.update({item.original.id for item in self._copies if self._is_left(item.original, program)})
        originals = list(dict.fromkeys(item.original.id for item in self._copies if counts[item.original.id] > 1))
        numbers = {id_: number for number, id_ in enumerate(originals)}
        copies = sorted(
            (item for item in self._copies if item.original.id in numbers), key=lambda item: numbers[item.original.id]
        )
        return tuple(self._entry(item, numbers[item.original.id], program) for item in copies)

    def _entry(self, item: _CopyPerUse, number: int, program: Program) -> ConstantCopy:
        present, is_merged = item.copy, False
        while (following := self._merged.get(present.id) or self._replaced.get(present.id)) is not None:
            is_merged = is_merged or present.id in self._merged
            present = following
        outcome: Outcome = "merged" if is_merged else "kept" if _stands_in(present, program) else "removed"
        return ConstantCopy(
            op=self.given_names.get(item.original.id, item.original.name),
            location=item.location,
            type=", ".join(str(value.type) for value in item.original.results),
            reason=item.reason,
            user=item.user.name,
            user_location=item.user_location,
            operand=item.operand,
            through=item.through,
            original=number,
            sharding=next((program.sharding(value) for value in present.results), None),
            outcome=outcome,
        )

    def _is_left(self, op: Op, program: Program) -> bool:
        return op.id in self._merged or _stands_in(op, program)

    def _reason(self, op: Op) -> CopyReason:
        if op.name in _REGION_OPS:
            return _REGION_OPS[op.name]
        traits = self._semantics.get_traits(op)
        if ConstantLike in traits:
            return CopyReason.CONSTANT
        if Broadcast in traits and len(op.operands) == 1 and is_scalar(op.operands[0].type):
            return CopyReason.SCALAR_EXPANSION
        if ConstantFoldable not in traits:
            return CopyReason.ELEMENTWISE
        return CopyReason.FOLDABLE if op.operands else CopyReason.GENERATOR


def _stands_in(op: Op, program: Program) -> bool:
    """Return whether an op is still a part of a program."""
    block = op.parent
    while block is not None and block is not program.body:
        around = block.parent_op
        block = around.parent if around is not None else None
    return block is program.body

"""Erasure of ops without uses during propagation, as the reference's rewrite driver does it.

They still matter until they are gone: they carry shardings, and they count as uses of their operands. So the first
fixpoint of a solve erases them one by one, exactly when the reference would.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import field

from shardy_py.ir.graph.dead_ops import erase_together, is_removable
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.values import define


@define
class RemovalPlan:
    """Ops to erase, with the users of their values.

    Attributes:
        ops: The ops that end up erased, without those inside another one, in program order.
        step_to_op: Step to the op that it may erase; ops inside an erased op may go before it.
        users: Value id to its users with their number of uses; for every value an erased op uses or makes.
        step_of: Op id to step.
    """

    ops: list[Op]
    step_to_op: dict[int, Op] = field(factory=dict)
    users: dict[int, dict[int, int]] = field(factory=dict)
    step_of: Mapping[int, int] = field(factory=dict)


def removable_ops(ops: list[Op], semantics: OpSemantics) -> list[Op]:
    """Return the ops that are erased, and those inside them that may be erased on their own before."""
    return [inner for op in ops for inner in op.walk() if inner is op or is_removable(inner, semantics)]


def plan_removal(ops: list[Op], removable: list[Op], step_of: Mapping[int, int]) -> RemovalPlan | None:
    """Return the plan to erase ``ops``, or None where there are none."""
    if not ops:
        return None
    plan = RemovalPlan(ops, {step_of[op.id]: op for op in removable}, step_of=step_of)
    for op in ops:
        for inner in op.walk():
            for value in (*inner.operands, *inner.results):
                if value.id not in plan.users:
                    counts = plan.users[value.id] = {}
                    for user, _ in value.uses:
                        counts[user.id] = counts.get(user.id, 0) + 1
    return plan


class Removal:
    """State of the erasure during one solve."""

    __slots__ = ("_counts", "_erased_ops", "erased", "plan", "users")

    def __init__(self, plan: RemovalPlan) -> None:
        self.plan = plan
        self.users = {value: dict(counts) for value, counts in plan.users.items()}
        self._counts = {value: sum(counts.values()) for value, counts in plan.users.items()}
        self.erased: set[int] = set()
        self._erased_ops: set[int] = set()

    def is_unused(self, step: int) -> bool:
        """Return whether the step's op can be erased now."""
        op = self.plan.step_to_op.get(step)
        return op is not None and not any(self.users[value.id] for value in op.results)

    def use_count(self, value: Value) -> int:
        """Return the current number of uses of a value."""
        count = self._counts.get(value.id)
        return len(value.uses) if count is None else count

    def erase(self, step: int) -> Erasure:
        """Erase a step's op with everything in it."""
        gone: list[int] = []
        put_back: list[int] = []
        touched: dict[int, None] = {}
        for op in _post_order(self.plan.step_to_op[step]):
            if op.id in self._erased_ops:
                continue
            self._erased_ops.add(op.id)
            if op.id in self.plan.step_of:
                gone.append(self.plan.step_of[op.id])
            for value in op.operands:
                producer = value.defining_op
                others = len(self.users[value.id]) - (op.id in self.users[value.id])
                # A producer with at most one other user may be unused, or have one use, from now on.
                if producer is not None and others <= 1 and producer.id in self.plan.step_of:
                    put_back.append(self.plan.step_of[producer.id])
            for value in op.operands:
                users = self.users[value.id]
                lost = users.pop(op.id, 0)
                self._counts[value.id] -= lost
                # One use or another number of them is all that matters to a step.
                if lost and self._counts[value.id] == 1:
                    touched.update(dict.fromkeys(users))
        self.erased.update(gone)
        steps = [self.plan.step_of[op_id] for op_id in touched if op_id in self.plan.step_of]
        return Erasure(
            gone,
            [candidate for candidate in put_back if candidate not in self.erased],
            [candidate for candidate in steps if candidate not in self.erased],
        )


@define(frozen=True)
class Erasure:
    """Steps that change when an op is erased.

    Attributes:
        gone: The steps of the erased ops.
        put_back: The steps to visit again, in order.
        touched: The steps that use a value which now has one use only.
    """

    gone: list[int]
    put_back: list[int]
    touched: list[int]


def _post_order(op: Op) -> Iterator[Op]:
    for region in op.regions:
        for block in reversed(region.blocks):
            for inner in reversed(list(block.ops)):
                yield from _post_order(inner)
    yield op


def erase_ops(plan: RemovalPlan) -> None:
    """Take the ops out of the program, those that are still there."""
    erase_together([op for op in plan.ops if op.parent is not None])

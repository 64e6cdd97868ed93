"""What a solve did, update by update, for whoever asks why.

A solve with an observer reports every accepted update: a visit of a step, or a synchronisation of a function result,
that changed shardings. An update holds what the step saw; what the factors looked like before and after is computed
again when asked for. Without an observer nothing of this exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy

from attrs import frozen

from shardy_py.ir.graph import Op, Value
from shardy_py.propagation.factors import Direction, Projection, StepContext, Strategy
from shardy_py.propagation.problem import Problem, StepGroup
from shardy_py.propagation.transitions import Outcome, project_step, propagate_step
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding


@frozen(eq=False)
class Change:
    """One tensor that an update changed.

    Args:
        position: The position among operands, then results, of the step.
        value: The value that carries the sharding (for a target of an edge, the edge).
        old: The sharding before.
        new: The sharding after.
        is_tied: Whether the value changed only because its sharding group did.
    """

    position: int
    value: Value
    old: TensorSharding | None
    new: TensorSharding
    is_tied: bool = False


@frozen(eq=False)
class Update:
    """One accepted update.

    Args:
        op: The op; the function for a function result.
        values: The carriers of the shardings of operands, then results; None for what cannot be sharded.
        rule: The rule.
        directions: The direction of every factor.
        strategy: Basic or aggressive.
        level: The number of the op-priority level.
        user_priority: The user priority.
        mesh: The mesh all shardings share.
        seen: The shardings of operands, then results, as the step saw them.
        changes: The tensors that changed, those of sharding groups behind the member that changed them.
        is_elementwise: Whether the op counts as elementwise.
        conservative: Whether sub-axes could not be introduced.
        is_function_result: Whether a returned value and a function result were synchronised.
    """

    op: Op
    values: tuple[Value | None, ...]
    rule: OpShardingRule
    directions: tuple[Direction, ...]
    strategy: Strategy
    level: int
    user_priority: int
    mesh: Mesh
    seen: tuple[TensorSharding | None, ...]
    changes: tuple[Change, ...]
    is_elementwise: bool = False
    conservative: bool = False
    is_function_result: bool = False

    def projections(self) -> tuple[Projection, Projection]:
        """Return the factor shardings before and after.

        Those after also have axes that a tensor could not take in the end, as they would need a strided view.
        """
        old = project_step(self.rule, self.seen, self.mesh)
        new = deepcopy(old)
        sizes = self.rule.factor_sizes
        context = StepContext(sizes, self.directions, self.mesh, self.conservative, self.is_elementwise)
        propagate_step(new, context, self.strategy)
        return old, new


Observer = Callable[[Update], None]


class Recorder:
    """Makes the updates of one solve for its observer; exists only where there is one."""

    def __init__(self, problem: Problem, observer: Observer) -> None:
        self.problem = problem
        self.observer = observer
        self._place = (0, 0, Strategy.AGGRESSIVE)

    def enter(self, user_priority: int, level: int, strategy: Strategy) -> None:
        """Note where in the hierarchy the following updates happen."""
        self._place = (user_priority, level, strategy)

    def record_step(
        self,
        step: int,
        group: StepGroup,
        directions: tuple[int, ...],
        seen: tuple[int, ...],
        current: Sequence[int],
        outcome: Outcome,
    ) -> None:
        """Report a visit of a step, before its outcome is applied.

        Args:
            step: The step.
            group: Its group.
            directions: The direction of every factor.
            seen: The shardings as the step saw them.
            current: Slot to sharding.
            outcome: What changes.
        """
        op, slots = self.problem.step_ops[step], self.problem.step_slots[step]
        flags = {"is_elementwise": group.is_elementwise, "conservative": group.conservative}
        self._report(op, group.rule, directions, slots, seen, self._changes(slots, current, outcome), flags)

    def record_function_result(
        self,
        rule: int,
        directions: tuple[int, ...],
        slots: tuple[int, int],
        current: Sequence[int],
        outcome: Outcome,
    ) -> None:
        """Report the synchronisation of a returned value with a function result, before it is applied."""
        op = self.problem.slot_values[slots[1]].owning_op
        seen = (current[slots[0]], current[slots[1]])
        changes = self._changes(slots, current, outcome)
        self._report(op, rule, directions, slots, seen, changes, {"is_function_result": True})

    def _report(
        self,
        op: Op,
        rule: int,
        directions: tuple[int, ...],
        slots: tuple[int, ...],
        seen: tuple[int, ...],
        changes: tuple[Change, ...],
        flags: dict[str, bool],
    ) -> None:
        problem = self.problem
        common = problem.table.common_mesh(seen)
        assert common is not None, "a step without a common mesh changes nothing"
        user_priority, level, strategy = self._place
        update = Update(
            op,
            tuple([problem.slot_values[slot] if slot >= 0 else None for slot in slots]),
            problem.transitions.rules[rule],
            tuple(map(Direction, directions)),
            strategy,
            level,
            user_priority,
            common[1],
            tuple([problem.table.values[sharding_id] for sharding_id in seen]),
            changes,
            **flags,
        )
        self.observer(update)

    def _changes(self, slots: Sequence[int], current: Sequence[int], outcome: Outcome) -> tuple[Change, ...]:
        values, table = self.problem.slot_values, self.problem.table.values
        changes = []
        for position, new_id in outcome:
            slot, new = slots[position], table[new_id]
            if slot < 0 or new is None:
                continue
            changes.append(Change(position, values[slot], table[current[slot]], new))
            for member, _ in self.problem.tied.get(slot, ()):
                if member != slot:
                    changes.append(Change(position, values[member], table[current[member]], new, is_tied=True))
        return tuple(changes)

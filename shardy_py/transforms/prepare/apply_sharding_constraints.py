"""Closed sharding constraints on values, not only on their users behind the constraint.

Mirrors apply_sharding_constraints.cc::ApplyShardingConstraintsPass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from attrs import evolve

from shardy_py.ir.graph.data_flow import edge_of_target, shardable_value
from shardy_py.ir.graph.op_names import CONSTRAINT, DATA_FLOW_EDGE, MANUAL_COMPUTATION, RETURN
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.rule_attributes import keep_rule
from shardy_py.ir.graph.shardings import set_sharding
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import inner_first, ops_named
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import project
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.identity import identity
from shardy_py.transforms.debug_info import make_recorder
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.transforms.debug_info.recorder import DebugRecorder


@frozen
class ApplyShardingConstraintsPass:
    """Set the shardings of constraints, and of manual computations' operands, on the values they are about.

    Args:
        debug_sharding_origins: Whether to leave on every value which annotation each axis goes back to.
        debug_propagation_edge_sharding: Whether to leave on the constraints which axes they passed on.
    """

    name: ClassVar[str] = "sdy-apply-sharding-constraints"

    debug_sharding_origins: bool = False
    debug_propagation_edge_sharding: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Apply the constraints of all ops, those inside an op before it."""
        recorder = make_recorder(
            program,
            context.semantics,
            origins=self.debug_sharding_origins,
            edges=self.debug_propagation_edge_sharding,
        )
        work = _Constraints(program, context.semantics, recorder)
        for op in inner_first(ops_named(program, CONSTRAINT, MANUAL_COMPUTATION)):
            if op.name == CONSTRAINT:
                work.apply_constraint_op(op)
            else:
                work.apply_manual_computation(op)
        if recorder is not None:
            recorder.save()


class _Constraints:
    """Applies constraints in one program."""

    __slots__ = ("program", "recorder", "semantics")

    def __init__(self, program: Program, semantics: OpSemantics, recorder: DebugRecorder | None) -> None:
        self.program = program
        self.semantics = semantics
        self.recorder = recorder

    def apply_constraint_op(self, op: Op) -> None:
        """Apply a sharding constraint; the last one of a chain also replaces later uses of the chain's input."""
        tail = self._tail_of_chain(op)
        if tail is not None:
            _redirect_later_uses(op.operands[0], op, tail)
        value = op.operands[0]

        def move() -> Op:
            if op.parent is not None:
                op.parent.remove(op)
            value.insert_after(op)
            return op

        self._apply(op, value, self.program.shardings[op.result.id], move)

    def apply_manual_computation(self, op: Op) -> None:
        """Apply the in-shardings of a manual computation to its operands."""
        # A constraint may replace later operands, too, so each is looked up when its turn comes.
        for number, sharding in enumerate(op.attributes["in_shardings"].shardings):
            value = op.operands[number]

            def create(value: Value = value, sharding: TensorSharding = sharding) -> Op:
                constraint = Op(self.program, CONSTRAINT, [value], [value.type], {"sharding": sharding})
                self.program.shardings[constraint.result.id] = sharding
                value.insert_after(constraint)
                return constraint

            self._apply(op, value, sharding, create)

    def _apply(self, op: Op, value: Value, sharding: TensorSharding, constraint_after: Callable[[], Op]) -> None:
        """Set ``sharding`` on ``value`` unless something excludes it.

        A target of a data flow edge is not restricted itself, which would restrict all targets; instead all its
        users go through a constraint.

        Mirrors apply_sharding_constraints.cc::applyConstraint.
        """
        carrier = shardable_value(value, self.semantics)
        if carrier is None or not self._should_apply(value, carrier, sharding):
            return
        producer = value.defining_op
        is_edge = producer is not None and producer.name == DATA_FLOW_EDGE
        if not is_edge and edge_of_target(value, self.semantics) is None:
            rule = self._keep_rule(op)
            if self.recorder is not None and rule is not None:
                self._record(self.recorder, op, rule, carrier, sharding)
            set_sharding(self.program, carrier, sharding)
            return
        constraint = constraint_after()
        value.replace_all_uses_with(constraint.result, except_op=constraint)
        if sharding.unreduced_axes:
            # Unreduced axes do not propagate: the value gets them directly.
            rank = value.type.rank if isinstance(value.type, TensorType) else 0
            current = self.program.shardings.get(carrier.id) or TensorSharding.fully_open(sharding.mesh, rank)
            unreduced = evolve(current, unreduced_axes=sharding.unreduced_axes, reduction_op=sharding.reduction_op)
            set_sharding(self.program, carrier, unreduced)

    def _should_apply(self, value: Value, carrier: Value, sharding: TensorSharding) -> bool:
        if carrier.id in self.program.shardings:
            return False
        if not all(dim.is_closed for dim in sharding.dim_shardings):
            return False
        return not any(self._disagrees(user, number, sharding) for user, number in value.uses)

    def _disagrees(self, user: Op, number: int, sharding: TensorSharding) -> bool:
        if user.name == CONSTRAINT:
            return self.program.shardings[user.result.id] != sharding
        if user.name == MANUAL_COMPUTATION:
            return bool(user.attributes["in_shardings"].shardings[number] != sharding)
        return False

    def _keep_rule(self, op: Op) -> OpShardingRule | None:
        """Leave the rule on the op, as the reference does here, and return it."""
        rule = self.semantics.get_sharding_rule(op)
        if rule is not None:
            keep_rule(op, rule)
        return rule

    def _record(
        self, recorder: DebugRecorder, op: Op, rule: OpShardingRule, carrier: Value, sharding: TensorSharding
    ) -> None:
        """Record that a constraint passes its sharding back, before it does."""
        mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else self.program.meshes.get(sharding.mesh)
        if mesh is None or mesh.is_maximal:
            return
        values = [shardable_value(value, self.semantics) for value in (*op.operands, *op.results)]
        before = [None if value is None else self.program.shardings.get(value.id) for value in values]
        after = [sharding if value is carrier else old for value, old in zip(values, before, strict=True)]
        mappings = (*rule.operand_mappings, *rule.result_mappings)
        old, new = (
            [
                project(tensor_sharding, mapping, rule.factor_sizes, mesh)
                for tensor_sharding, mapping in zip(shardings, mappings, strict=True)
            ]
            for shardings in (before, after)
        )
        if old != new:
            recorder.record(op, values, rule, mesh, old, new)

    def _tail_of_chain(self, head: Op) -> Op | None:
        """Return the last constraint of a chain of at least two that begins at ``head``, or None.

        The chain counts where its input has neither a sharding nor another constraint, and nothing but the next
        constraint uses the ones before the last.

        Mirrors apply_sharding_constraints.cc::getTailOfShardingConstraintChain.
        """
        value = head.operands[0]
        producer = value.defining_op
        if producer is not None and producer.name == CONSTRAINT:
            return None
        carrier = shardable_value(value, self.semantics)
        if carrier is not None and carrier.id in self.program.shardings:
            return None
        if any(user is not head and user.name in (CONSTRAINT, MANUAL_COMPUTATION) for user, _ in value.uses):
            return None
        tail = head
        while tail.result.has_one_use and tail.result.uses[0][0].name == CONSTRAINT:
            tail = tail.result.uses[0][0]
        if tail is head or any(user.name in (CONSTRAINT, MANUAL_COMPUTATION) for user, _ in tail.result.uses):
            return None
        return tail


def _redirect_later_uses(value: Value, head: Op, tail: Op) -> None:
    """Make the ops after ``tail``, in its block, use its result instead of ``value``; returns keep it."""
    later = _ops_after(tail, {identity(user) for user, _ in value.uses})
    for user, number in reversed(list(value.uses)):
        if user is not head and user.name != RETURN and identity(user) in later:
            user.set_operand(number, tail.result)


def _ops_after(op: Op, wanted: set[int]) -> set[int]:
    """Return the identities of those wanted ops that come after ``op`` in its block."""
    ids: set[int] = set()
    following = op.next
    while following is not None and len(ids) < len(wanted):
        if identity(following) in wanted:
            ids.add(identity(following))
        following = following.next
    return ids

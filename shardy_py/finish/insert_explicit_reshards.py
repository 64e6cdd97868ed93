"""Insert reshards so that every op gets its operands, and gives its results, in shardings it can compute with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import ClassVar

from attrs import evolve, frozen

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.finish.reshards.boundaries import reshard_call, reshard_data_flow, reshard_returns
from shardy_py.finish.reshards.insertion import Place, Resharder, rank_of
from shardy_py.finish.reshards.plan import Mode, Plan, Situation, make_plan
from shardy_py.finish.reshards.unreduced import convert_reshard, reduce_operands, reduce_results
from shardy_py.ir.graph import Op, Program
from shardy_py.ir.interfaces import Concatenation, Contraction, IsTerminator, OpSemantics, Reshape
from shardy_py.ir.passes import PassContext
from shardy_py.ir.types import Type, static_shape
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

CALL, FUNCTION = "func.call", "func.func"


@frozen
class InsertExplicitReshardsPass:
    """Insert explicit reshards, and all-reduces for sharded reduction factors.

    Two tensors of an op conflict where an axis shards dimensions that do not correspond, or shards a dimension of
    one and not the corresponding one of the other. After the full version no op has a conflict. The other version
    leaves conflicts to the partitioner, but for calls, concatenations of tensors sharded unlike the result,
    contractions where resharding the result is cheaper, and unreduced axes.

    Args:
        enable_full_version: Whether all ops are resharded.
    """

    name: ClassVar[str] = "sdy-insert-explicit-reshards"

    enable_full_version: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Insert the reshards of all functions."""
        semantics = context.semantics
        # Ops keep the dimensions that do not divide evenly here even where propagation was conservative.
        semantics = semantics.with_options(evolve(semantics.options, conservative=False))
        meshes = program.meshes
        run = _Run(Resharder(program, semantics, meshes), _Planner(meshes), full=self.enable_full_version)
        for function in program.functions.values():
            for op in _inner_first(function):
                run.visit(op)
            reshard_returns(run.resharder, function, full=self.enable_full_version)


def _inner_first(op: Op) -> Iterator[Op]:
    """Iterate over all ops inside, each after those in its regions, but those inserted behind the current one."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from _inner_first(inner)
                yield inner


class _Planner:
    """Makes every distinct plan once: programs repeat the same few hundred situations over and over."""

    def __init__(self, meshes: Mapping[str, Mesh]) -> None:
        self._meshes = meshes
        self._plans: dict[Situation, Plan | None] = {}
        self._sizes: dict[Type, int] = {}

    def plan(self, situation: Situation) -> Plan | None:
        """Return the plan of a situation."""
        if situation not in self._plans:
            self._plans[situation] = make_plan(situation, self._meshes)
        return self._plans[situation]

    def size(self, type_: Type) -> int:
        """Return the number of elements of a type; 0 where it is unknown."""
        found = self._sizes.get(type_)
        if found is None:
            shape = static_shape(type_)
            found = self._sizes[type_] = 0 if shape is None else prod(shape)
        return found


class _Run:
    """One run of the pass over a program."""

    def __init__(self, resharder: Resharder, planner: _Planner, *, full: bool) -> None:
        self.resharder = resharder
        self._semantics: OpSemantics = resharder.semantics
        self._planner = planner
        self._full = full

    def visit(self, op: Op) -> None:
        """Insert what one op needs."""
        resharder = self.resharder
        traits = self._semantics.get_traits(op)
        if IsTerminator in traits:
            return
        data_flow = self._semantics.get_data_flow(op)
        if data_flow is not None:
            reshard_data_flow(resharder, op, data_flow, full=self._full)
            return
        if op.name == CALL:
            reshard_call(resharder, op)
            return
        if convert_reshard(resharder, op):
            return
        reduce_operands(resharder, op)
        plan = self._plan(op)
        if plan is None or plan.is_empty:
            return
        self._apply(op, plan)

    def _plan(self, op: Op) -> Plan | None:
        resharder = self.resharder
        operands = tuple([resharder.sharding_before_barriers(value) for value in op.operands])
        results = tuple([resharder.sharding_before_barriers(value) for value in op.results])
        if not any(operands) and not any(results):
            return None
        rule = self._semantics.get_sharding_rule(op)
        # The rules that users give say how to propagate, not what the partitioner can do with their ops.
        if rule is None or rule.is_custom:
            return None
        mode = self._mode(op)
        size = self._planner.size
        situation = Situation(
            rule,
            operands,
            results,
            tuple([size(value.type) for value in op.operands]),
            tuple([size(value.type) for value in op.results]),
            mode,
            tuple([resharder.sharding(value) for value in op.operands]) if mode is Mode.RESHAPE else operands,
        )
        return self._planner.plan(situation)

    def _mode(self, op: Op) -> Mode:
        traits = self._semantics.get_traits(op)
        if self._full:
            return Mode.RESHAPE if Reshape in traits else Mode.FULL
        if Contraction in traits:
            return Mode.CONTRACTION
        if Concatenation in traits and self._is_unlike_result(op):
            return Mode.FULL
        return Mode.MINIMAL

    def _is_unlike_result(self, op: Op) -> bool:
        """Return whether an operand has another sharding than the result.

        If all are the same there may still be a conflict, where the dimension concatenated is sharded, but there the
        partitioner does better without a reshard.
        """
        result = self.resharder.sharding(op.results[0])
        return any(self.resharder.sharding(value) != result for value in op.operands)

    def _apply(self, op: Op, plan: Plan) -> None:
        if plan.reduced_axes is None:
            message = "the results have unreduced axes, but the operands do not agree on the axes that are reduced"
            hint = "shard the reduced dimensions of all operands alike"
            raise VerificationError(Diagnostic("unreduced-conflict", message, op.location, op.name, hint))
        self._reshard_operands(op, plan)
        self._reshard_results(op, plan)
        if plan.reduced_axes:
            default = [TensorSharding.fully_closed(plan.mesh, rank_of(value)) for value in op.results]
            reduce_results(self.resharder, op, plan.reduced_axes, default)

    def _reshard_operands(self, op: Op, plan: Plan) -> None:
        place = Place.before(op)
        for number, wanted in enumerate(plan.operands):
            if wanted is not None:
                op.set_operand(number, self.resharder.reshard(op.operands[number], wanted, place))

    def _reshard_results(self, op: Op, plan: Plan) -> None:
        """Let the op give results as it computes them, and reshard them to what they were."""
        resharder, place = self.resharder, Place.after(op)
        for value, wanted in zip(op.results, plan.results, strict=True):
            if wanted is None:
                continue
            target = resharder.sharding(value) or TensorSharding.fully_closed(plan.mesh, rank_of(value))
            moved = resharder.reshard(value, target, place)
            value.replace_all_uses_with(moved, except_op=moved.owning_op)
            resharder.set_result_sharding(value, wanted)

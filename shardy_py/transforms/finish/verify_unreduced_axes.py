"""Check that no op makes partial results whole, or whole ones partial, without an op that says so.

Mirrors verify_unreduced_axes.cc::VerifyUnreducedAxesPass.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from attrs import field

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import ALL_REDUCE, CONSTRAINT, FUNCTION, REDUCE_SCATTER, RESHARD
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import nearest_location
from shardy_py.ir.interfaces.ops import (
    CrossDeviceReduction,
    DataFlowShardingTransformType,
    IsTerminator,
    Maximum,
    Minimum,
    OpSemantics,
    Reduction,
    ReturnLike,
    Sum,
    Trait,
)
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.axis_lists import any_overlap, axis_set_difference
from shardy_py.sharding.projection import Axes
from shardy_py.sharding.tensor import ReductionOp, TensorSharding
from shardy_py.transforms.finish.reshards.insertion import Resharder
from shardy_py.transforms.finish.reshards.sharding_carriers import visits_of
from shardy_py.values import NoFields, define

_EXPLICIT = (RESHARD, CONSTRAINT)
_REDUCING = (ALL_REDUCE, REDUCE_SCATTER)
_COMBINERS: tuple[tuple[Trait, ReductionOp], ...] = ((Sum, "sum"), (Maximum, "max"), (Minimum, "min"))

Shardings = Sequence[TensorSharding | None]


class VerifyUnreducedAxesPass(NoFields):
    """Check the unreduced axes of all ops.

    An op may hand on the unreduced axes of its operands, and have some of its own that combine as its reduction does
    (a sum, but for reductions by another op). Only reshards, constraints and reducing collectives may drop any.
    What flows through calls and returns keeps them.
    """

    name: ClassVar[str] = "sdy-verify-unreduced-axes"

    def run(self, program: Program, context: PassContext) -> None:
        """Check all functions.

        Raises:
            VerificationError: with one diagnostic per op that breaks the rule.
        """
        checker = _Checker(Resharder.of(program, context.semantics), context.semantics)
        for function in checker.resharder.functions.values():
            for op, info in visits_of(function, context.semantics):
                checker.check(op, info.traits)
        if checker.problems:
            raise VerificationError(*checker.problems)


@define
class _Checker:
    resharder: Resharder
    semantics: OpSemantics
    problems: list[Diagnostic] = field(factory=list)

    def check(self, op: Op, traits: Collection[Trait]) -> None:
        """Check one op."""
        if op.name in _EXPLICIT:
            return
        if IsTerminator in traits:
            if ReturnLike in traits:
                self._check_return(op)
        elif op.name in _REDUCING:
            if self._sharding(op.operands[0]) is None:
                self._report(op, "its operand has no sharding", "give the operand a sharding")
        elif callee_of(op) is not None:
            self._check_call(op)
        elif CrossDeviceReduction in traits:
            self._check_transition(op, [self._sharding(op.operands[0])], introduced=None, removed=self._combiner(op))
        else:
            introduced = self._combiner(op) if Reduction in traits else self._introduced(op)
            operands = [self._sharding_as_used(value) for value in op.operands]
            self._check_transition(op, operands, introduced=introduced, removed=None)

    def _check_transition(
        self, op: Op, operands: Shardings, *, introduced: ReductionOp | None, removed: ReductionOp | None
    ) -> None:
        """Check the unreduced axes of the results against those of the operands.

        Args:
            op: The op.
            operands: The shardings of the operands.
            introduced: How new unreduced axes must combine; None if there may be none.
            removed: How unreduced axes that end here must combine; None if none may end.
        """
        results = [self._sharding(value) for value in op.results]
        before, after = _unreduced(operands), _unreduced(results)
        if not before and not after:
            return
        meshes = {self.resharder.mesh(sharding) for sharding in (*operands, *results) if sharding is not None}
        if len(meshes) != 1:
            return
        (mesh,) = meshes
        new = axis_set_difference(after, before, mesh)
        gone = axis_set_difference(before, after, mesh)
        if new and introduced is None:
            self._report(op, f"the results have the new unreduced axis {new[0]}", "only reductions may add some")
        elif _combine_otherwise(results, new, introduced):
            self._report(op, f"new unreduced axes must combine by {introduced}", "correct the reduction")
        if gone and removed is None:
            self._report(op, f"the unreduced axis {gone[0]} is dropped", "reshard the operand before")
        elif _combine_otherwise(operands, gone, removed):
            self._report(op, f"only axes that combine by {removed} are reduced here", "correct the reduction")
        if _changes_reduction(operands, results):
            self._report(op, "unreduced axes combine otherwise after the op than before", "reduce them before")

    def _check_call(self, call: Op) -> None:
        function = self.resharder.functions.get(callee_of(call) or "")
        blocks = function.regions[0].blocks if function and function.regions else []
        if function is None or not blocks:
            return
        for value, argument in zip(call.operands, blocks[0].arguments, strict=True):
            if not self._is_explicit(value):
                self._check_equal(call, self._sharding(value), self._sharding(argument), "argument", argument.index)
        for value, result in zip(call.results, function.function_results, strict=True):
            inside = self.resharder.program.shardings.get(result.id)
            self._check_equal(call, inside, self._sharding(value), "result", result.index)

    def _check_return(self, op: Op) -> None:
        """Check the values that a region yields to the results of the op around it.

        Mirrors verify_unreduced_axes.cc::verifyTerminator.
        """
        parent = op.parent_op
        if parent is None:
            return
        is_function = parent.name == FUNCTION
        for value, target in zip(op.operands, parent.function_results if is_function else parent.results, strict=False):
            wanted = self.resharder.program.shardings.get(target.id) if is_function else self._seen_inside(target)
            if wanted is not None and not self._is_explicit(value):
                self._check_equal(op, self._sharding(value), wanted, "value", target.index)

    def _seen_inside(self, result: Value) -> TensorSharding | None:
        """Return the sharding of a result of a region op as its regions see it."""
        sharding = self._sharding(result)
        data_flow = self.semantics.get_data_flow(result.owning_op)
        if sharding is None or data_flow is None:
            return sharding
        before = DataFlowShardingTransformType.BEFORE_EDGE_PROPAGATION
        return data_flow.transform_target_sharding(result.owning_op, result, sharding, before)

    def _check_equal(
        self, op: Op, first: TensorSharding | None, second: TensorSharding | None, what: str, number: int
    ) -> None:
        before, after = frozenset(_unreduced([first])), frozenset(_unreduced([second]))
        if before == after:
            return
        names = ", ".join(sorted(str(axis) for axis in before ^ after))
        self._report(op, f"{what} {number}: only one side is unreduced along {names}", "reshard the value before")

    def _sharding(self, value: Value) -> TensorSharding | None:
        return self.resharder.sharding_before_barriers(value)

    def _sharding_as_used(self, value: Value) -> TensorSharding | None:
        """Return the sharding of an operand; None behind an explicit reshard, which may lead anywhere."""
        return None if self._is_explicit(value) else self._sharding(value)

    def _is_explicit(self, value: Value) -> bool:
        op = self.resharder.before_barriers(value).defining_op
        return op is not None and op.name in _EXPLICIT

    def _introduced(self, op: Op) -> ReductionOp | None:
        """Return the combiner of the partial results of an op: a sum, unless its plugin gives another.

        The reference knows no others.
        """
        if not any(sharding is not None and sharding.unreduced_axes for sharding in map(self._sharding, op.results)):
            return "sum"
        reductions = self.semantics.get_reductions(op)
        if not reductions.shape_collectives or not reductions.combiners:
            return "sum"
        types = {getattr(value.type, "element_type", "") for value in op.results}
        words = {
            combiner.collective_word(type_) if combiner else None
            for combiner in reductions.combiners.values()
            for type_ in types
        }
        return words.pop() if len(words) == 1 else None

    def _combiner(self, op: Op) -> ReductionOp | None:
        """Return the combiner of a reduction: the op whose result its region returns, if that is always the same.

        Mirrors verify_unreduced_axes.cc::getReductionType.
        """
        blocks = op.regions[0].blocks if op.regions else []
        terminator = blocks[0].terminator if blocks else None
        kinds = {self._kind(value) for value in terminator.operands} if terminator else set()
        return kinds.pop() if len(kinds) == 1 else None

    def _kind(self, value: Value) -> ReductionOp | None:
        op = value.defining_op
        traits: Collection[Trait] = () if op is None else self.semantics.get_traits(op)
        return next((kind for trait, kind in _COMBINERS if trait in traits), None)

    def _report(self, op: Op, message: str, hint: str) -> None:
        self.problems.append(Diagnostic("unreduced-axes", message, nearest_location(op), op.name, hint))


def _unreduced(shardings: Shardings) -> Axes:
    """Return the unreduced axes of several shardings, each once."""
    axes = dict.fromkeys(axis for sharding in shardings if sharding is not None for axis in sharding.unreduced_axes)
    return tuple(axes)


def _combine_otherwise(shardings: Shardings, axes: Axes, expected: ReductionOp | None) -> bool:
    """Return whether some of the axes are unreduced in a sharding that combines them by another op than expected."""
    return any(
        sharding is not None and sharding.reduction_op != expected and any_overlap(sharding.unreduced_axes, axes)
        for sharding in shardings
    )


def _changes_reduction(operands: Shardings, results: Shardings) -> bool:
    """Return whether an axis that stays unreduced combines otherwise afterwards."""
    return any(
        operand is not None
        and result is not None
        and operand.reduction_op != result.reduction_op
        and any_overlap(operand.unreduced_axes, result.unreduced_axes)
        for operand in operands
        for result in results
    )

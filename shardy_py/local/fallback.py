"""The local form of an op, and what happens to one that has none: its operands are gathered and its results sliced."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve, field

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.op_names import ALL_GATHER
from shardy_py.ir.graph.program import Op, Region, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import CannotLocalize, Combined, Shard, no_local_form
from shardy_py.ir.interfaces.ops import Elementwise, Nondeterministic
from shardy_py.local.agreement import (
    check_reductions,
    disagreeing_factors,
    is_on_one_mesh,
    parts_by_form,
    reduced_axes,
    without_factors,
)
from shardy_py.local.collectives import CollectiveOptions
from shardy_py.local.masks import without_padding
from shardy_py.local.operand_reshards import (
    common_sharding,
    gather_to,
    gathered_before_slice,
    minor_axes,
    slice_along,
    slice_to,
)
from shardy_py.local.regrid import Change, gather, slice_shard
from shardy_py.local.several_meshes import combined, moved_dims, on_operand_mesh, without_dims
from shardy_py.local.sizes import mentions_sizes
from shardy_py.local.tensor_bodies import has_tensor_body
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define, frozen

Form = Callable[[Op, Shard], Sequence[Value]]
_ADD_FORM = "give the op a local form: Dialect.op(..., local=)"
_FORM_REFUSES = "its local form does not take these shardings: give its tensors others"
_TENSOR_BODY = "its regions compute on whole tensors"


@frozen
class Outcome:
    """The results of an op on one device.

    Args:
        results: The results.
        complete: The axes along which they would be partial, and are not, as operands were gathered.
    """

    results: Sequence[Value]
    complete: tuple[AxisRef, ...] = ()


@define
class Fallback:
    """Makes the local form of ops.

    Attributes:
        options: The forms of collectives.
        trust_shardings: Whether the shardings of an op count as fit for it. Otherwise they are compared with its rule.
        gathers: Whether an op without a local form is gathered; otherwise it is an error.
        warnings: Where gathered ops are named.
    """

    options: CollectiveOptions
    trust_shardings: bool
    gathers: bool
    warnings: list[Diagnostic] = field(factory=list)
    _gather_count: int = field(default=0, init=False)

    def localize(self, op: Op, shard: Shard, form: Form | None) -> Outcome:
        """Return the local form of an op.

        Args:
            op: The op.
            shard: The op with its operands on the device.
            form: Its own local form, or None.

        Raises:
            CannotLocalize: there is none, and it must not be gathered.
        """
        rule = shard.semantics.get_sharding_rule(op)
        differs = form is not None and not self.trust_shardings and shard.semantics.has_trait(op, Nondeterministic)
        if not _is_sharded(shard) and not differs:
            if rule is None and form is None and not self.trust_shardings:
                self._check_gathered(op)
            return Outcome(shard.copy())
        shardings = (*shard.operand_shardings, *shard.result_shardings)
        if any(sharding is not None and shard.mesh(sharding).is_maximal for sharding in shardings):
            raise no_local_form("a tensor is on a single device: run sdy-resolve-single-device-sharding first")
        last = shard.emit.block.last
        try:
            return self._local(op, shard, rule, form)
        except CannotLocalize as error:
            if not self.gathers:
                raise
            shard.emit.erase_after(last)
            reason = error.diagnostics[0].message
        return self._gathered(op, shard, rule, form, reason)

    def reshard(self, shard: Shard, number: int, after: TensorSharding | None) -> Value:
        """Return an operand with another sharding, by gathering it; as it is where shardings are trusted.

        Raises:
            CannotLocalize: the shardings differ, and nothing may be gathered.
        """
        value, before = shard.operands[number], shard.operand_shardings[number]
        if not moved_dims(shard, before, after) or (self.trust_shardings and not self.gathers):
            return value
        if not self.gathers:
            raise no_local_form(f"an operand is {before or 'whole'} and goes on as {after or 'whole'}")
        reason = f"an operand is {before or 'whole'} and goes on as {after or 'whole'}"
        hint = "give the value and what gets it the same sharding, or put both on one data-flow edge"
        self._warn(shard.op, reason, "along the dimensions concerned", hint)
        common = common_sharding(shard, before, after)
        shape, one_by_one = shard.op.operands[number].shape, self.options.per_dim_all_gather
        if before is not None:
            change = Change.between(shard, shape, before, common)
            value = gather(shard, value, change, minor_axes(before, common), one_by_one=one_by_one)
        if after is None:
            return value
        return slice_shard(shard, value, Change.between(shard, shape, common, after), minor_axes(after, common))

    def gather_whole(self, shard: Shard, number: int) -> Value:
        """Return an operand, gathered."""
        return self._gather(shard, number, None)

    def _check_gathered(self, op: Op) -> None:
        """Name an op whose operands were gathered before, as nothing says how it runs on shards.

        Raises:
            CannotLocalize: nothing may be gathered.
        """
        makers = [value.defining_op for value in op.operands]
        if op.results and any(maker is not None and maker.name == ALL_GATHER for maker in makers):
            reason = "the op has no sharding rule and no local form"
            if not self.gathers:
                raise no_local_form(reason)
            self._warn(op, reason, "whole")

    def _local(self, op: Op, shard: Shard, rule: OpShardingRule | None, form: Form | None) -> Outcome:
        """Return the results of an op on its shards.

        Raises:
            CannotLocalize: it has no local form.
        """
        self._check(op, shard, rule, form)
        if form is not None and not self.trust_shardings and has_tensor_body(op):
            shard = evolve(shard, regions=_refuse_regions)
        if rule is None:
            return Outcome(form(op, shard) if form is not None else shard.copy())
        partial = reduced_axes(shard, rule)
        masked = without_padding(op, shard, rule, has_form=form is not None)
        results = form(op, masked) if form is not None else masked.copy()
        if isinstance(results, Combined):
            return Outcome(results, tuple(partial))
        if partial and not self.trust_shardings:
            check_reductions(op, shard, rule, starts_once=form is not None)
        return Outcome(results)

    def _check(self, op: Op, shard: Shard, rule: OpShardingRule | None, form: Form | None) -> None:
        """Check that an op can run on shards as far as its rule and its attributes tell.

        Raises:
            CannotLocalize: it cannot.
        """
        if rule is None and form is None and (op.results or op.regions):
            raise no_local_form("the op has no sharding rule and no local form")
        if form is None:
            if not self.trust_shardings and has_tensor_body(op):
                raise no_local_form(_TENSOR_BODY)
            shard.check_kinds()
            if rule is not None and not shard.semantics.has_trait(op, Elementwise) and mentions_sizes(op, shard):
                raise no_local_form("an attribute may hold the size of a sharded dimension")
        if rule is None or self.trust_shardings:
            return
        by_form = parts_by_form(shard, rule) if form is not None else {}
        if disagreeing_factors(shard, rule, has_form=form is not None) - by_form.keys():
            raise no_local_form("its tensors are not sharded as its rule asks for")

    def _gathered(self, op: Op, shard: Shard, rule: OpShardingRule | None, form: Form | None, reason: str) -> Outcome:
        """Return the results of an op after gathering some or all of its operands.

        Raises:
            CannotLocalize: what would have to be gathered or sliced is of a type of a dialect.
        """
        _refuse_foreign_parts(op, shard)
        hint = _ADD_FORM if form is None else _FORM_REFUSES
        partial = [] if rule is None else reduced_axes(shard, rule)
        if rule is not None:
            results = self._between_meshes(op, shard, rule, form)
            if results is not None:
                return Outcome(results, tuple(partial))
            count_before = self._gather_count
            outcome = self._gathered_in_part(op, shard, rule, form)
            if outcome is not None:
                # Operands that were sliced from what devices have, and whole ones, are there without being gathered.
                if self._gather_count > count_before:
                    self._warn(op, reason, "along the dimensions concerned", hint)
                return outcome
        self._warn(op, reason, "whole", hint)
        replicated = _resharded(shard, [None] * len(shard.operands), [None] * len(shard.result_shardings), self._gather)
        return Outcome(self.slice_results(shard, replicated, replicated.copy()), tuple(partial))

    def _between_meshes(self, op: Op, shard: Shard, rule: OpShardingRule, form: Form | None) -> Sequence[Value] | None:
        """Return the results of an op that runs on the shards of one of its operands, on their mesh, or None.

        The other operands get shards of that mesh, partial results are combined, and results go to their own meshes.
        """
        part, last = on_operand_mesh(shard, rule), shard.emit.block.last
        if part is None:
            return None
        try:
            operands = [self._moved(shard, number, after) for number, after in enumerate(part.operand_shardings)]
            part = evolve(part, operands=operands)
            outcome = self._local(op, part, rule, form)
            values = list(outcome.results) if outcome.complete else combined(part, rule, outcome.results)
        except CannotLocalize:
            shard.emit.erase_after(last)
            return None
        results = []
        for value, result, before, after in zip(
            values, op.results, part.result_shardings, shard.result_shardings, strict=True
        ):
            dims, one_by_one = moved_dims(shard, before, after), self.options.per_dim_all_gather
            gathered_sharding = without_dims(before, dims)
            if before is not None and gathered_sharding is not None:
                value = gather_to(shard, value, result.shape, before, gathered_sharding, one_by_one=one_by_one)
            results.append(slice_along(shard, value, result.shape, dims, after))
        self._warn_of_moves(shard, part)
        return results

    def _moved(self, shard: Shard, number: int, after: TensorSharding | None) -> Value:
        """Return the part that a device has of an operand under a sharding on another mesh."""
        before = shard.operand_shardings[number]
        dims = moved_dims(shard, before, after)
        value = self._gather(shard, number, without_dims(before, dims)) if dims else shard.operands[number]
        return slice_along(shard, value, shard.op.operands[number].shape, dims, after) if dims else value

    def _warn_of_moves(self, shard: Shard, part: Shard) -> None:
        """Name an op between meshes of whose tensors parts are gathered."""
        ends = [
            *zip(shard.operand_shardings, part.operand_shardings, strict=True),
            *zip(part.result_shardings, shard.result_shardings, strict=True),
        ]
        count = len(shard.operands)
        for number, (before, after) in enumerate(ends):
            if any(shard.parts(before, dim) > 1 for dim in moved_dims(shard, before, after)):
                name = f"operand {number}" if number < count else f"result {number - count}"
                self._warn(shard.op, f"{name} goes from {before} to another mesh", "along the dimensions concerned")
                return

    def _gathered_in_part(self, op: Op, shard: Shard, rule: OpShardingRule, form: Form | None) -> Outcome | None:
        """Return the results of an op that runs on shards once the dimensions that disagree are whole, or None."""
        factors = disagreeing_factors(shard, rule)
        if not factors or (is_on_one_mesh(shard) and any(factor in rule.reduction_factors for factor in factors)):
            return None
        last = shard.emit.block.last
        operands = [
            without_factors(sharding, mapping, factors)
            for sharding, mapping in zip(shard.operand_shardings, rule.operand_mappings, strict=True)
        ]
        results = [
            without_factors(sharding, mapping, factors)
            for sharding, mapping in zip(shard.result_shardings, rule.result_mappings, strict=True)
        ]
        try:
            part = _resharded(shard, operands, results, self._gather)
            outcome = self._local(op, part, rule, form)
            return Outcome(self.slice_results(shard, part, outcome.results), outcome.complete)
        except CannotLocalize:
            shard.emit.erase_after(last)
            return None

    def _gather(self, shard: Shard, number: int, target: TensorSharding | None) -> Value:
        """Return an operand gathered to a target sharding."""
        value, sharding = shard.operands[number], shard.operand_shardings[number]
        if sharding is None or not isinstance(value.type, TensorType):
            return value
        wider = gathered_before_slice(shard, shard.op.operands[number], target)
        if wider is not None:
            return wider
        self._gather_count += bool(moved_dims(shard, sharding, target))
        shape, one_by_one = shard.op.operands[number].shape, self.options.per_dim_all_gather
        return gather_to(shard, value, shape, sharding, target, one_by_one=one_by_one)

    def slice_results(self, shard: Shard, part: Shard, values: Sequence[Value]) -> list[Value]:
        """Slice the results of an op that ran on other shardings to the shardings that they need.

        Args:
            shard: The op with the shardings that its results need.
            part: The op with the shardings that they have.
            values: The results.
        """
        result = []
        for number, (value, target) in enumerate(zip(values, shard.result_shardings, strict=True)):
            if target is not None and shard.sharded_dims(target):
                value = slice_to(shard, value, shard.op.results[number].shape, part.result_shardings[number], target)
            result.append(value)
        return result

    def _warn(self, op: Op, reason: str, extent: str, hint: str = _ADD_FORM) -> None:
        effect = f"the operands are gathered {extent}" if op.operands else "each device makes the results whole"
        message = f"{effect}: {reason}"
        self.warnings.append(Diagnostic("gathered-op", message, op.location, op.name, hint))


def _refuse_regions() -> Sequence[Region]:
    raise no_local_form(_TENSOR_BODY)


def _refuse_foreign_parts(op: Op, shard: Shard) -> None:
    """Check that no sharded value of an op has a type of a dialect, which no collective takes."""
    ends = (
        *zip(op.operands, shard.operand_shardings, strict=True),
        *zip(op.results, shard.result_shardings, strict=True),
    )
    for value, sharding in ends:
        if value.type.is_foreign and sharding is not None and shard.sharded_dims(sharding):
            raise no_local_form(f"the sizes in {value.type} are known to its dialect only, which cannot be gathered")


def _is_sharded(shard: Shard) -> bool:
    return any(shard.sharded_dims(sharding) for sharding in (*shard.operand_shardings, *shard.result_shardings))


def _resharded(
    shard: Shard,
    operands: Sequence[TensorSharding | None],
    results: Sequence[TensorSharding | None],
    gather_operand: Callable[[Shard, int, TensorSharding | None], Value],
) -> Shard:
    values = [gather_operand(shard, number, after) for number, after in enumerate(operands)]
    return evolve(shard, operands=values, operand_shardings=operands, result_shardings=results)

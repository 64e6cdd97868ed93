"""Insert reshards so that every op gets its operands, and gives its results, in shardings it can compute with.

Mirrors insert_explicit_reshards.cc::InsertExplicitReshardsPass.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from math import prod
from typing import ClassVar

from attrs import evolve, field

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.op_names import CALL, MANUAL_COMPUTATION, PROPAGATION_BARRIER, RESHARD
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.graph.shardings import distinct
from shardy_py.ir.graph.types import Type, static_shape
from shardy_py.ir.graph.walk import names_with_trait, nearest_location, ops_named
from shardy_py.ir.interfaces.ops import (
    Broadcast,
    Concatenation,
    Contraction,
    DynamicSlice,
    DynamicUpdate,
    IsTerminator,
    OpSemantics,
    Reshape,
    Sort,
    Trait,
    Unpartitioned,
)
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import ReductionOp, TensorSharding
from shardy_py.support.identity import identity
from shardy_py.transforms.finish.reshards.boundaries import reshard_call, reshard_data_flow, reshard_returns
from shardy_py.transforms.finish.reshards.insertion import InsertionPoint, Resharder, rank_of
from shardy_py.transforms.finish.reshards.plan import Mode, Plan, PlanKey, Shardings, make_plan
from shardy_py.transforms.finish.reshards.replicated_tensors import (
    computes_on_whole_tensors,
    divides_slices,
    gather_around,
    gather_updated,
    replicate_captures,
)
from shardy_py.transforms.finish.reshards.sharding_carriers import OpInfo, visits_named, visits_of
from shardy_py.transforms.finish.reshards.single_device import refuse_single_device_interface, reshard_single_device_op
from shardy_py.transforms.finish.reshards.unreduced import convert_reshard, reduce_operands, reduce_results
from shardy_py.transforms.sharding_walker import IN_SHARDINGS, OUT_SHARDINGS
from shardy_py.transforms.upstream import HEAD, JAXLIB, check_upstream
from shardy_py.values import NoFields, frozen


@frozen
class InsertExplicitReshardsPass:
    """Insert explicit reshards, and all-reduces for sharded reduction factors.

    Two tensors of an op conflict where an axis shards dimensions that do not correspond, or shards a dimension of
    one and not the corresponding one of the other. After the full version no op has a conflict. The other version
    leaves conflicts to the partitioner, but for calls, concatenations of tensors sharded unlike the result,
    contractions where resharding the result is cheaper, and unreduced axes.

    Args:
        enable_full_version: Whether all ops are resharded.
        reshard_ops_without_rule: Whether the full version also lets ops without a rule compute on whole tensors, as
            nobody knows what they would make of parts. The reference leaves them alone.
        upstream: Whose behaviour is mirrored where versions differ: ``0.10.2`` of jaxlib, or ``head``, which also
            reshards around ops on a single device.
    """

    name: ClassVar[str] = "sdy-insert-explicit-reshards"

    enable_full_version: bool = False
    reshard_ops_without_rule: bool = False
    upstream: str = field(default=JAXLIB, validator=check_upstream)

    def run(self, program: Program, context: PassContext) -> None:
        """Insert the reshards of all functions.

        Raises:
            VerificationError: unreduced axes end, or begin, where nothing can be inserted for them.
        """
        insert_reshards(
            program,
            context,
            mode=Mode.FULL if self.enable_full_version else Mode.MINIMAL,
            without_rule=self.reshard_ops_without_rule,
            around_single_devices=self.upstream == HEAD,
        )


class InsertPartitionerReshardsPass(NoFields):
    """Insert the reshards that XLA's SPMD partitioner makes by itself, where it gets shardings and no reshards.

    It stands where `InsertExplicitReshardsPass` stands, for estimates of what XLA does with a propagated program.
    """

    name: ClassVar[str] = InsertExplicitReshardsPass.name

    def run(self, program: Program, context: PassContext) -> None:
        """Insert the reshards of all functions.

        Raises:
            VerificationError: unreduced axes end, or begin, where nothing can be inserted for them.
        """
        # The partitioner sees no barriers: its input has none.
        for barrier in ops_named(program, PROPAGATION_BARRIER):
            barrier.results[0].replace_all_uses_with(barrier.operands[0])
            barrier.erase()
        insert_reshards(program, context, mode=Mode.PARTITIONER, without_rule=True)


def insert_reshards(
    program: Program, context: PassContext, *, mode: Mode, without_rule: bool, around_single_devices: bool = False
) -> None:
    """Insert the reshards of all functions.

    Args:
        program: The program.
        context: What the passes know.
        mode: ``FULL``, ``PARTITIONER``, or ``MINIMAL`` for what the partitioner is not left to do.
        without_rule: Whether ops without a rule compute on whole tensors, unless the mode is minimal.
        around_single_devices: Whether operands of ops on a single device go there by reshards.

    Raises:
        VerificationError: unreduced axes end, or begin, where nothing can be inserted for them.
    """
    semantics = context.semantics
    # Ops keep the dimensions that do not divide evenly here even where propagation was conservative.
    if semantics.options.conservative:
        semantics = semantics.with_options(evolve(semantics.options, conservative=False))
    resharder = Resharder.of(program, semantics)
    resharder.survey.open_partial_shardings(program.shardings)
    replicate_captures(resharder, semantics)
    around_single_devices = around_single_devices and any(mesh.is_maximal for mesh in resharder.meshes.values())
    run = _Run(resharder, semantics, mode=mode, without_rule=without_rule, around_single_devices=around_single_devices)
    everything = mode.is_full or around_single_devices or _has_unreduced_axes(program)
    functions = resharder.functions.values()
    # What is inserted is not visited, in whatever function it is.
    if everything:
        visits = {function: visits_of(function, semantics) for function in functions}
    else:
        visits = visits_named(program, _names_of_interest(program, semantics), semantics)
    for function in functions:
        if around_single_devices:
            refuse_single_device_interface(resharder, function)
        for op, info in visits.get(function, ()):
            run.visit(op, info)
        reshard_returns(resharder, function, full=mode.is_full)


def _has_unreduced_axes(program: Program) -> bool:
    """Return whether some sharding has unreduced axes, in the table or in the attributes of a manual computation."""
    if any(sharding.unreduced_axes for sharding in distinct(program.shardings.values())):
        return True
    computations = ops_named(program, MANUAL_COMPUTATION)
    held = [op.attributes.get(name) for op in computations for name in (IN_SHARDINGS, OUT_SHARDINGS)]
    return any(sharding.unreduced_axes for attribute in held if attribute for sharding in attribute.shardings)


def _names_of_interest(program: Program, semantics: OpSemantics) -> set[str]:
    """Return the names of the ops that the minimal version looks at where nothing is unreduced."""
    return {CALL, *names_with_trait(program, semantics, Contraction, Concatenation)}


@lru_cache(maxsize=4096)
def _plan_of(plan_key: PlanKey, meshes: tuple[tuple[str, Mesh], ...]) -> Plan | None:
    """Return a plan, which other programs of the process may need, too."""
    return make_plan(plan_key, dict(meshes))


class _Planner:
    """Looks up every distinct plan once: programs repeat the same few hundred situations over and over."""

    __slots__ = ("_by_identity", "_meshes", "_sizes")

    def __init__(self, meshes: Mapping[str, Mesh]) -> None:
        self._meshes = meshes
        self._by_identity: dict[tuple[object, ...], tuple[object, Plan | None]] = {}
        self._sizes: dict[Type, int] = {}

    def plan(
        self,
        op: Op,
        rule: OpShardingRule,
        mode: Mode,
        operands: Shardings,
        results: Shardings,
        own_operands: Shardings,
        reduction: ReductionOp | None,
    ) -> Plan | None:
        """Return the plan for an op; see `PlanKey`."""
        # Equal values are mostly the same object here, and identities are compared much faster.
        types = [value.type for value in op.operands] + [value.type for value in op.results]
        key = (reduction, *map(identity, (rule, mode, *operands, *results, *own_operands, *types)))
        known = self._by_identity.get(key)
        if known is not None:
            return known[1]
        sizes = tuple([self._size(type_) for type_ in types])
        count = len(operands)
        plan_key = PlanKey(rule, operands, results, sizes[:count], sizes[count:], mode, own_operands, reduction)
        names = {item.mesh for item in (*operands, *results, *own_operands) if item and isinstance(item.mesh, str)}
        plan = _plan_of(plan_key, tuple([(name, self._meshes[name]) for name in sorted(names) if name in self._meshes]))
        # What the key identifies has to stay alive, or another object could get its identity.
        self._by_identity[key] = ((plan_key, types), plan)
        return plan

    def _size(self, type_: Type) -> int:
        """Return the number of elements of a type; 0 where it is unknown."""
        size = self._sizes.get(type_)
        if size is None:
            shape = static_shape(type_)
            size = self._sizes[type_] = 0 if shape is None else prod(shape)
        return size


class _Run:
    """One run of the pass over a program."""

    __slots__ = (
        "_around_single_devices",
        "_extended",
        "_full",
        "_full_mode",
        "_known_unchanged",
        "_planner",
        "_resharder",
        "_rules",
        "_semantics",
        "_without_rule",
    )

    def __init__(
        self,
        resharder: Resharder,
        semantics: OpSemantics,
        *,
        mode: Mode,
        without_rule: bool,
        around_single_devices: bool,
    ) -> None:
        self._around_single_devices = around_single_devices
        self._resharder = resharder
        self._semantics = semantics
        self._planner = _Planner(resharder.meshes)
        self._full_mode = mode
        self._full = mode.is_full
        self._without_rule = mode.is_full and without_rule
        self._rules = resharder.program.rules
        self._known_unchanged: dict[tuple[int, ...], object] = {}
        # Ops that Shardy does not propagate through are partitioned by XLA, too, as `mhlo.erf` of a program of JAX.
        self._extended = semantics
        if self._without_rule:
            self._extended = semantics.with_options(evolve(semantics.options, extended=True, like_jit=False))

    def visit(self, op: Op, info: OpInfo) -> None:
        """Insert the reshards and collectives that one op needs."""
        resharder = self._resharder
        if IsTerminator in info.traits:
            return
        if info.data_flow is not None:
            reshard_data_flow(resharder, op, info.data_flow, full=self._full)
            return
        if op.name == CALL:
            reshard_call(resharder, op)
            return
        if self._around_single_devices and op.name != RESHARD and reshard_single_device_op(resharder, op):
            return
        cache_key = self._cache_key(op, info)
        if cache_key is not None and cache_key in self._known_unchanged:
            return
        is_unchanged = not convert_reshard(resharder, op) and not self._reshard(op, info.traits)
        if is_unchanged and cache_key is not None:
            values = (*op.operands, *op.results)
            # What the key identifies has to stay alive.
            self._known_unchanged[cache_key] = (*map(resharder.sharding, values), *[value.type for value in values])

    def _cache_key(self, op: Op, info: OpInfo) -> tuple[int, ...] | None:
        """Return the key of an op, by identity: equal keys of name, rule, types and shardings need the same reshards.

        Thousands of ops share them. None for the few kinds of ops where it is more: where something is reduced and its
        collectives may be no sums, or other ops count.
        """
        survey, table = self._resharder.survey, self._resharder.program.shardings
        rule = self._rules.get(op.id)
        if rule is None or op.regions or op.name == RESHARD or survey.barriers:
            return None
        if rule.reduction_factors and not self._only_sums(op):
            return None
        if DynamicUpdate in info.traits:
            # Where it changes something may be a constant.
            return None
        carriers, operands = survey.carriers, op.operands
        cache_key = [identity(info), identity(rule), len(operands)]
        for value in (*operands, *op.results):
            number = value.id
            cache_key.append(identity(table.get(carriers.get(number, number) if carriers else number)))
            cache_key.append(identity(value.type))
        return tuple(cache_key)

    def _only_sums(self, op: Op) -> bool:
        """Return whether the collectives of an op are sums, whatever its attributes and operands are."""
        return not self._semantics.options.extended and self._semantics.sums_collectives(op.name)

    def _reshard(self, op: Op, traits: Collection[Trait]) -> bool:
        """Insert the reshards of an op's operands and results; return whether there are any."""
        sharding = self._resharder.sharding
        operands = tuple(map(sharding, op.operands))
        results = tuple(map(sharding, op.results))
        # What mode an op is in depends on its operands as they were, unreduced axes included.
        mode = self._mode(op, traits, results, operands)
        is_changed = reduce_operands(self._resharder, op, operands, results)
        if is_changed:
            operands = tuple([sharding(value) for value in op.operands])
        if self._full_mode is Mode.PARTITIONER and self._is_unpartitioned(op, traits):
            gather_around(self._resharder, op)
            return True
        plan = self._plan(op, mode, operands, results)
        is_applied = plan is not None and not plan.is_empty
        if plan is not None and is_applied:
            self._apply(op, plan)
        if self._full_mode is Mode.PARTITIONER and DynamicUpdate in traits:
            is_applied = gather_updated(self._resharder, op) or is_applied
        if is_applied:
            return True
        if plan is None and self._without_rule and computes_on_whole_tensors(op, traits, self._semantics):
            gather_around(self._resharder, op)
            return True
        return is_changed

    def _is_unpartitioned(self, op: Op, traits: Collection[Trait]) -> bool:
        """Return whether XLA's partitioner computes an op on whole tensors, although there is a rule."""
        return Unpartitioned in traits or (DynamicSlice in traits and divides_slices(self._resharder, op))

    def _mode(self, op: Op, traits: Collection[Trait], results: Shardings, operands: Shardings) -> Mode:
        if self._full_mode is Mode.PARTITIONER and (Concatenation in traits or Sort in traits):
            return Mode.JOINED
        if self._full:
            return Mode.RESHAPE if Reshape in traits else self._full_mode
        # What is said about contractions is about two operands; more of them, a bias say, are left to the partitioner.
        if Contraction in traits and (len(op.operands), len(op.results)) == (2, 1):
            return Mode.CONTRACTION
        # If all are sharded alike there may still be a conflict, where the dimension concatenated is sharded, but
        # there the partitioner does better without a reshard.
        if Concatenation in traits and any(operand != results[0] for operand in operands):
            return Mode.FULL
        return Mode.MINIMAL

    def _plan(self, op: Op, mode: Mode, own_operands: Shardings, results: Shardings) -> Plan | None:
        operands = own_operands
        if self._resharder.survey.barriers:
            operands = tuple([self._resharder.sharding_before_barriers(value) for value in op.operands])
            results = tuple([self._resharder.sharding_before_barriers(value) for value in op.results])
        if mode is Mode.MINIMAL and not (results and results[0] is not None and results[0].unreduced_axes):
            return None
        if not any(operands) and not any(results):
            return None
        semantics = self._semantics
        rule = semantics.get_sharding_rule(op)
        if rule is None and self._without_rule:
            rule = self._extended.get_sharding_rule(op)
            # XLA sums what devices have of products that Shardy does not know, too.
            semantics = self._extended if self._full_mode is Mode.PARTITIONER else semantics
        # The rules that users give say how to propagate, not what the partitioner can do with their ops.
        if rule is None or rule.is_custom:
            return None
        rule, reduction = self._with_collectives_only(op, rule, semantics)
        return self._planner.plan(
            op, rule, mode, operands, results, own_operands if mode is Mode.RESHAPE else operands, reduction
        )

    def _with_collectives_only(
        self, op: Op, rule: OpShardingRule, semantics: OpSemantics
    ) -> tuple[OpShardingRule, ReductionOp | None]:
        """Return the rule with the reductions that a collective can combine, and that collective; None for a sum."""
        if not rule.reduction_factors:
            return rule, None
        reductions = semantics.get_reductions(op)
        if not reductions.shape_collectives and not semantics.options.extended:
            return rule, None
        from shardy_py.sharding.rule import with_collectives_only

        types = [getattr(value.type, "element_type", "") for value in op.results]
        changed, words = with_collectives_only(rule, reductions, types)
        return changed, next((word for word in words.values() if word != "sum"), None)

    def _apply(self, op: Op, plan: Plan) -> None:
        if plan.reduced_axes is None:
            message = "the results have unreduced axes, but the operands do not agree on the axes that are reduced"
            hint = "shard the reduced dimensions of all operands alike"
            raise VerificationError(Diagnostic("unreduced-conflict", message, nearest_location(op), op.name, hint))
        self._reshard_operands(op, plan)
        self._reshard_results(op, plan)
        if plan.reduced_axes:
            default = [TensorSharding.fully_closed(plan.mesh, rank_of(value)) for value in op.results]
            reduce_results(self._resharder, op, plan.reduced_axes, default, reduction=plan.reduction)

    def _reshard_operands(self, op: Op, plan: Plan) -> None:
        place = InsertionPoint.before(op)
        for number, wanted in enumerate(plan.operands):
            if wanted is not None:
                value = op.operands[number]
                clone = self._rematerialize(value, wanted, place) if self._full_mode is Mode.PARTITIONER else None
                op.set_operand(number, clone or self._resharder.reshard(value, wanted, place))

    def _rematerialize(self, value: Value, wanted: TensorSharding, place: InsertionPoint) -> Value | None:
        """Clone the producer of a constant or of a broadcast scalar in another sharding; return None for other values.

        XLA's spmd_partitioner.cc::PartitionedHlo::ReshardNoCache moves other broadcasts as it moves everything else.
        """
        producer = value.defining_op
        if producer is None or producer.regions or len(producer.results) != 1:
            return None
        if producer.operands and (
            Broadcast not in self._semantics.get_traits(producer) or static_shape(producer.operands[0].type)
        ):
            return None
        copy = clone_op(producer, {})
        place.insert(copy)
        self._resharder.program.shardings[copy.results[0].id] = wanted
        self._reshard(copy, self._semantics.get_traits(copy))
        # Where it is made in another sharding, a reshard is the only user so far.
        resharded = copy.results[0].users
        return resharded[0].results[0] if resharded else copy.results[0]

    def _reshard_results(self, op: Op, plan: Plan) -> None:
        """Set the shardings in which the op computes its results, and reshard the results to those that they had."""
        resharder, place = self._resharder, InsertionPoint.after(op)
        for value, wanted in zip(op.results, plan.results, strict=True):
            if wanted is None:
                continue
            target = resharder.sharding(value) or TensorSharding.fully_closed(plan.mesh, rank_of(value))
            moved = resharder.reshard(value, target, place)
            value.replace_all_uses_with(moved, except_op=moved.owning_op)
            resharder.set_result_sharding(value, wanted)

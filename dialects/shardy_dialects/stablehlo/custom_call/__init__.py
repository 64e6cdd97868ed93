"""Custom calls with a known target; all others have no rule unless one is written on them.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING

from attrs import evolve

from shardy_dialects.stablehlo.attributes import flag_of, text_of
from shardy_dialects.stablehlo.definitions import Definitions, Lazy, LazyFacets
from shardy_dialects.stablehlo.rng import BIT_GENERATOR
from shardy_dialects.stablehlo.sort import has_arity, top_k_rule
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import PassThrough, Pure, RuleOptions, Sort, Trait, Unpartitioned
from shardy_py.sharding import einsum
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, pointwise_rule, tensor_shape

if TYPE_CHECKING:
    from shardy_py.ir.graph.program import Value
    from shardy_py.ir.interfaces.local import Shard

FACETS = LazyFacets(__name__)


def register(definitions: Definitions) -> None:
    """Define the custom call; the rule of one target looks at users."""
    definitions.define(
        "stablehlo.custom_call",
        of_options=custom_call_rule,
        traits=(),
        traits_of=custom_call_traits,
        contextual=_makes_random_state,
        told_apart_by="call_target_name",
        local=KnownCalls(),
        cost=FACETS.cost("CustomCallCost"),
    )


APPROXIMATE_TOP_K = "ApproxTopK"
"""An approximate top-k, which backends without a better one make of a sort."""


OFFLOAD_TARGETS = ("MoveToDevice", "MoveToHost")


COMBINE = "X64Combine"


DECOMPOSITIONS = ("Eigh", "ProductOfElementaryHouseholderReflectors", "Qr")
"""Decompositions of matrices that XLA expands after partitioning, before which it knows nothing of them."""


_NONE: frozenset[Trait] = frozenset()


_PURE, _PASSES, _SORTS, _WHOLE = (frozenset((trait,)) for trait in (Pure, PassThrough, Sort, Unpartitioned))


_BY_TARGET = MappingProxyType(
    {
        **dict.fromkeys(OFFLOAD_TARGETS, _PASSES),
        APPROXIMATE_TOP_K: _SORTS,
        **dict.fromkeys(DECOMPOSITIONS, _WHOLE),
    }
)


POINTWISE_TARGETS = (
    *OFFLOAD_TARGETS,
    "Cholesky",
    "CompactWyHelper",
    "InspectSharding",
    "InvertDiagBlocksLowerTriangular",
    "InvertDiagBlocksUpperTriangular",
    "LayoutConstraint",
    "X64SplitHigh",
    "X64SplitLow",
    "_SPMDInternalOp_MultiPad",
    "_SPMDInternalOp_MultiRotate",
    "_SPMDInternalOp_MultiSlice",
    "_SPMDInternalOp_RotateRight",
    "_SPMDInternalOp_Wrap",
    "annotate_device_placement",
    "mhlo.erf",
    "xla.megascale.provide_metadata",
)


def pointwise_call_rule(op: Op) -> OpShardingRule | None:
    """Return the pointwise rule, permuted along dimensions whose sizes differ, as those of a slice.

    The reference, which does not compare sizes, lets these pass through.
    """
    rule = pointwise_rule(op)
    if rule is None:
        return None
    shapes = {tensor_shape(value) for value in (*op.operands, *op.results)}
    sizes = zip_longest(*shapes)
    uneven = tuple(dim for dim, sizes_of_dim in enumerate(sizes) if len({*sizes_of_dim} - {None}) > 1)
    return evolve(rule, permutation_factors=uneven) if uneven else rule


def eigh_rule(op: Op) -> OpShardingRule | None:
    """Pass the batch through, and both dimensions of the matrices; the eigenvalues have the last one."""
    return einsum.rule("... m n -> ... m n, ... n")(op) if has_arity(op, 1, 2) else None


def qr_rule(op: Op) -> OpShardingRule | None:
    """Pass the batch through, replicate the matrices and the vector of the second result."""
    return einsum.rule("... m n -> ... m n, ... v", need_replication="m n v")(op) if has_arity(op, 1, 2) else None


def householder_product_rule(op: Op) -> OpShardingRule | None:
    """Pass the batch through, replicate the matrices and the vector of the second operand."""
    return einsum.rule("... m n, ... v -> ... m n", need_replication="m n v")(op) if has_arity(op, 2, 1) else None


def partial_reduce_rule(op: Op) -> OpShardingRule | None:
    """Return the rule of an approximate top-k of values and their indices, with two initial scalars."""
    if not has_arity(op, 4, 2):
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    out_shape = tensor_shape(op.results[0])
    for dim, (size, out_size) in enumerate(zip(tensor_shape(op.operands[0]), out_shape, strict=True)):
        if size == out_size:
            builder.add_factor_all(dim, size)
            continue
        builder.add_factor({0: dim, 1: dim}, {}, size)
        builder.add_factor({}, {0: dim, 1: dim}, out_size, kind=FactorKind.NEED_REPLICATION, blocked=True)
    return builder.build()


def x64_combine_rule(op: Op) -> OpShardingRule | None:
    """Return the pointwise rule, but block the initial state of a random number generator, which is replicated.

    Its 64-bit form could not be resharded.
    """
    if not _makes_random_state(op):
        return pointwise_call_rule(op)
    builder = OpShardingRuleBuilder.for_op(op)
    for size in tensor_shape(op.results[0])[:1]:
        builder.add_factor_all(0, size, kind=FactorKind.NEED_REPLICATION, blocked=True)
    return builder.build()


RULES: Mapping[str, Callable[[Op], OpShardingRule | None]] = MappingProxyType(
    {
        **dict.fromkeys(POINTWISE_TARGETS, pointwise_call_rule),
        APPROXIMATE_TOP_K: partial_reduce_rule,
        "Eigh": eigh_rule,
        "PartialReduce": partial_reduce_rule,
        "ProductOfElementaryHouseholderReflectors": householder_product_rule,
        "Qr": qr_rule,
        "QrDecompositionBlock": qr_rule,
        COMBINE: x64_combine_rule,
        "mhlo.topk": top_k_rule,
    }
)
"""Custom call target to rule."""


def custom_call_rule(op: Op, options: RuleOptions) -> OpShardingRule | None:
    """Return the rule of the call's target; an unknown one has an extended rule if it says what its batch is."""
    rule = RULES.get(text_of(op, "call_target_name"))
    if rule is not None:
        return rule(op)
    return batched_call_rule(op) if options.extended and not options.like_jit else None


def batched_call_rule(op: Op) -> OpShardingRule | None:
    """Pass the batch through, and replicate all other dimensions.

    The calls of ``jnp.linalg`` have a batch, and those of targets that
    ``jax.ffi.register_ffi_target_as_batch_partitionable`` was called for.
    """
    rank = batch_rank(op)
    shapes = [tensor_shape(value) for value in (*op.operands, *op.results)]
    if not rank or any(len(shape) < rank or shape[:rank] != shapes[0][:rank] for shape in shapes):
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    for dim in range(rank):
        builder.add_factor_all(dim, shapes[0][dim])
    for number, shape in enumerate(shapes):
        for dim in range(rank, len(shape)):
            count = len(op.operands)
            operand_dims, result_dims = ({number: dim}, {}) if number < count else ({}, {number - count: dim})
            builder.add_factor(operand_dims, result_dims, shape[dim], kind=FactorKind.NEED_REPLICATION)
    return builder.build()


def batch_rank(op: Op) -> int:
    """Return the number of leading dimensions of all tensors that are a batch, of which a device may compute a part."""
    attributes = op.attributes.get("mhlo.frontend_attributes")
    text = str(attributes.get("num_batch_dims", "")) if isinstance(attributes, Mapping) else ""
    return int(text) if text.isdecimal() else 0


def custom_call_traits(op: Op) -> frozenset[Trait]:
    """Return the traits: pure unless it says otherwise; host offload passes through."""
    traits = _BY_TARGET.get(text_of(op, "call_target_name"), _NONE)
    return traits if flag_of(op, "has_side_effect") else traits | _PURE


def _makes_random_state(op: Op) -> bool:
    """Return whether a call combines halves to the state of a random number generator."""
    if text_of(op, "call_target_name") != COMBINE or not op.results:
        return False
    return any(user.name == BIT_GENERATOR for user in op.results[0].users)


class KnownCalls:
    """The local form of custom calls whose target is known."""

    def localize(self, op: Op, shard: Shard) -> Sequence[Value]:
        """Return the results of the call on one device."""
        return FACETS.local("localize_custom_call")(op, shard)

    def applies(self, op: Op) -> bool:
        """Return whether it is known what a call computes."""
        is_known: Lazy[[Op], bool] = Lazy(f"{__name__}.local", "is_known")
        return is_known(op)

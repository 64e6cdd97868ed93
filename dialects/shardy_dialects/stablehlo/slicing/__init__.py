"""Slices, updates of slices, padding and concatenation.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from shardy_dialects.stablehlo.attributes import integer_of, integers_of
from shardy_dialects.stablehlo.bodies import move
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets, refuse_bounds, shape_of
from shardy_py.indexing import OpIndexing, op_maps
from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import no_local_form
from shardy_py.plugins import (
    Concatenation,
    ConstantFoldable,
    DynamicSlice,
    DynamicUpdate,
    ForwardPassThrough,
    Pure,
    RuleOptions,
)
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape

if TYPE_CHECKING:
    from shardy_dialects.stablehlo.definitions import Maps

CONCATENATE, SLICE = "stablehlo.concatenate", "stablehlo.slice"
FACETS = LazyFacets(__name__)


def register(definitions: Definitions) -> None:
    """Define the slices, updates, padding and concatenation."""
    parts = FACETS.cost("SliceCost")
    definitions.define(
        SLICE,
        of_options=static_window_rule,
        traits=(Pure, ConstantFoldable),
        maps=slice_maps,
        body=move,
        local=FACETS.local("localize_slice"),
        cost=parts,
    )
    definitions.define(
        "stablehlo.pad",
        of_options=static_window_rule,
        maps=pad_maps,
        body=FACETS.body("pad"),
        local=FACETS.local("localize_pad", "pad_local"),
        cost=FACETS.cost("PadCost"),
    )
    definitions.define("stablehlo.dynamic_pad", of_options=static_window_rule, extended=True, local=refuse_bounds)
    definitions.define(
        "stablehlo.dynamic_slice",
        dynamic_slice_rule,
        traits=(Pure, ForwardPassThrough, DynamicSlice),
        maps=dynamic_slice_maps,
        body=FACETS.body("dynamic_slice"),
        local=FACETS.local("localize_dynamic_slice", "dynamic_local"),
        cost=parts,
    )
    definitions.define("stablehlo.real_dynamic_slice", dynamic_slice_rule, extended=True, local=refuse_bounds)
    definitions.define(
        "stablehlo.dynamic_update_slice",
        dynamic_update_slice_rule,
        traits=(Pure, ForwardPassThrough, DynamicUpdate),
        contextual=_has_constant_indices,
        maps=dynamic_update_slice_maps,
        body=FACETS.body("dynamic_update_slice"),
        local=FACETS.local("localize_dynamic_update_slice", "dynamic_local"),
        cost=FACETS.cost("UpdateCost"),
    )
    definitions.define(
        CONCATENATE,
        of_options=concatenate_rule,
        traits=(Concatenation, Pure),
        contextual=_joins_slices,
        maps=concatenate_maps,
        body=FACETS.body("concatenate"),
        local=FACETS.local("localize_concatenate"),
        cost=FACETS.cost("ConcatenateCost"),
    )


def static_window_rule(op: Op, options: RuleOptions) -> OpShardingRule:
    """Return the rule of a slice or a pad: dimensions of another size need a permutation, conservatively they block.

    The offsets are known, so that it is known how to shift the data of a sharded dimension.
    """
    builder = OpShardingRuleBuilder(
        [tensor_shape(value) for value in op.operands], [tensor_shape(value) for value in op.results]
    )
    return _mismatch(builder, op, FactorKind.PERMUTATION, blocked=options.conservative).build()


def dynamic_slice_rule(op: Op) -> OpShardingRule:
    """Pass unsliced dimensions through; nothing propagates along sliced ones."""
    return _mismatch(OpShardingRuleBuilder.for_op(op), op, FactorKind.NEED_REPLICATION, blocked=True).build()


def dynamic_update_slice_rule(op: Op) -> OpShardingRule:
    """Keep operand and result sharded along updated dimensions; the update is replicated there.

    Every device writes the part of the update that falls into its shard. With constant indices it is known which
    part that is, and the update may be sharded, too.
    """
    kind = FactorKind.PASS_THROUGH if _has_constant_indices(op) else FactorKind.NEED_REPLICATION
    builder = OpShardingRuleBuilder.for_op(op)
    update_shape = tensor_shape(op.operands[1])
    for dim, (size, update_size) in enumerate(zip(tensor_shape(op.operands[0]), update_shape, strict=True)):
        if size == update_size:
            builder.add_factor_all(dim, size)
        else:
            builder.add_factor({0: dim}, {0: dim}, size)
            builder.add_factor({1: dim}, {}, update_size, kind=kind)
    return builder.build()


def concatenate_rule(op: Op, options: RuleOptions) -> OpShardingRule:
    """Pass all dimensions through but the concatenated one, which conservatively has no factor at all."""
    dimension = integer_of(op, "dimension")
    kind = FactorKind.PERMUTATION if _joins_slices(op) else FactorKind.NEED_REPLICATION
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_pointwise(
        tensor_shape(op.results[0]),
        where=lambda dim: not options.conservative or dim != dimension,
        kind=lambda dim: kind if dim == dimension else FactorKind.PASS_THROUGH,
    )
    return builder.build()


def _mismatch(builder: OpShardingRuleBuilder, op: Op, kind: FactorKind, *, blocked: bool) -> OpShardingRuleBuilder:
    """Add one factor per dimension of the first operand; the other operands have no part."""
    for dim, (size, out_size) in enumerate(zip(tensor_shape(op.operands[0]), tensor_shape(op.results[0]), strict=True)):
        if size == out_size:
            builder.add_factor({0: dim}, {0: dim}, size)
        else:
            builder.add_factor({0: dim}, {0: dim}, size, kind=kind, blocked=blocked)
    return builder


def _joins_slices(op: Op) -> bool:
    """Return whether a concatenation only rearranges: all operands are slices, or of one tensor and some a slice."""
    are_slices = [_is_slice(operand) for operand in op.operands]
    if all(are_slices):
        return True
    sources = {_before_slice(operand).id for operand in op.operands}
    return any(are_slices) and len(sources) == 1


def _is_slice(value: Value) -> bool:
    return value.defining_op is not None and value.defining_op.name == SLICE


def _before_slice(value: Value) -> Value:
    producer = value.defining_op
    return producer.operands[0] if producer is not None and producer.name == SLICE else value


def _has_constant_indices(op: Op) -> bool:
    """Return whether it is known where a dynamic update slice writes."""
    return all(map(_is_constant, op.operands[2:]))


def _is_constant(value: Value) -> bool:
    return value.defining_op is not None and value.defining_op.name.endswith(".constant")


def slice_maps(op: Op) -> OpIndexing:
    """Read with an offset and steps."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    starts, strides = integers_of(op, "start_indices"), integers_of(op, "strides")
    return OpIndexing(
        [op_maps.slice_(output, starts, strides)], [op_maps.slice_to_output(shape, output, starts, strides)]
    )


def pad_maps(op: Op) -> Maps:
    """Read the operand where it lies in the result, and the padding value."""
    output = shape_of(op.results[0])
    low, high = integers_of(op, "edge_padding_low"), integers_of(op, "edge_padding_high")
    return [op_maps.pad(output, low, high, integers_of(op, "interior_padding")), op_maps.scalar(output)]


def concatenate_maps(op: Op) -> OpIndexing:
    """Read each operand in its part of the result."""
    output, dimension = shape_of(op.results[0]), integer_of(op, "dimension")
    read, written, offset = [], [], 0
    for shape in map(shape_of, op.operands):
        read.append(op_maps.concatenate(output, dimension, offset, shape[dimension]))
        written.append(op_maps.concatenate_to_output(shape, dimension, offset))
        offset += shape[dimension]
    return OpIndexing(read, written)


def dynamic_slice_maps(op: Op) -> Maps:
    """Read from starts that are known at run time."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    return [op_maps.dynamic_slice(output, shape), *[op_maps.scalar(output)] * len(shape)]


def dynamic_update_slice_maps(op: Op) -> Maps:
    """Read the operand in place, and the update from starts that are known at run time."""
    output = shape_of(op.results[0])
    update = op_maps.dynamic_update(output, shape_of(op.operands[1]))
    return [op_maps.identity(output), update, *[op_maps.scalar(output)] * len(output)]


def pad_slice(op: Op, operands: Sequence[Sequence[int]], result: Sequence[int]) -> Mapping[str, Attribute]:
    """Return limits that give all elements of the padded result."""
    limits = list(op.attributes["limit_indices"])
    rows = zip(result, op.results[0].shape, op.attributes["start_indices"], op.attributes["strides"], strict=True)
    for dim, (size, old, start, stride) in enumerate(rows):
        if size != old:
            limits[dim] = start + (size - 1) * stride + 1
        if limits[dim] > operands[0][dim]:
            raise no_local_form(f"the padding of dimension {dim} is larger than what the slice leaves")
    return {"limit_indices": tuple(limits)}

"""Making tensors and taking them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Concatenation, ConstantFoldable, ConstantLike, Dialect, Elementwise, PassThrough, Pure
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, Shape, pointwise_rule, tensor_shape
from shardy_py.sharding.rules import concatenate


def window_rule(op: Op) -> OpShardingRule | None:
    """Pass the dimensions through that keep their size; those that are padded need a permutation."""
    sizes, out_sizes = tensor_shape(op.operands[0]), tensor_shape(op.results[0])
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, (size, out_size) in enumerate(zip(sizes, out_sizes, strict=True)):
        kind = FactorKind.PASS_THROUGH if size == out_size else FactorKind.PERMUTATION
        builder.add_factor({0: dim}, {0: dim}, size, kind=kind)
    return builder.build()


def slice_rule(op: Op) -> OpShardingRule | None:
    """Pass the dimensions through that keep their size; those that are cut need a permutation.

    Dimensions of which one element is taken may be left out. Whoever has it sends it to all: they need replication.
    """
    sizes, out_sizes = tensor_shape(op.operands[0]), tensor_shape(op.results[0])
    kept = kept_dims(op.attributes.get("static_sizes", out_sizes), out_sizes)
    if kept is None or len(kept) != len(sizes):
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, (size, out_dim) in enumerate(zip(sizes, kept, strict=True)):
        if out_dim is None:
            builder.add_factor({0: dim}, {}, size, kind=FactorKind.NEED_REPLICATION)
            continue
        kind = FactorKind.PASS_THROUGH if size == out_sizes[out_dim] else FactorKind.PERMUTATION
        builder.add_factor({0: dim}, {0: out_dim}, size, kind=kind)
    return builder.build()


def insert_slice_rule(op: Op) -> OpShardingRule | None:
    """Keep destination and result sharded alike; the source as well where it has all of a dimension.

    Along other dimensions it may be sharded as it likes: it is known which part falls into which shard.
    """
    source, sizes = tensor_shape(op.operands[0]), tensor_shape(op.operands[1])
    kept = kept_dims(op.attributes.get("static_sizes", source), source)
    if kept is None or len(kept) != len(sizes):
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, (size, source_dim) in enumerate(zip(sizes, kept, strict=True)):
        if source_dim is not None and source[source_dim] == size:
            builder.add_factor({0: source_dim, 1: dim}, {0: dim}, size)
            continue
        builder.add_factor({1: dim}, {0: dim}, size)
        if source_dim is not None:
            builder.add_factor({0: source_dim}, {}, source[source_dim])
    return builder.build()


def kept_dims(sizes: Sequence[int], kept_sizes: Sequence[int]) -> list[int | None] | None:
    """Return for each dimension of a slice its number among those that are kept, None where it is left out.

    Of several dimensions of size 1 the first ones are kept, as in MLIR. There is no answer where the sizes do not fit.

    >>> kept_dims((1, 4, 1, 1), (4, 1))
    [None, 0, 1, None]
    """
    found: list[int | None] = []
    following = 0
    for size in sizes:
        if following < len(kept_sizes) and kept_sizes[following] == size:
            found.append(following)
            following += 1
        elif size == 1:
            found.append(None)
        else:
            return None
    return found if following == len(kept_sizes) else None


def concat_rule(op: Op) -> OpShardingRule | None:
    """Pass all dimensions through but the joined one, which must be replicated."""
    return concatenate(op, op.attributes["dim"])


def regroup_rule(op: Op, *, groups_of_result: bool) -> OpShardingRule:
    """Tie each dimension of the smaller shape to its group of dimensions of the larger, which are its factors."""
    builder = OpShardingRuleBuilder.for_op(op)
    large = tensor_shape(op.results[0] if groups_of_result else op.operands[0])
    for small_dim, group in enumerate(op.attributes["reassociation"]):
        for large_dim in group:
            operand, result = (small_dim, large_dim) if groups_of_result else (large_dim, small_dim)
            builder.add_factor({0: operand}, {0: result}, large[large_dim])
    return builder.build()


def _static(rule: Callable[[Op], OpShardingRule | None], op: Op) -> OpShardingRule | None:
    """Return the rule of an op, none where a size is not known."""
    shapes: list[Shape] = [tensor_shape(value) for value in (*op.operands, *op.results)]
    return None if any(None in shape for shape in shapes) else rule(op)


def register(dialect: Dialect) -> None:
    """Define the ops on tensors."""
    dialect.op("tensor.empty", traits=[ConstantLike, Pure])
    dialect.op("tensor.splat", traits=[ConstantFoldable, Pure], rule=partial(_static, pointwise_rule))
    dialect.op("tensor.cast", traits=[Elementwise, Pure], rule=partial(_static, pointwise_rule))
    dialect.op("tensor.extract_slice", traits=[ConstantFoldable, Pure], rule=partial(_static, slice_rule))
    dialect.op("tensor.insert_slice", traits=[Pure], rule=partial(_static, insert_slice_rule))
    dialect.op("tensor.pad", traits=[Pure], rule=partial(_static, window_rule))
    dialect.op("tensor.concat", traits=[Concatenation, Pure], rule=partial(_static, concat_rule))
    dialect.op(
        "tensor.expand_shape",
        traits=[PassThrough, Pure],
        rule=partial(_static, partial(regroup_rule, groups_of_result=True)),
    )
    dialect.op(
        "tensor.collapse_shape",
        traits=[PassThrough, Pure],
        rule=partial(_static, partial(regroup_rule, groups_of_result=False)),
    )
    for name in ("dim", "extract", "from_elements"):
        dialect.op(f"tensor.{name}", traits=[Pure])

"""Tensors that are made and taken apart: rules and local forms, where sizes in attributes become those of shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from shardy_dialects.linalg.dynamic_sizes import (
    EMPTY,
    SIZES,
    dim_rule,
    empty_rule,
    empty_traits,
    index_constant,
    localize_empty,
    whole_size,
)
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import local_by_types, local_constant
from shardy_py.plugins import (
    Concatenation,
    ConstantFoldable,
    Dialect,
    Elementwise,
    PassThrough,
    Pure,
    ReadsSizes,
    Shard,
    no_local_form,
    with_window,
)
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, Shape, pointwise_rule, tensor_shape
from shardy_py.sharding.rules import concatenate, reshape
from shardy_py.sharding.unknown_size import is_derived


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

    Dimensions of which one element is taken may be left out. The device that has it sends it to all others: these
    dimensions need replication.
    """
    sizes, out_sizes = tensor_shape(op.operands[0]), tensor_shape(op.results[0])
    result_dims = kept_dims(op.attributes.get("static_sizes", out_sizes), out_sizes)
    if result_dims is None or len(result_dims) != len(sizes):
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, (size, out_dim) in enumerate(zip(sizes, result_dims, strict=True)):
        if out_dim is None:
            builder.add_factor({0: dim}, {}, size, kind=FactorKind.NEED_REPLICATION)
            continue
        kind = FactorKind.PASS_THROUGH if size == out_sizes[out_dim] else FactorKind.PERMUTATION
        builder.add_factor({0: dim}, {0: out_dim}, size, kind=kind)
    return builder.build()


def insert_slice_rule(op: Op) -> OpShardingRule | None:
    """Keep destination and result sharded alike; the source as well where it has all of a dimension.

    Along other dimensions any sharding of it will do: it is known which part falls into which shard.
    """
    source, sizes = tensor_shape(op.operands[0]), tensor_shape(op.operands[1])
    source_dims = kept_dims(op.attributes.get("static_sizes", source), source)
    if source_dims is None or len(source_dims) != len(sizes):
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, (size, source_dim) in enumerate(zip(sizes, source_dims, strict=True)):
        if source_dim is not None and source[source_dim] == size:
            builder.add_factor({0: source_dim, 1: dim}, {0: dim}, size)
            continue
        builder.add_factor({1: dim}, {0: dim}, size)
        if source_dim is not None:
            builder.add_factor({0: source_dim}, {}, source[source_dim])
    return builder.build()


def scatter_rule(op: Op) -> OpShardingRule | None:
    """Pass the dimensions through that are not scattered along; which place an element goes to is not known before."""
    source, target, places = (tensor_shape(value) for value in op.operands)
    written, scattered = places[:-1], op.attributes["scatter_dims"]
    passed = [dim for dim in range(len(target)) if len(source) == len(written) + len(target) or dim not in scattered]
    if len(source) != len(written) + len(passed):
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(target):
        if dim in scattered:
            builder.add_factor({1: dim}, {0: dim}, size, kind=FactorKind.NEED_REPLICATION)
        else:
            builder.add_factor({0: len(written) + passed.index(dim), 1: dim}, {0: dim}, size)
    for dim, size in enumerate(written):
        builder.add_factor({0: dim, 2: dim}, {}, size, kind=FactorKind.NEED_REPLICATION)
    return builder.build()


def kept_dims(sizes: Sequence[int], kept_sizes: Sequence[int]) -> list[int | None] | None:
    """Return for each dimension of a slice its number among those that are kept, None where it is left out.

    Of several dimensions of size 1 the first ones are kept, as in MLIR. There is no answer where the sizes do not fit.

    >>> kept_dims((1, 4, 1, 1), (4, 1))
    [None, 0, 1, None]
    """
    numbers: list[int | None] = []
    following = 0
    for size in sizes:
        if following < len(kept_sizes) and kept_sizes[following] == size:
            numbers.append(following)
            following += 1
        elif size == 1:
            numbers.append(None)
        else:
            return None
    return numbers if following == len(kept_sizes) else None


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


def generate_rule(op: Op) -> OpShardingRule | None:
    """Keep the dimensions whole whose place the body reads, as a shard counts its own.

    There is no rule where operands have sizes of the whole tensor.
    """
    if op.operands:
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, (size, is_read) in enumerate(zip(tensor_shape(op.results[0]), _read_dims(op), strict=True)):
        kind = FactorKind.NEED_REPLICATION if is_read else FactorKind.PASS_THROUGH
        builder.add_factor([], {0: dim}, size, kind=kind)
    return builder.build()


def _read_dims(op: Op) -> tuple[bool, ...]:
    return tuple(bool(argument.users) for argument in op.regions[0].block.arguments)


def localize_generate(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the shard, each element of which the body makes."""
    shard.check_kinds()
    return shard.copy()


def _static(rule: Callable[[Op], OpShardingRule | None], op: Op) -> OpShardingRule | None:
    """Return the rule of an op, none where a size is not known."""
    shapes: list[Shape] = [tensor_shape(value) for value in (*op.operands, *op.results)]
    return None if any(None in shape for shape in shapes) else rule(op)


def register(dialect: Dialect) -> None:
    """Define the ops on tensors."""
    dialect.op(EMPTY, traits=[Pure], traits_of=empty_traits, rule=empty_rule, local=localize_empty, sizes=SIZES[EMPTY])
    dialect.op(
        "tensor.splat", traits=[ConstantFoldable, Pure], rule=partial(_static, pointwise_rule), local=local_by_types
    )
    for name in ("cast", "bitcast"):
        rule = partial(_static, pointwise_rule)
        dialect.op(f"tensor.{name}", traits=[Elementwise, Pure], rule=rule, local=local_by_types)
    dialect.op("tensor.reshape", traits=[Pure], rule=reshape, local=localize_reshape)
    dialect.op(
        "tensor.extract_slice",
        traits=[ConstantFoldable, Pure],
        rule=partial(_static, slice_rule),
        local=localize_extract_slice,
    )
    dialect.op(
        "tensor.insert_slice", traits=[Pure], rule=partial(_static, insert_slice_rule), local=localize_insert_slice
    )
    dialect.op("tensor.scatter", traits=[Pure], rule=partial(_static, scatter_rule), local=local_by_types)
    dialect.op("tensor.pad", traits=[Pure], rule=partial(_static, window_rule), local=local_by_types)
    dialect.op("tensor.concat", traits=[Concatenation, Pure], rule=partial(_static, concat_rule), local=local_by_types)
    dialect.op(
        "tensor.expand_shape",
        traits=[PassThrough, Pure],
        rule=partial(_static, partial(regroup_rule, groups_of_result=True)),
        local=localize_expand_shape,
    )
    dialect.op(
        "tensor.collapse_shape",
        traits=[PassThrough, Pure],
        rule=partial(_static, partial(regroup_rule, groups_of_result=False)),
        local=local_by_types,
    )
    dialect.op("tensor.dim", traits=[Pure, ReadsSizes], rule=dim_rule, local=localize_dim, sizes=SIZES["tensor.dim"])
    dialect.op("tensor.generate", traits=[Pure], rule=generate_rule, contextual=_read_dims, local=localize_generate)
    for name in ("extract", "from_elements"):
        dialect.op(f"tensor.{name}", traits=[Pure])


def localize_reshape(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the reshape where its result is whole, as an operand holds its sizes.

    Raises:
        CannotLocalize: the result is sharded.
    """
    if shard.sharded_dims(shard.result_shardings[0]):
        raise no_local_form("an operand holds sizes of the whole tensor")
    return shard.copy()


def localize_extract_slice(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the slice of the shard; elements of sharded dimensions move to the devices that have them in the result.

    Raises:
        CannotLocalize: it is not known where the slice begins.
    """
    shard.check_kinds([FactorKind.NEED_REPLICATION])
    _check_static(op)
    offsets, sizes = list(op.attributes["static_offsets"]), list(_local_sizes(op, shard.operands[0]))
    result_dims = kept_dims(op.attributes["static_sizes"], op.results[0].shape) or []
    for dim, result_dim in enumerate(result_dims):
        if result_dim is None or op.operands[0].shape[dim] == op.results[0].shape[result_dim]:
            continue
        parts, start, step = shard.parts(shard.result_shardings[0], result_dim), offsets[dim], _step(op, dim)
        if max(parts, shard.parts(shard.operand_shardings[0], dim)) == 1:
            continue
        if start < 0 or step < 1:
            raise no_local_form("it is not known where the slice of a sharded dimension begins")
        offsets[dim], sizes[dim] = 0, shard.result_shape()[result_dim]
        starts = [start + place * sizes[dim] * step for place in range(parts)]
        shard = with_window(shard, 0, dim, starts, (sizes[dim] - 1) * step + 1, result_dim=result_dim)
    return shard.copy(static_offsets=tuple(offsets), static_sizes=tuple(sizes))


def localize_insert_slice(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the shard with a slice put into it, which has all elements along sharded dimensions.

    Raises:
        CannotLocalize: it is not known which part of the source falls into the shard.
    """
    shard.check_kinds()
    _check_static(op)
    sizes, shape = op.attributes["static_sizes"], op.operands[1].shape
    cut = shard.sharded_dims(shard.operand_shardings[1])
    if any(sizes[dim] != shape[dim] for dim in cut):
        raise no_local_form("a slice is put into a part of a sharded dimension")
    source_dims = kept_dims(sizes, op.operands[0].shape) or []
    if set(shard.sharded_dims(shard.operand_shardings[0])) != {source_dims[dim] for dim in cut}:
        raise no_local_form("the source and the destination are not sharded alike")
    return shard.copy(static_sizes=_local_sizes(op, shard.operands[1]))


def localize_expand_shape(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the shard in its new shape."""
    shard.check_kinds()
    if "static_output_shape" not in op.attributes:
        return shard.copy()
    return shard.copy(static_output_shape=shard.result_shape())


def localize_dim(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the size of a dimension of the whole tensor.

    Raises:
        CannotLocalize: it is not known, and the tensor is sharded.
    """
    sharding = shard.operand_shardings[0]
    shape, index = static_shape(op.operands[0].type), _number(op.operands[1])
    if index is not None and index not in shard.sharded_dims(sharding):
        return shard.copy()
    if index is None or shape is None:
        raise no_local_form("it is not known of which dimension the op gives the size")
    if is_derived(shape[index]):
        return [whole_size(op, shard, index)]
    return [index_constant(shard, op.results[0], shape[index])]


def localize_constant(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the part of a constant that the device has; one of equal elements is made in the size of the shard."""
    element = str(op.attributes["value"]).removeprefix("dense<").rpartition("> :")[0]
    if element and not element.startswith(("[", '"', "dense_resource")):
        return shard.copy(value=RawAttribute(f"dense<{element}> : {shard.result_type()}"))
    return local_constant(op, shard)


def _check_static(op: Op) -> None:
    """Check that offsets, sizes and strides are attributes.

    Raises:
        CannotLocalize: one is an operand.
    """
    if "static_sizes" not in op.attributes:
        raise no_local_form("the sizes of the slice are not known")


def _step(op: Op, dim: int) -> int:
    """Return the distance of two elements of a slice; a negative number where an operand holds it."""
    steps = op.attributes.get("static_strides", ())
    return int(steps[dim]) if steps else 1


def _local_sizes(op: Op, value: Value) -> tuple[int, ...]:
    """Return the sizes of a slice, where it takes all of a dimension those of the shard."""
    shape = op.operands[-1 if op.name.endswith("insert_slice") else 0].shape
    return tuple(
        local if size == full else size
        for size, full, local in zip(op.attributes["static_sizes"], shape, value.shape, strict=True)
    )


def _number(value: Value) -> int | None:
    """Return the number of a constant."""
    producer = value.defining_op
    number = producer.attributes.get("value") if producer is not None and not producer.operands else None
    return number if isinstance(number, int) else None

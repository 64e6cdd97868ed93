"""Rules and local forms of nodes that change shapes, join, cut and select, and of constants."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.onnx.local_ops import SPACE
from shardy_dialects.onnx.tied_dims import Tie, attribute, normal, operand_at, out_shape, passing, shape_of, tied
from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import Shard, local_constant, no_local_form
from shardy_py.plugins import ConstantLike, Dialect, Pure
from shardy_py.sharding import rules
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder
from shardy_py.sharding.unknown_size import is_derived


def _reshape(op: Op) -> OpShardingRule | None:
    return rules.reshape(op)


def _transpose(op: Op) -> OpShardingRule | None:
    rank = len(shape_of(op))
    return rules.transpose(op, attribute(op, "perm", tuple(range(rank))[::-1]))


def _expand(op: Op) -> OpShardingRule | None:
    return rules.broadcast_to(op)


def _same_sizes(op: Op) -> OpShardingRule:
    """Return the rule of a node that leaves dimensions alone which keep their size."""
    return passing(op, [dim for dim, size in enumerate(shape_of(op)) if size == out_shape(op)[dim]])


def _tile(op: Op) -> OpShardingRule:
    repeats = attribute(op, "repeats")
    return passing(op, [dim for dim, count in enumerate(repeats or ()) if count == 1])


def _slice(op: Op) -> OpShardingRule:
    """Return the rule of a slice; the importer has left out the axes that are not cut."""
    axes = {normal(axis, len(shape_of(op))) for axis in attribute(op, "axes") or ()}
    if attribute(op, "starts") is None:
        return passing(op, ())
    return passing(op, [dim for dim in range(len(shape_of(op))) if dim not in axes])


def _pad(op: Op) -> OpShardingRule:
    rank, pads = len(shape_of(op)), attribute(op, "pads")
    return passing(op, [dim for dim in range(rank) if pads is not None and not any(pads[dim::rank])])


def _concat(op: Op) -> OpShardingRule:
    rank = len(out_shape(op))
    axis = normal(attribute(op, "axis", 1), rank)
    operands = range(len(op.operands))
    return tied(op, [Tie(dict.fromkeys(operands, dim), {0: dim}) for dim in range(rank) if dim != axis])


def _split(op: Op) -> OpShardingRule:
    rank = len(shape_of(op))
    axis = normal(attribute(op, "axis", 0), rank)
    return passing(op, [dim for dim in range(rank) if dim != axis])


def _of_batches(op: Op) -> OpShardingRule:
    return passing(op, (0,))


def _gather(op: Op) -> OpShardingRule:
    """Return the rule of rows by their numbers: the axis that is looked up must be whole."""
    data, indices = shape_of(op), shape_of(op, 1)
    axis = normal(attribute(op, "axis", 0), len(data))
    before = [Tie({0: dim}, {0: dim}) for dim in range(axis)]
    looked_up = [Tie({1: dim}, {0: axis + dim}) for dim in range(len(indices))]
    shift = len(indices) - 1
    after = [Tie({0: dim}, {0: dim + shift}) for dim in range(axis + 1, len(data))]
    return tied(op, [*before, *looked_up, *after])


def _gather_elements(op: Op) -> OpShardingRule:
    data, indices = shape_of(op), shape_of(op, 1)
    axis = normal(attribute(op, "axis", 0), len(data))
    ties = [Tie({1: axis}, {0: axis})]
    return tied(op, ties + [Tie({0: d, 1: d}, {0: d}) for d in range(len(data)) if d != axis and data[d] == indices[d]])


def _scatter_elements(op: Op) -> OpShardingRule:
    data, indices = shape_of(op), shape_of(op, 1)
    axis = normal(attribute(op, "axis", 0), len(data))
    dims = [dim for dim in range(len(data)) if dim != axis and data[dim] == indices[dim]]
    return tied(op, [Tie({0: dim, 1: dim, 2: dim}, {0: dim}) for dim in dims])


def _gather_nd(op: Op) -> OpShardingRule:
    """Return the rule of slices by several numbers each, which are in the last dimension of the indices."""
    data, indices, batch = shape_of(op), shape_of(op, 1), attribute(op, "batch_dims", 0)
    ties = [Tie({0: dim, 1: dim}, {0: dim}) for dim in range(batch)]
    ties += [Tie({1: dim}, {0: dim}) for dim in range(batch, len(indices) - 1)]
    first = batch + indices[-1]
    ties += [Tie({0: dim}, {0: len(indices) - 1 + dim - first}) for dim in range(first, len(data))]
    return tied(op, ties)


def _scatter_nd(op: Op) -> OpShardingRule:
    data, indices = shape_of(op), shape_of(op, 1)
    looked_up, shift = indices[-1], len(indices) - 1 - indices[-1]
    return tied(op, [Tie({0: dim, 2: dim + shift}, {0: dim}) for dim in range(looked_up, len(data))])


def _one_hot(op: Op) -> OpShardingRule:
    rank = len(out_shape(op))
    axis = normal(attribute(op, "axis", -1), rank)
    others = [dim for dim in range(rank) if dim != axis]
    return tied(op, [Tie({0: number}, {0: dim}) for number, dim in enumerate(others)])


def replicated_rule(op: Op) -> OpShardingRule:
    """Return the rule of a node that needs all of its operands, such as one whose result depends on their contents."""
    return tied(op, ())


def _sizes_only(op: Op) -> OpShardingRule:
    """Return the rule of a node that reads no element of its operand, which may be sharded in any way."""
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op)):
        builder.add_factor([dim], [None], size)
    return builder.build()


def _local_shape(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the node with the shape that its result has on a device, in which -1 is one size that is not known."""
    shard.check_kinds()
    number = operand_at(op, 0 if op.name == "onnx.ConstantOfShape" else 1)
    if number >= 0:
        return _with_divided_shape(op, shard, number)
    shape = shard.result_shape(0)
    if op.name == "onnx.Reshape" and any(map(is_derived, shape)):
        shape = _reshaped(op, shape, shard.operands[0].shape)
    elif op.name == "onnx.Expand":
        shape = _expanded(shape, shard.operands[0].shape)
    return shard.copy(shape=shape)


def _with_divided_shape(op: Op, shard: Shard, number: int) -> Sequence[Value]:
    """Return the node with the shape that an operand holds divided by the numbers of parts."""
    sharding, rank = shard.result_shardings[0], len(out_shape(op))
    parts = tuple(shard.parts(sharding, dim) for dim in range(rank))
    if max(parts, default=1) == 1:
        return shard.copy()
    if any(not is_derived(size) and size % count for size, count in zip(out_shape(op), parts, strict=True)):
        raise no_local_form("an operand holds sizes of the whole tensor, which does not divide into equal parts")
    shape = shard.operands[number]
    divided = shard.emit.op(f"{SPACE}.divided_shape", [shape], [shape.type], {"parts": parts}).result
    operands = [divided if other == number else value for other, value in enumerate(shard.operands)]
    return [shard.emit.op_like(op, operands, [shard.result_type(0)]).result]


def _local_shape_of(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the sizes, or the number of elements, of the whole tensor of which a device has a part."""
    shape, sharding = shape_of(op), shard.operand_shardings[0]
    dims = range(len(shape))[attribute(op, "start", 0) : attribute(op, "end")]
    if set(shard.sharded_dims(sharding)).isdisjoint(dims):
        return shard.copy()
    is_open = [is_derived(shape[dim]) for dim in dims]
    factors = tuple(shard.parts(sharding, dim) if free else 0 for dim, free in zip(dims, is_open, strict=True))
    known = tuple(0 if free else shape[dim] for dim, free in zip(dims, is_open, strict=True))
    attributes: dict[str, Attribute] = {"start": dims.start, "end": dims.stop, "factors": factors, "known": known}
    type_ = TensorType((len(dims),), "i64")
    sizes = shard.emit.op(f"{SPACE}.whole_shape", [shard.operands[0]], [type_], attributes).result
    if op.name == "onnx.Shape":
        return [sizes]
    return [shard.emit.op("onnx.ReduceProd", [sizes], [shard.result_type(0)], {"keepdims": 0}).result]


def _reshaped(op: Op, shape: Sequence[int], operand: Sequence[int]) -> tuple[int, ...]:
    """Return a shape in which -1 is a size that is not known, and 0 one that the node takes from its operand."""
    target = attribute(op, "shape", ())
    dynamic = [dim for dim, size in enumerate(shape) if is_derived(size)]
    copied = [dim for dim in dynamic if target[dim : dim + 1] == (0,) and operand[dim] == shape[dim]]
    if len(dynamic) - len(copied) > 1:
        return tuple(shape)
    return tuple(0 if dim in copied else -1 if dim in dynamic else size for dim, size in enumerate(shape))


def _expanded(shape: Sequence[int], operand: Sequence[int]) -> tuple[int, ...]:
    """Return a shape in which 1 is a size that is not known, and that an operand has as well."""
    sizes = [*[1] * (len(shape) - len(operand)), *operand]
    return tuple(1 if is_derived(size) and size == old else size for size, old in zip(shape, sizes, strict=True))


def _local_resize(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a resizing to the sizes that its result has on a device, where it has sizes and not scales."""
    shard.check_kinds()
    return shard.copy(sizes=shard.result_shape(0)) if attribute(op, "sizes") else shard.copy()


FORMS = {
    **dict.fromkeys(("Shape", "Size"), _local_shape_of),
    "Constant": local_constant,
    "ConstantOfShape": _local_shape,
    "Expand": _local_shape,
    "Reshape": _local_shape,
    "Resize": _local_resize,
}
_WHOLE = ("NonZero", "Unique", "NonMaxSuppression", "Compress", "EyeLike", "Range", "Det")


def register(onnx: Dialect) -> None:
    """Define the ops."""
    onnx.op("onnx.Constant", traits=[ConstantLike, Pure])
    onnx.op("onnx.ConstantOfShape", traits=[Pure], rule=rules.generate)
    table = {
        **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _reshape),
        **dict.fromkeys(("Resize", "Upsample", "CenterCropPad"), _same_sizes),
        **dict.fromkeys(("DepthToSpace", "SpaceToDepth", "Col2Im"), _of_batches),
        **dict.fromkeys(_WHOLE, replicated_rule),
        **dict.fromkeys(("Shape", "Size"), _sizes_only),
        "Transpose": _transpose,
        "Expand": _expand,
        "Tile": _tile,
        "Slice": _slice,
        "Pad": _pad,
        "Concat": _concat,
        "Split": _split,
        "Gather": _gather,
        "GatherElements": _gather_elements,
        "ScatterElements": _scatter_elements,
        "GatherND": _gather_nd,
        "ScatterND": _scatter_nd,
        "OneHot": _one_hot,
    }
    for name, rule in table.items():
        onnx.op(f"onnx.{name}", traits=[Pure], rule=rule)

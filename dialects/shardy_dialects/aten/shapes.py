"""Rules of ops that change shapes or move elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from shardy_dialects.aten.arguments import (
    REPLICATED,
    Dims,
    Rule,
    RuleFunction,
    attribute,
    input_sized,
    normal,
    normal_dims,
    operand_shape,
    result_shape,
    sized,
)
from shardy_dialects.aten.local_ops import aten
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Localize, Shard, local_by_types, no_local_form
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import rules
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

RESHAPES = (
    *("view.default", "_unsafe_view.default", "reshape.default", "_reshape_alias.default", "flatten.using_ints"),
    *("unflatten.int", "view_copy.default", "unsqueeze.default", "unsqueeze_copy.default", "squeeze.default"),
    *("squeeze.dim", "squeeze.dims", "squeeze_copy.dim", "squeeze_copy.dims", "ravel.default"),
    *("atleast_1d.default", "atleast_2d.default", "atleast_3d.default"),
)


def _squared_away(op: Op) -> Rule:
    """Return the rule of a reshape; what only one side has passes through, as such a factor has size 1 or is whole."""
    return rules.reshape(op)


def _permute(op: Op) -> Rule:
    rank = len(operand_shape(op, 0))
    return rules.transpose(op, normal_dims(attribute(op, "dims"), rank) if rank else ())


def _transpose(op: Op) -> Rule:
    rank = len(operand_shape(op, 0))
    first, second = attribute(op, "dim0", 0), attribute(op, "dim1", 1)
    first = attribute(op, "axis0", first)
    second = attribute(op, "axis1", second)
    return rules.transpose(op, _swapped(rank, first, second))


def _t(op: Op) -> Rule:
    rank = len(operand_shape(op, 0))
    return rules.transpose(op, range(rank)[::-1])


def _last_two_swapped(op: Op) -> Rule:
    return rules.transpose(op, _swapped(len(operand_shape(op, 0)), -2, -1))


def _swapped(rank: int, first: int, second: int) -> list[int]:
    order = list(range(rank))
    if rank:
        first, second = normal(first, rank), normal(second, rank)
        order[first], order[second] = order[second], order[first]
    return order


def _movedim(op: Op) -> Rule:
    rank = len(operand_shape(op, 0))
    sources, targets = normal_dims(attribute(op, "source"), rank), normal_dims(attribute(op, "destination"), rank)
    places = dict(zip(targets, sources, strict=True))
    others = iter(dim for dim in range(rank) if dim not in sources)
    return rules.transpose(op, [places[dim] if dim in places else next(others) for dim in range(rank)])


def _expand(op: Op) -> Rule:
    return rules.broadcast_to(op)


def _moves_along(name: str = "dim", default: Dims = 0) -> RuleFunction:
    """Return the rule of ops that move elements along some dimensions of tensors of one rank."""

    def rule(op: Op) -> Rule:
        rank = len(operand_shape(op, 0))
        return rules.along(op, normal_dims(attribute(op, name, default), rank), kind=FactorKind.PERMUTATION)

    return rule


def _needs_whole(name: str = "dim", default: Dims = 0) -> RuleFunction:
    def rule(op: Op) -> Rule:
        rank = len(operand_shape(op, 0))
        return rules.along(op, normal_dims(attribute(op, name, default), rank))

    return rule


def _resizes(op: Op) -> Rule:
    """Return the rule of ops that keep some dimensions, aligned from the last one, and resize the others."""
    shape, out = operand_shape(op, 0), result_shape(op)
    builder, shift = OpShardingRuleBuilder.for_op(op), len(out) - len(shape)
    for dim, size in enumerate(out):
        own = dim - shift
        if own >= 0 and shape[own] == size:
            builder.tie({0: own}, {0: dim}, size)
        elif own >= 0:
            builder.tie({0: own}, {0: dim}, min(size, shape[own]), kind=REPLICATED)
        else:
            builder.tie({}, {0: dim}, size, kind=REPLICATED)
    return builder.build()


def _moves_in(dim: int) -> RuleFunction:
    """Return the rule of ops that move elements along one dimension, always the same."""

    def rule(op: Op) -> Rule:
        return rules.along(op, dim, kind=FactorKind.PERMUTATION)

    return rule


def _rot90(op: Op) -> Rule:
    """Return the rule of turning tensors in the plane of two dimensions."""
    shape, turned = operand_shape(op, 0), normal_dims(attribute(op, "dims"), len(operand_shape(op, 0)))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        if dim in turned:
            builder.tie({0: dim}, {}, size, kind=REPLICATED)
            builder.tie({}, {0: dim}, result_shape(op)[dim], kind=REPLICATED)
        else:
            builder.tie({0: dim}, {0: dim}, size)
    return builder.build()


def _meshgrid(op: Op) -> Rule:
    """Return the rule of grids, each dimension of which one of the vectors gives."""
    if any(len(operand_shape(op, number)) != 1 for number in range(len(op.operands))):
        return None
    order = list(range(len(op.operands)))
    if attribute(op, "indexing", "ij") == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, number in enumerate(order):
        builder.tie({number: 0}, dict.fromkeys(range(len(op.results)), dim), result_shape(op)[dim])
    return builder.build()


def _slice_like(op: Op) -> Rule:
    """Return the rule of a slice or a piece: where sizes differ, elements move along the dimension."""
    shape = operand_shape(op, 0)
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        outs = dict.fromkeys(range(len(op.results)), dim)
        sizes = {result_shape(op, number)[dim] for number in outs}
        kind = FactorKind.PASS_THROUGH if sizes == {size} else FactorKind.PERMUTATION
        builder.tie({0: dim}, outs, min(size, *sizes), kind=kind)
    return builder.build()


def _select(op: Op) -> Rule:
    """Return the rule of ops that take one element along a dimension, which goes away."""
    shape = operand_shape(op, 0)
    gone = normal(attribute(op, "dim", 0), len(shape))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        outs = {} if dim == gone else dict.fromkeys(range(len(op.results)), dim - (dim > gone))
        builder.tie({0: dim}, outs, size, kind=REPLICATED if dim == gone else FactorKind.PASS_THROUGH)
    return builder.build()


def _put_back(op: Op) -> Rule:
    """Return the rule of ops that put the second or only operand into a larger tensor, along one dimension."""
    out = result_shape(op)
    dim = normal(attribute(op, "dim", 0), len(out))
    builder = OpShardingRuleBuilder.for_op(op)
    for number, size in enumerate(out):
        ins = {}
        for operand in range(len(op.operands)):
            shape = operand_shape(op, operand)
            if len(shape) == len(out):
                ins[operand] = number
            elif number != dim:
                ins[operand] = number - (number > dim)
        builder.tie(ins, {0: number}, size, kind=REPLICATED if number == dim else FactorKind.PASS_THROUGH)
    return builder.build()


def _cat(op: Op) -> Rule:
    rank = len(result_shape(op))
    if any(len(operand_shape(op, number)) != rank for number in range(len(op.operands))):
        # An empty tensor of one dimension may stand among others; it has no part.
        return None
    return rules.concatenate(op, attribute(op, "dim", 0))


def _stack(op: Op) -> Rule:
    return _stacked(op, normal(attribute(op, "dim", 0), len(result_shape(op))))


def _stacked(op: Op, dim: int) -> Rule:
    """Return the rule of joining tensors along a new dimension."""
    out = result_shape(op)
    builder = OpShardingRuleBuilder.for_op(op)
    for number, size in enumerate(out):
        ins = {} if number == dim else dict.fromkeys(range(len(op.operands)), number - (number > dim))
        builder.tie(ins, {0: number}, size, kind=REPLICATED if number == dim else FactorKind.PASS_THROUGH)
    return builder.build()


def _joined(along: int, other: int) -> RuleFunction:
    """Return the rule of ops that join along one dimension, or along another where all tensors have one.

    Tensors of fewer dimensions than the result are stacked along it.
    """

    def rule(op: Op) -> Rule:
        ranks = {len(operand_shape(op, number)) for number in range(len(op.operands))}
        rank = len(result_shape(op))
        if ranks == {rank}:
            return rules.concatenate(op, other if rank == 1 else along)
        return None if ranks != {rank - 1} else _stacked(op, along)

    return rule


def _pad(op: Op) -> Rule:
    """Return the rule of a padding; a dimension that is cut at one end and padded at the other moves, too."""
    shape, out = operand_shape(op, 0), result_shape(op)
    widths = tuple(attribute(op, "pad", attribute(op, "padding", ())))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, (size, new) in enumerate(zip(shape, out, strict=True)):
        place = 2 * (len(shape) - 1 - dim)
        is_kept = not any(widths[place : place + 2])
        kind = FactorKind.PASS_THROUGH if is_kept else FactorKind.PERMUTATION
        builder.tie({0: dim}, {0: dim}, min(size, new), kind=kind)
    return builder.build()


def _diff(op: Op) -> Rule:
    """Return the rule of differences along a dimension, before which tensors may be joined."""
    shape, out = operand_shape(op, 0), result_shape(op)
    along = normal(attribute(op, "dim", -1), len(shape))
    builder, several = OpShardingRuleBuilder.for_op(op), len(op.operands) > 1
    for dim, size in enumerate(shape):
        ins = dict.fromkeys(range(len(op.operands)), dim)
        if dim != along:
            builder.tie(ins, {0: dim}, size)
        elif several:
            for number in ins:
                builder.tie({number: dim}, {}, operand_shape(op, number)[dim], kind=REPLICATED)
            builder.tie({}, {0: dim}, out[dim], kind=REPLICATED)
        else:
            builder.tie({0: dim}, {0: dim}, min(size, out[dim]), kind=FactorKind.PERMUTATION)
    return builder.build()


def _channel_slopes(op: Op) -> Rule:
    """Return the rule of a rectifier whose slopes go along dimension 1, or that has one slope."""
    slopes = operand_shape(op, 1)
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(operand_shape(op, 0)):
        builder.tie({0: dim} | ({1: 0} if dim == 1 and slopes == (size,) else {}), {0: dim}, size)
    return builder.build()


def _last_two(op: Op) -> Rule:
    """Return the rule of ops that look at the place in the last two dimensions."""
    return rules.along(op, (-2, -1))


def _unfold(op: Op) -> Rule:
    shape = operand_shape(op, 0)
    window = normal(attribute(op, "dimension"), len(shape))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        kind = REPLICATED if dim == window else FactorKind.PASS_THROUGH
        builder.tie({0: dim}, {0: dim}, min(size, result_shape(op)[dim]), kind=kind)
    return builder.tie({}, {0: len(shape)}, result_shape(op)[-1], kind=REPLICATED).build()


def _pixels(op: Op) -> Rule:
    """Return the rule of ops that move channels into the pixels of larger images, or back."""
    shape, out = operand_shape(op, 0), result_shape(op)
    small, large = (shape, out) if out[-1] > shape[-1] else (out, shape)
    channel, step = len(shape) - 3, large[-1] // small[-1]
    builder = OpShardingRuleBuilder.for_op(op)
    for dim in range(len(shape)):
        builder.tie({0: dim}, {0: dim}, min(shape[dim], out[dim]))
    for dim in (channel + 1, channel + 2) if step > 1 else ():
        ins, outs = (channel, dim) if small is shape else (dim, channel)
        builder.tie({0: ins}, {0: outs}, step, kind=REPLICATED)
    return builder.build()


def _repeat_interleave(op: Op) -> Rule:
    """Return the rule of repeating each element along a dimension: its copies stay together."""
    if attribute(op, "dim") is None:
        return None
    shape = operand_shape(op, 0)
    longer = normal(attribute(op, "dim"), len(shape))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        builder.tie({0: dim}, {0: dim}, size)
    return builder.tie({}, {0: longer}, attribute(op, "repeats"), kind=REPLICATED).build()


def _to_complex(op: Op) -> Rule:
    """Return the rule of ops that add or take away a last dimension of size 2."""
    shape, out = operand_shape(op, 0), result_shape(op)
    builder = OpShardingRuleBuilder.for_op(op)
    for dim in range(min(len(shape), len(out))):
        builder.tie({0: dim}, {0: dim}, shape[dim])
    if len(shape) > len(out):
        builder.tie({0: len(out)}, {}, 2, kind=REPLICATED)
    elif len(out) > len(shape):
        builder.tie({}, {0: len(shape)}, 2, kind=REPLICATED)
    return builder.build()


def _localize_reshape(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the shard in its new shape: the elements of a shard stay together."""
    shard.check_kinds()
    value, shape = shard.operands[0], shard.result_shape()
    if prod(value.shape) != prod(shape):
        raise no_local_form("the operand and the result are cut into different numbers of elements")
    return [aten(shard.emit, "reshape.default", {"self": value}, shape, shape=shape)]


def _localize_repeat_interleave(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the copies of the device's elements: those of an element stay together."""
    if attribute(op, "dim") is None:
        return local_by_types(op, shard)
    dim = normal(attribute(op, "dim"), len(operand_shape(op, 0)))
    parts = {shard.parts(sharding, dim) for sharding in (*shard.operand_shardings, *shard.result_shardings)}
    if len(parts) > 1 or operand_shape(op, 0)[dim] % max(parts):
        shard.check_kinds()
    if attribute(op, "output_size") is None:
        return shard.copy()
    return shard.copy(output_size=shard.result_shape()[dim])


def _localize_pixels(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the pixels of the device's part: each part has whole groups of channels."""
    return shard.copy()


def register(aten: Dialect) -> None:
    """Define the ops."""
    kinds = {
        _squared_away: RESHAPES,
        _permute: ("permute.default", "permute_copy.default"),
        _transpose: ("transpose.int", "transpose_copy.int", "swapaxes.default", "swapdims.default"),
        _t: ("t.default", "t_copy.default", "numpy_T.default"),
        _last_two_swapped: ("mT.default", "mH.default", "adjoint.default"),
        _movedim: ("movedim.int", "movedim.intlist", "moveaxis.int", "moveaxis.intlist"),
        _expand: ("expand.default", "expand_copy.default", "broadcast_to.default"),
        _moves_along("dims"): ("flip.default", "roll.default"),
        _slice_like: (
            *("slice.Tensor", "slice_copy.Tensor", "narrow.default", "narrow_copy.default", "split.Tensor"),
            *("split_with_sizes.default", "split_with_sizes_copy.default", "chunk.default", "split_copy.Tensor"),
            *("tensor_split.sections", "unsafe_split.Tensor", "unsafe_chunk.default"),
            *("unsafe_split_with_sizes.default", "tensor_split.indices", "hsplit.int", "vsplit.int", "dsplit.int"),
            *("hsplit.array", "vsplit.array", "dsplit.array"),
        ),
        _select: ("select.int", "select_copy.int", "unbind.int", "unbind_copy.int"),
        _put_back: (
            "slice_backward.default",
            "select_backward.default",
            "slice_scatter.default",
            "select_scatter.default",
        ),
        _cat: ("cat.default", "concat.default", "concatenate.default"),
        _stack: ("stack.default",),
        _joined(1, 0): ("hstack.default", "column_stack.default"),
        _joined(0, 0): ("vstack.default", "row_stack.default"),
        _joined(2, 0): ("dstack.default",),
        _moves_in(1): ("fliplr.default",),
        _moves_in(0): ("flipud.default",),
        _rot90: ("rot90.default",),
        _meshgrid: ("meshgrid.default", "meshgrid.indexing"),
        _pad: (
            *("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default"),
            *("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default", "pad.default"),
            "constant_pad_nd.default",
        ),
        _diff: ("diff.default",),
        _channel_slopes: ("prelu.default",),
        _last_two: ("tril.default", "triu.default"),
        _resizes: ("repeat.default", "tile.default"),
        _pixels: ("pixel_shuffle.default", "pixel_unshuffle.default"),
        _repeat_interleave: ("repeat_interleave.self_int",),
        _unfold: ("unfold.default", "unfold_copy.default"),
        _to_complex: (
            *("view_as_complex.default", "view_as_real.default"),
            *("view_as_complex_copy.default", "view_as_real_copy.default"),
        ),
    }
    for rule, names in kinds.items():
        for name in names:
            aten.op(f"aten.{name}", traits=[Pure], rule=rule)


FORMS: Mapping[str, Localize] = {
    **dict.fromkeys(RESHAPES, _localize_reshape),
    **dict.fromkeys(("expand.default", "expand_copy.default", "broadcast_to.default"), sized("size")),
    **dict.fromkeys(("slice_backward.default", "select_backward.default"), input_sized),
    "repeat_interleave.self_int": _localize_repeat_interleave,
    **dict.fromkeys(("pixel_shuffle.default", "pixel_unshuffle.default"), _localize_pixels),
}
"""The local forms by the names of the overloads; those of all other ops change in their types only."""

"""Rules of ops that change shapes or the order of elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from shardy_dialects.aten.arguments import (
    REPLICATED,
    Rule,
    attribute,
    normal,
    normal_dims,
    operand_shape,
    result_shape,
    sized,
    tied,
)
from shardy_dialects.aten.local_ops import aten
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Localize, Shard, local_by_types, no_local_form
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import rules
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

RESHAPES = (
    *("view.default", "_unsafe_view.default", "reshape.default", "_reshape_alias.default", "flatten.using_ints"),
    *("unflatten.int", "view_copy.default", "unsqueeze.default", "unsqueeze_copy.default", "squeeze.default"),
    *("squeeze.dim", "squeeze.dims", "squeeze_copy.dim", "squeeze_copy.dims", "ravel.default"),
    *("atleast_1d.default", "atleast_2d.default", "atleast_3d.default", "squeeze_copy.default"),
    "_reshape_copy.default",
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


def _resizes(op: Op) -> Rule:
    """Return the rule of ops that keep some dimensions, aligned from the last one, and resize the others."""
    shape, out = operand_shape(op, 0), result_shape(op)
    builder, shift = OpShardingRuleBuilder.for_op(op), len(out) - len(shape)
    for dim, size in enumerate(out):
        input_dim = dim - shift
        if input_dim >= 0 and shape[input_dim] == size:
            builder.tie({0: input_dim}, {0: dim}, size)
        elif input_dim >= 0:
            builder.tie({0: input_dim}, {0: dim}, min(size, shape[input_dim]), kind=REPLICATED)
        else:
            builder.tie({}, {0: dim}, size, kind=REPLICATED)
    return builder.build()


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


def _channel_slopes(op: Op) -> Rule:
    """Return the rule of a rectifier whose slopes go along dimension 1, or that has one slope."""
    slopes = operand_shape(op, 1)
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(operand_shape(op, 0)):
        builder.tie({0: dim} | ({1: 0} if dim == 1 and slopes == (size,) else {}), {0: dim}, size)
    return builder.build()


def _reinterpreted(op: Op) -> Rule:
    """Return the rule of looking at bits as another type: the last dimension is whole where its size changes."""
    if operand_shape(op, 0) == result_shape(op):
        return rules.elementwise(op)
    return tied(op, [({0: dim}, {0: dim}) for dim in range(len(operand_shape(op, 0)) - 1)])


def _last_two(op: Op) -> Rule:
    """Return the rule of ops that look at the place in the last two dimensions."""
    return rules.along(op, (-2, -1))


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
        _rot90: ("rot90.default",),
        _meshgrid: ("meshgrid.default", "meshgrid.indexing"),
        _channel_slopes: ("prelu.default",),
        _last_two: ("tril.default", "triu.default"),
        _resizes: ("repeat.default", "tile.default"),
        _reinterpreted: ("view.dtype", "view_copy.dtype"),
        _pixels: ("pixel_shuffle.default", "pixel_unshuffle.default"),
        _repeat_interleave: ("repeat_interleave.self_int",),
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
    "repeat_interleave.self_int": _localize_repeat_interleave,
    **dict.fromkeys(("pixel_shuffle.default", "pixel_unshuffle.default"), _localize_pixels),
}
"""The local forms by the names of the overloads; those of all other ops change in their types only."""

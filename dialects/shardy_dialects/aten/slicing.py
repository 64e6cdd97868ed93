"""Rules of ops that take tensors apart, join them, or move elements along a dimension."""

from __future__ import annotations

from collections.abc import Mapping

from shardy_dialects.aten.arguments import (
    REPLICATED,
    Dims,
    Rule,
    RuleFunction,
    attribute,
    normal,
    normal_dims,
    operand_shape,
    result_shape,
)
from shardy_dialects.aten.owned_parts import localize_gradient, localize_piece, localize_put_back
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import Localize
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import rules
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder


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
    selected_dim = normal(attribute(op, "dim", 0), len(shape))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        outs = {} if dim == selected_dim else dict.fromkeys(range(len(op.results)), dim - (dim > selected_dim))
        builder.tie({0: dim}, outs, size, kind=REPLICATED if dim == selected_dim else FactorKind.PASS_THROUGH)
    return builder.build()


def _gradient(op: Op) -> Rule:
    """Return the rule of the gradient of a slice or an element, zeros around it: each device fills its part."""
    out, shape = result_shape(op), operand_shape(op, 0)
    dim = normal(attribute(op, "dim", 0), len(out))
    builder = OpShardingRuleBuilder.for_op(op)
    for number, size in enumerate(out):
        if number == dim and shape != out:
            builder.tie({}, {0: number}, size)
            if len(shape) == len(out):
                builder.tie({0: number}, {}, shape[number], kind=REPLICATED)
        else:
            place = number if len(shape) == len(out) else number - (number > dim)
            builder.tie({0: place}, {0: number}, size)
    return builder.build()


def _put_back(op: Op) -> Rule:
    """Return the rule of ops that put a tensor into a larger one along one dimension: each device fills its part."""
    out, source = result_shape(op), operand_shape(op, 1)
    dim = normal(attribute(op, "dim", 0), len(out))
    builder = OpShardingRuleBuilder.for_op(op)
    for number, size in enumerate(out):
        if number == dim and source != out:
            builder.tie({0: number}, {0: number}, size)
            if len(source) == len(out):
                builder.tie({1: number}, {}, source[number], kind=REPLICATED)
        else:
            place = number if len(source) == len(out) else number - (number > dim)
            builder.tie({0: number, 1: place}, {0: number}, size)
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


def _unfold(op: Op) -> Rule:
    shape = operand_shape(op, 0)
    window = normal(attribute(op, "dimension"), len(shape))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        kind = REPLICATED if dim == window else FactorKind.PASS_THROUGH
        builder.tie({0: dim}, {0: dim}, min(size, result_shape(op)[dim]), kind=kind)
    return builder.tie({}, {0: len(shape)}, result_shape(op)[-1], kind=REPLICATED).build()


def _moves_along(name: str = "dim", default: Dims = 0) -> RuleFunction:
    """Return the rule of ops that move elements along some dimensions of tensors of one rank."""

    def rule(op: Op) -> Rule:
        rank = len(operand_shape(op, 0))
        return rules.along(op, normal_dims(attribute(op, name, default), rank), kind=FactorKind.PERMUTATION)

    return rule


def _moves_in(dim: int) -> RuleFunction:
    """Return the rule of ops that move elements along one dimension, always the same."""

    def rule(op: Op) -> Rule:
        return rules.along(op, dim, kind=FactorKind.PERMUTATION)

    return rule


def register(aten: Dialect) -> None:
    """Define the ops."""
    kinds = {
        _moves_along("dims"): ("flip.default", "roll.default"),
        _slice_like: (
            *("slice.Tensor", "slice_copy.Tensor", "narrow.default", "narrow_copy.default", "split.Tensor"),
            *("split_with_sizes.default", "split_with_sizes_copy.default", "chunk.default", "split_copy.Tensor"),
            *("tensor_split.sections", "unsafe_split.Tensor", "unsafe_chunk.default"),
            *("unsafe_split_with_sizes.default", "tensor_split.indices", "hsplit.int", "vsplit.int", "dsplit.int"),
            *("hsplit.array", "vsplit.array", "dsplit.array"),
        ),
        _select: ("select.int", "select_copy.int", "unbind.int", "unbind_copy.int"),
        _gradient: ("slice_backward.default", "select_backward.default"),
        _put_back: ("slice_scatter.default", "select_scatter.default"),
        _cat: ("cat.default", "concat.default", "concatenate.default"),
        _stack: ("stack.default", "_stack.default"),
        _joined(1, 0): ("hstack.default", "column_stack.default"),
        _joined(0, 0): ("vstack.default", "row_stack.default"),
        _joined(2, 0): ("dstack.default",),
        _moves_in(1): ("fliplr.default",),
        _moves_in(0): ("flipud.default",),
        _pad: (
            *("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default"),
            *("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default", "pad.default"),
            "constant_pad_nd.default",
        ),
        _diff: ("diff.default",),
        _unfold: ("unfold.default", "unfold_copy.default"),
    }
    for rule, names in kinds.items():
        for name in names:
            aten.op(f"aten.{name}", traits=[Pure], rule=rule)


FORMS: Mapping[str, Localize] = {
    **dict.fromkeys(("slice.Tensor", "slice_copy.Tensor", "select.int", "select_copy.int"), localize_piece),
    **dict.fromkeys(("slice_backward.default", "select_backward.default"), localize_gradient),
    **dict.fromkeys(("slice_scatter.default", "select_scatter.default"), localize_put_back),
}
"""The local forms by the names of the overloads; those of all other ops change in their types only."""

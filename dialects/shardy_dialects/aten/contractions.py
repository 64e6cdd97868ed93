"""Rules of products and convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shardy_dialects.aten.arguments import (
    REPLICATED,
    Rule,
    RuleFunction,
    attribute,
    operand_names,
    operand_number,
    operand_shape,
    result_shape,
    tied,
)
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Localize, Shard
from shardy_py.plugins import Contraction, Dialect, Pure
from shardy_py.sharding import einsum, rules
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

_REDUCED = FactorKind.REDUCTION
_CONVOLUTIONS = (
    *("convolution.default", "_convolution.default", "convolution_overrideable.default"),
    *(f"conv{rank}d.{overload}" for rank in (1, 2, 3) for overload in ("default", "padding")),
    *("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input"),
)


def _linear(op: Op) -> Rule:
    """Return the rule of rows times the rows of a weight; with a bias the contraction would count once per device."""
    features = " o" * (len(operand_shape(op, 1)) - 1)
    bias = operand_number(op, "bias")
    text = f"... i,{features} i{'' if bias is None else f',{features}'} -> ...{features}"
    reduced, replicated = ("i", "") if bias is None else ("", "i")
    return einsum.rule(text, reduction=reduced, need_replication=replicated, order=f"...{features}")(op)


def _matmul(op: Op) -> Rule:
    """Return the rule of a product of matrices or vectors, with broadcast batch dimensions."""
    left, right, out = operand_shape(op, 0), operand_shape(op, 1), result_shape(op)
    builder = OpShardingRuleBuilder.for_op(op)
    batch_rank = max(len(left) - 2, len(right) - 2, 0)
    for dim in range(batch_rank):
        ins = {}
        for number, shape in enumerate((left, right)):
            place = dim - (batch_rank - (len(shape) - 2))
            if place >= 0 and len(shape) > 2 and shape[place] == out[dim]:
                ins[number] = place
        builder.tie(ins, {0: dim}, out[dim])
    place = batch_rank
    if len(left) > 1:
        builder.tie({0: len(left) - 2}, {0: place}, left[-2])
        place += 1
    if len(right) > 1:
        builder.tie({1: len(right) - 1}, {0: place}, right[-1])
    builder.tie({0: len(left) - 1, 1: max(len(right) - 2, 0)}, {}, left[-1], kind=_REDUCED)
    return builder.build()


def _scaled_product(op: Op) -> Rule:
    """Return the rule of a product of matrices that are scaled: by a number, or rows and columns by numbers of theirs.

    Where parts of a row have numbers of their own, or the sum is scaled or gets a bias, it must not be split.
    """
    left, right = operand_shape(op, 0), operand_shape(op, 1)
    rows, columns = {0: 0}, {1: 1}
    is_split = operand_number(op, "bias") is None and operand_number(op, "scale_result") is None
    replicated: list[tuple[int, int]] = []
    by_side = {"scale_a": (rows, left[0], 0), "scale_b": (columns, right[1], 1)}
    for number, name in enumerate(operand_names(op)):
        # A side has one scale, or a list of them.
        scaled_dims, size, dim = by_side.get(name.partition("[")[0], ({}, 0, 0))
        shape = operand_shape(op, number)
        if not size or all(each == 1 for each in shape):
            continue
        if len(shape) == 2 and shape[dim] == size and shape[1 - dim] == 1:
            scaled_dims[number] = dim
        else:
            is_split = False
            replicated += [(number, other) for other in range(len(shape))]
    bias = operand_number(op, "bias")
    builder = OpShardingRuleBuilder.for_op(op).tie(
        rows, {0: 0}, left[0], kind=REPLICATED if replicated else FactorKind.PASS_THROUGH
    )
    columns |= {} if bias is None else {bias: 0}
    builder.tie(columns, {0: 1}, right[1], kind=REPLICATED if replicated else FactorKind.PASS_THROUGH)
    builder.tie({0: 1, 1: 0}, {}, left[1], kind=_REDUCED if is_split else REPLICATED)
    for number, dim in replicated:
        builder.tie({number: dim}, {}, operand_shape(op, number)[dim], kind=REPLICATED)
    return builder.build()


def _packed_product(op: Op) -> Rule:
    """Return the rule of rows times the rows of a matrix of bytes, each of which has a scale."""
    return einsum.rule("m k, n k, n -> m n", reduction="k", order="m n")(op)


_PACKED = (
    *("_weight_int4pack_mm.default", "_weight_int4pack_mm_for_cpu.default", "_dyn_quant_matmul_4bit.default"),
    *("_weight_int4pack_mm_with_scales_and_zeros.default", "_mixed_dtypes_linear.default"),
)
"""Products with matrices in an order of their own, which have no rows and columns to split."""


def _rows_alone(op: Op) -> Rule:
    """Return the rule of rows times a packed matrix: the rows are free."""
    return tied(op, [({0: dim}, {0: dim}) for dim in range(len(operand_shape(op, 0)) - 1)])


def _einsum(op: Op) -> Rule:
    """Return the rule of a sum of products, whose letters are factors; a diagonal has none."""
    return rules.einsum(op, str(attribute(op, "equation")))


def _outer(op: Op) -> Rule:
    return einsum.rule("i, j -> i j")(op)


def _with_added(operands: tuple[int, int]) -> RuleFunction:
    """Return the rule of a product plus a tensor, whose contraction must not be split."""
    first, second = operands

    def rule(op: Op) -> Rule:
        left, right, out, added = (
            operand_shape(op, first),
            operand_shape(op, second),
            result_shape(op),
            operand_shape(op, 0),
        )
        builder, shift = OpShardingRuleBuilder.for_op(op), len(out) - len(added)

        def plus(dim: int) -> dict[int, int]:
            return {0: dim - shift} if dim >= shift and added[dim - shift] == out[dim] else {}

        for dim in range(len(left) - 2):
            builder.tie({first: dim, second: dim, **plus(dim)}, {0: dim}, left[dim])
        row, column = len(out) - 2, len(out) - 1
        builder.tie({first: row, **plus(row)}, {0: row}, left[-2])
        builder.tie({second: column, **plus(column)}, {0: column}, right[-1])
        return builder.tie({first: column, second: row}, {}, left[-1], kind=REPLICATED).build()

    return rule


def _convolution(op: Op) -> Rule:
    """Return the rule of a convolution: batch and channels are free, the window moves along the rest."""
    data, weight, out = operand_shape(op, 0), operand_shape(op, 1), result_shape(op)
    spatial = len(weight) - 2
    unbatched = len(data) == spatial + 1
    groups = attribute(op, "groups", 1)
    transposed = attribute(op, "transposed", ".conv_transpose" in op.name)
    bias = operand_number(op, "bias")
    channel = 0 if unbatched else 1
    builder = OpShardingRuleBuilder.for_op(op)
    if not unbatched:
        builder.tie({0: 0}, {0: 0}, data[0])
    biased = {} if bias is None else {bias: 0}
    output_dim, input_dim = (1, 0) if transposed else (0, 1)
    if groups == 1:
        builder.tie({1: output_dim, **biased}, {0: channel}, out[channel])
        builder.tie({0: channel, 1: input_dim}, {}, data[channel], kind=_REDUCED if bias is None else REPLICATED)
    elif not transposed and groups == data[channel] == out[channel]:
        builder.tie({0: channel, 1: 0, **biased}, {0: channel}, groups)
    else:
        builder.tie(biased, {0: channel}, out[channel], kind=REPLICATED)
        builder.tie({0: channel}, {}, data[channel], kind=REPLICATED)
        builder.tie({1: 0}, {}, weight[0], kind=REPLICATED)
    for dim in range(spatial):
        place = channel + 1 + dim
        same = weight[2 + dim] == 1 and data[place] == out[place]
        kind = FactorKind.PASS_THROUGH if same else FactorKind.PERMUTATION
        builder.tie({0: place}, {0: place}, min(data[place], out[place]), kind=kind)
        builder.tie({1: 2 + dim}, {}, weight[2 + dim], kind=REPLICATED)
    return builder.build()


def _convolution_backward(op: Op) -> Rule:
    """Return the rule of the gradients of a convolution: batch sums up in those of weight and bias."""
    grad, data, weight = (operand_shape(op, number) for number in range(3))
    mask = attribute(op, "output_mask", (True, True, True))
    of = {index: number for number, index in enumerate(index for index, is_computed in enumerate(mask) if is_computed)}
    groups, transposed = attribute(op, "groups", 1), attribute(op, "transposed", False)
    builder = OpShardingRuleBuilder.for_op(op)
    into_data = {of[0]: 0} if 0 in of else {}
    kind = FactorKind.PASS_THROUGH if set(of) == {0} else REPLICATED
    builder.tie({0: 0, 1: 0}, into_data, grad[0], kind=_REDUCED if 0 not in of else kind)
    output_dim, input_dim = (1, 0) if transposed else (0, 1)
    into_bias = {of[2]: 0} if 2 in of else {}
    outs = ({of[1]: output_dim} if 1 in of else {}) | into_bias
    ins = {of[0]: 1} if 0 in of else {}
    if groups == 1:
        kind = FactorKind.PASS_THROUGH if 0 not in of else REPLICATED if outs else _REDUCED
        builder.tie({0: 1, 2: output_dim}, outs, grad[1], kind=kind)
        ins |= {of[1]: input_dim} if 1 in of else {}
        builder.tie(
            {1: 1, 2: input_dim}, ins, data[1], kind=REPLICATED if 2 in of and not ins else FactorKind.PASS_THROUGH
        )
    elif not transposed and groups == data[1] == weight[0]:
        builder.tie({0: 1, 1: 1, 2: 0}, outs | ins, groups)
    else:
        builder.tie({0: 1}, into_bias, grad[1], kind=REPLICATED)
        builder.tie({1: 1}, ins, data[1], kind=REPLICATED)
        for dim in range(2):
            builder.tie({2: dim}, {of[1]: dim} if 1 in of else {}, weight[dim], kind=REPLICATED)
    for dim in range(2, len(weight)):
        builder.tie({0: dim}, {}, grad[dim], kind=REPLICATED)
        builder.tie({1: dim}, {of[0]: dim} if 0 in of else {}, data[dim], kind=REPLICATED)
        builder.tie({2: dim}, {of[1]: dim} if 1 in of else {}, weight[dim], kind=REPLICATED)
    return builder.build()


def _localize_convolution(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the convolution of the shards; where groups are sharded, each device has some of them."""
    shard.check_kinds()
    groups, weight = attribute(op, "groups", 1), operand_number(op, "weight")
    local: dict[str, Any] = {}
    if groups != 1 and weight is not None:
        # What does not divide is padded, and so are groups.
        local["groups"] = -(-groups // shard.parts(shard.operand_shardings[weight], 0))
    bias = shard.result_shape(len(op.results) - 1)
    if attribute(op, "output_mask", (False,))[-1] and tuple(attribute(op, "bias_sizes", bias)) != bias:
        # Tensors without elements have this size, and others that of the gradient.
        local["bias_sizes"] = bias
    return shard.copy(**local)


def register(aten: Dialect) -> None:
    """Define the ops."""
    contracting = [Pure, Contraction]
    for name in (
        "mm.default",
        "mm.dtype",
        "_int_mm.default",
        "bmm.default",
        "bmm.dtype",
        "matmul.default",
        "mv.default",
        "dot.default",
        "vdot.default",
    ):
        aten.op(f"aten.{name}", traits=contracting, rule=_matmul)
    aten.op("aten.linear.default", traits=[Pure], rule=_linear)
    for name in ("_scaled_mm.default", "_scaled_mm_v2.default"):
        aten.op(f"aten.{name}", traits=[Pure], rule=_scaled_product)
    aten.op("aten._weight_int8pack_mm.default", traits=[Pure], rule=_packed_product)
    for name in _PACKED:
        aten.op(f"aten.{name}", traits=[Pure], rule=_rows_alone)
    aten.op("aten.einsum.default", traits=[Pure], rule=_einsum)
    for name in ("outer.default", "ger.default"):
        aten.op(f"aten.{name}", traits=[Pure], rule=_outer)
    for name in ("addmm.default", "addmm.dtype", "baddbmm.default", "baddbmm.dtype", "_addmm_activation.default"):
        aten.op(f"aten.{name}", traits=[Pure], rule=_with_added((1, 2)))
    for name in _CONVOLUTIONS:
        aten.op(f"aten.{name}", traits=[Pure], rule=_convolution)
    aten.op("aten.convolution_backward.default", traits=[Pure], rule=_convolution_backward)


FORMS: Mapping[str, Localize] = dict.fromkeys(("convolution_backward.default", *_CONVOLUTIONS), _localize_convolution)
"""The local forms by the names of the overloads; those of all other ops change in their types only."""

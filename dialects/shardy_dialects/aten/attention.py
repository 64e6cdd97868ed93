"""Rules of fused attention and of its gradients, of each kind of device."""

from __future__ import annotations

from shardy_dialects.aten.arguments import (
    REPLICATED,
    Rule,
    aligned,
    attribute,
    operand_names,
    operand_number,
    operand_shape,
    result_shape,
)
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

_OF_GPUS = tuple(
    f"_scaled_dot_product_{kind}"
    for kind in ("flash_attention", "efficient_attention", "cudnn_attention", "fused_attention_overrideable")
)
ON_GPUS = tuple(f"{name}{suffix}.default" for name in _OF_GPUS for suffix in ("", "_backward"))
"""The overloads that run on GPUs only."""
_OF_ROWS_IN_BLOCKS = "_efficient_"
"""Part of the names of those that pad the statistics of rows to whole blocks."""


def _attention(op: Op) -> Rule:
    """Return the rule of attention: batch and heads are free, and rows of queries unless the mask is causal.

    Where operands broadcast against each other, or elements are dropped at random, there is none.
    """
    query, key, value = (operand_shape(op, number) for number in range(3))
    out, rank = result_shape(op), len(query)
    if not len(query) == len(key) == len(value) or attribute(op, "dropout_p", 0.0):
        return None
    mask = operand_number(op, "attn_mask")
    if mask is None:
        mask = operand_number(op, "attn_bias")
    scores = (*query[:-1], key[-2])
    builder = OpShardingRuleBuilder.for_op(op)

    def in_mask(dim: int) -> dict[int, int]:
        """Return the mask with its dimension that goes with one of the scores, unless it broadcasts there."""
        mask_dim = None if mask is None else aligned(operand_shape(op, mask), scores, dim)
        return {} if mask is None or mask_dim is None else {mask: mask_dim}

    def in_results(dim: int) -> dict[int, int]:
        """Return the results with a dimension of queries: the first one, and statistics of its rows."""
        batch, shapes = query[: rank - 2], {number: result_shape(op, number) for number in range(1, len(op.results))}
        return {0: dim} | {n: dim for n, shape in shapes.items() if shape[: rank - 2] == batch and shape[dim]}

    for dim in range(rank - 2):
        outs = in_results(dim)
        if key[dim] == query[dim]:
            builder.tie({0: dim, 1: dim, 2: dim, **in_mask(dim)}, outs, query[dim])
        else:
            # Heads of queries share those of keys: groups of one head are split together only.
            builder.tie({0: dim, **in_mask(dim)}, outs, query[dim], kind=REPLICATED)
            builder.tie({1: dim, 2: dim}, {}, key[dim], kind=REPLICATED)
    row = rank - 2
    whole_rows = bool(attribute(op, "is_causal", False)) or _OF_ROWS_IN_BLOCKS in op.name
    outs = {0: row} if _OF_ROWS_IN_BLOCKS in op.name else in_results(row)
    kind = REPLICATED if whole_rows else FactorKind.PASS_THROUGH
    builder.tie({0: row, **in_mask(row)}, outs, query[row], kind=kind)
    builder.tie({1: row, 2: row, **in_mask(rank - 1)}, {}, key[row], kind=REPLICATED)
    builder.tie({0: rank - 1, 1: rank - 1}, {}, query[-1], kind=REPLICATED)
    # Most fused operators take heads of one size only.
    kind = FactorKind.PASS_THROUGH if op.name == "aten.scaled_dot_product_attention.default" else REPLICATED
    return builder.tie({2: rank - 1}, {0: len(out) - 1}, value[-1], kind=kind).build()


def _attention_backward(op: Op) -> Rule:
    """Return the rule of the gradients of attention: batch and heads are free, the rest is whole.

    Where elements were dropped at random, there is none.
    """
    names = operand_names(op)
    if attribute(op, "dropout_p", 0.0):
        return None
    rank = len(operand_shape(op, names.index("query")))
    builder = OpShardingRuleBuilder.for_op(op)
    shapes = [operand_shape(op, number) for number in range(len(op.operands))]
    outs = [result_shape(op, number) for number in range(len(op.results))]
    for dim in range(rank):
        sizes = {shape[dim] for shape in (*shapes, *outs) if len(shape) in (rank, rank - 1) and dim < len(shape)}
        free = dim < rank - 2 and len(sizes) == 1
        for size in sorted(sizes):
            ins = {
                n: dim for n, s in enumerate(shapes) if len(s) in (rank, rank - 1) and dim < len(s) and s[dim] == size
            }
            to = {n: dim for n, s in enumerate(outs) if len(s) == rank and s[dim] == size}
            builder.tie(ins, to, size, kind=FactorKind.PASS_THROUGH if free else REPLICATED)
    return builder.build()


def register(aten: Dialect) -> None:
    """Define the ops."""
    for name in ("scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu", *_OF_GPUS):
        aten.op(f"aten.{name}.default", traits=[Pure], rule=_attention)
    for name in ("_scaled_dot_product_flash_attention_for_cpu", *_OF_GPUS):
        aten.op(f"aten.{name}_backward.default", traits=[Pure], rule=_attention_backward)

"""Rules of recurrent layers and cells: the batch is free, all else is whole."""

from __future__ import annotations

from shardy_dialects.aten.arguments import REPLICATED, Rule, attribute, operand_names, operand_shape, result_shape
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

_STATES = ("hx", "hx[0]", "hx[1]")


def _layer(op: Op) -> Rule:
    """Return the rule of a layer over sequences; with dropout, whose numbers are random, there is none."""
    if len(operand_shape(op, 0)) != 3 or (attribute(op, "train", False) and attribute(op, "dropout", 0.0)):
        return None
    batch = 0 if attribute(op, "batch_first", False) else 1
    return _with_free_batch(op, {"input": batch, **dict.fromkeys(_STATES, 1)}, {0: batch, 1: 1, 2: 1})


def _cell(op: Op) -> Rule:
    """Return the rule of one step."""
    if len(operand_shape(op, 0)) != 2:
        return None
    return _with_free_batch(op, dict.fromkeys(("input", *_STATES), 0), {0: 0, 1: 0})


def _with_free_batch(op: Op, operands: dict[str, int], results: dict[int, int]) -> Rule:
    """Return a rule with one factor that passes through.

    Args:
        op: The op.
        operands: The dimension of the batch by the name of the operand.
        results: That of each result.
    """
    ins = {number: operands[name] for number, name in enumerate(operand_names(op)) if name in operands}
    outs = {number: dim for number, dim in results.items() if number < len(op.results)}
    builder = OpShardingRuleBuilder.for_op(op).tie(ins, outs, operand_shape(op, 0)[ins[0]])
    for number in range(len(op.operands)):
        for dim, size in enumerate(operand_shape(op, number)):
            if ins.get(number) != dim:
                builder.tie({number: dim}, {}, size, kind=REPLICATED)
    for number in range(len(op.results)):
        for dim, size in enumerate(result_shape(op, number)):
            if outs.get(number) != dim:
                builder.tie({}, {number: dim}, size, kind=REPLICATED)
    return builder.build()


def register(aten: Dialect) -> None:
    """Define the ops."""
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        aten.op(f"aten.{name}.input", traits=[Pure], rule=_layer)
    for name in ("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"):
        aten.op(f"aten.{name}.default", traits=[Pure], rule=_cell)

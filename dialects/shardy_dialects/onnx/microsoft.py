"""Rules and local forms of the operators that the quantizer and the optimizer of onnxruntime write.

They are in the domain ``com.microsoft``. A sum that is rounded or not linear afterwards must be complete; so must be
operands from all of whose elements a node computes a scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shardy_dialects.onnx.contractions import (
    complete_convolution,
    local_convolution,
    matmul_ties,
    requantized_convolution,
    with_vectors,
)
from shardy_dialects.onnx.elementwise import quantized
from shardy_dialects.onnx.reductions import layer_normalization, of_matrices, reduction
from shardy_dialects.onnx.shapes import replicated_rule
from shardy_dialects.onnx.tied_dims import WHOLE, Tie, attribute, normal, operand_at, out_shape, passing, shape_of, tied
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import rules
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder
from shardy_py.values import frozen

SPACE = "com.microsoft"
Rule = Callable[[Op], OpShardingRule | None]
_ELEMENTWISE = (
    *("BiasAdd", "BiasGelu", "FastGelu", "Gelu", "QuickGelu", "MulInteger"),
    *("QLinearAdd", "QLinearMul", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearWhere"),
)
"""Operators whose operands broadcast to their results as in numpy; scales and zero points are scalars."""
_BATCHES: Mapping[str, tuple[Mapping[int, int], Mapping[int, int]]] = {
    "Attention": ({0: 0, 3: 0, 4: 1, 5: 0}, {0: 0, 1: 1}),
    "QAttention": ({0: 0, 5: 0, 8: 1}, {0: 0, 1: 1}),
    "LongformerAttention": (dict.fromkeys((0, 3, 6), 0), {0: 0}),
    "RotaryEmbedding": (dict.fromkeys((0, 1), 0), {0: 0}),
    "EmbedLayerNormalization": (dict.fromkeys((0, 1, 7, 8), 0), dict.fromkeys(range(3), 0)),
    "QEmbedLayerNormalization": (dict.fromkeys((0, 1, 7), 0), dict.fromkeys(range(2), 0)),
    "GroupNorm": ({0: 0}, {0: 0}),
    "SkipGroupNorm": ({0: 0, 3: 0}, {0: 0, 1: 0}),
    "MoE": ({0: 0, 1: 0}, {0: 0}),
    "QMoE": ({0: 0, 1: 0}, {0: 0}),
    "nchwc.Conv": ({0: 0, 3: 0}, {0: 0}),
    **{
        f"nchwc.{name}": ({0: 0}, {0: 0})
        for name in (
            *("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"),
            *("Upsample", "ReorderInput", "ReorderOutput"),
        )
    },
}
"""Operators that treat each member of a batch by itself: its dimension at the inputs and outputs of the node."""


def _by_batch(inputs: Mapping[int, int], outputs: Mapping[int, int]) -> Rule:
    """Return the rule of a node that treats each member of a batch by itself.

    Where an input has another number of members than the first one, neither one nor all, as a mask that lists the
    starts behind the ends has, batches must be whole.
    """
    return lambda op: tied(op, _batch_ties(op, inputs, outputs))


def _batch_ties(op: Op, inputs: Mapping[int, int], outputs: Mapping[int, int]) -> list[Tie]:
    numbers = {number: dim for position, dim in inputs.items() if (number := operand_at(op, position)) >= 0}
    sizes = {number: shape_of(op, number)[dim] for number, dim in numbers.items() if shape_of(op, number)[dim:]}
    count = sizes[0]
    if not all(size in (1, count) for size in sizes.values()):
        return []
    operands = {number: numbers[number] for number, size in sizes.items() if size == count}
    return [Tie(operands, _results(op, outputs))]


def _results(op: Op, outputs: Mapping[int, int]) -> dict[int, int]:
    """Return the dimensions of results, given by the outputs of the node."""
    positions = op.attributes.get("outputs", tuple(range(len(op.results))))
    return {number: outputs[output] for number, output in enumerate(positions) if output in outputs}


@frozen
class _Heads:
    """Attention whose queries, keys and values are tensors of their own, sharded by batches and by heads.

    Args:
        batches: The inputs that have batches first, as all outputs have.
        heads: The attribute with the number of heads of keys and values.
        pasts: The inputs that have the heads as their second dimension.
        packed: Inputs that hold something for all heads, one behind the other: then heads are whole.
    """

    batches: tuple[int, ...]
    heads: str
    pasts: tuple[int, ...]
    packed: tuple[int, ...]

    def rule(self, op: Op) -> OpShardingRule:
        """Return the rule of a node."""
        ties = _batch_ties(op, dict.fromkeys(self.batches, 0), dict.fromkeys(range(4), 0))
        ends = [operand_at(op, position) for position in range(3)]
        count = attribute(op, self.heads)
        is_split = all(number >= 0 and len(shape_of(op, number)) == 3 for number in ends)
        if not is_split or any(operand_at(op, position) >= 0 for position in self.packed):
            return tied(op, ties)
        operands = dict.fromkeys(ends, 2)
        operands |= {
            number: 1 for position in self.pasts if (number := operand_at(op, position)) >= 0 and shape_of(op, number)
        }
        results = _results(op, {0: 2, 1: 1, 2: 1, 3: 1})
        sizes = [shape_of(op, number)[dim] for number, dim in operands.items()]
        if any(size % count for size in sizes):
            return tied(op, ties)
        return tied(op, [*ties, Tie(operands, results, size=count)])

    def localize(self, op: Op, shard: Shard) -> Sequence[Value]:
        """Return the node with as many heads as a device has.

        Raises:
            CannotLocalize: a device would have a part of a head.
        """
        parts = shard.parts(shard.result_shardings[0], 2)
        if parts == 1:
            return shard.copy()
        if attribute(op, self.heads) % parts:
            raise no_local_form(f"{attribute(op, self.heads)} heads are not {parts} equal parts")
        return shard.copy(**{name: attribute(op, name) // parts for name in {"num_heads", self.heads}})


_HEADS = {
    "MultiHeadAttention": _Heads((0, 1, 2, 4, 5, 6, 7, 9), "num_heads", (6, 7), (3, 5, 8, 9)),
    "GroupQueryAttention": _Heads((0, 1, 2, 3, 4, 5, 9, 10), "kv_num_heads", (3, 4), tuple(range(9, 16))),
}


def _numbers(op: Op, *positions: int) -> list[int]:
    """Return the numbers of the operands at some inputs of the node that are no scalars."""
    numbers = (operand_at(op, position) for position in positions)
    return [number for number in numbers if number >= 0 and shape_of(op, number)]


def _fused_matmul(op: Op) -> OpShardingRule:
    if attribute(op, "transBatchA", 0) or attribute(op, "transBatchB", 0):
        return tied(op, ())
    return tied(op, matmul_ties(op, 0, 1, transposed=_transposed(op)))


def _transposed(op: Op) -> tuple[bool, bool]:
    return bool(attribute(op, "transA", 0)), bool(attribute(op, "transB", 0))


def _scaled_matmul(op: Op) -> OpShardingRule:
    """Return the rule of a product of integers that becomes real; the sum of one with a bias must be complete."""
    *ties, columns, total = matmul_ties(op, 0, 1)
    ties.append(with_vectors(op, columns, 3, 5, 6))
    return tied(op, ties if operand_at(op, 6) >= 0 else [*ties, total])


def _dynamic_matmul(op: Op) -> OpShardingRule:
    """Return the rule of a product whose left operand is quantized by a scale that follows from all elements."""
    return tied(op, [with_vectors(op, matmul_ties(op, 0, 1)[-2], 2, 3, 4)])


def _complete_gemm(right: int, vectors: Sequence[int]) -> Rule:
    """Return the rule of a product of two matrices that is not linear afterwards.

    Args:
        right: The input of the node that holds the right operand.
        vectors: The inputs with a number per column, and the one that is added.
    """

    def rule(op: Op) -> OpShardingRule:
        rows, columns, _ = matmul_ties(op, 0, operand_at(op, right), transposed=_transposed(op))
        matrices = [number for number in _numbers(op, *vectors) if len(shape_of(op, number)) == 2]
        rows, columns = (
            Tie({**tie.operands, **dict.fromkeys(matrices, dim)}, tie.results)
            for dim, tie in enumerate((rows, columns))
        )
        return tied(op, [rows, with_vectors(op, columns, *vectors)])

    return rule


def _block_quantized_matmul(op: Op) -> OpShardingRule:
    """Return the rule of a product with columns that are packed in blocks; scales of the blocks may be one list."""
    builder, rank, columns = OpShardingRuleBuilder.for_op(op), len(shape_of(op)), attribute(op, "N")
    for dim, size in enumerate(shape_of(op)[:-1]):
        builder.tie({0: dim}, {0: dim}, size)
    of_columns = {number: 0 for number in _numbers(op, 1, 2, 3, 5) if shape_of(op, number)[0] % columns == 0}
    builder.tie(of_columns, {0: rank - 1}, columns)
    for number in range(len(op.operands)):
        for dim, size in enumerate(shape_of(op, number)):
            rest = size // columns if dim == 0 and number in of_columns else size
            if (number > 0 or dim == rank - 1) and (rest > 1 or number not in of_columns):
                builder.tie({number: dim}, {}, rest, kind=WHOLE)
    return builder.build()


def _local_block_quantized_matmul(op: Op, shard: Shard) -> Sequence[Value]:
    shard.check_kinds()
    return shard.copy(N=shard.result_shape(0)[-1])


def _block_quantized_gather(op: Op) -> OpShardingRule:
    """Return the rule of rows by their numbers: the packed rows are whole."""
    axis = normal(attribute(op, "gather_axis", 0), len(out_shape(op)) - len(shape_of(op, 1)) + 1)
    return tied(op, [Tie({1: dim}, {0: axis + dim}) for dim in range(len(shape_of(op, 1)))])


def _fused_convolution(op: Op) -> OpShardingRule:
    return complete_convolution(op, 1, [operand_at(op, 2)], [operand_at(op, 3)])


def _last_channel(op: Op) -> int:
    return len(shape_of(op)) - 1


def _fused_convolution_channels_last(op: Op) -> OpShardingRule:
    return complete_convolution(op, 1, [operand_at(op, 2)], [operand_at(op, 3)], channel=_last_channel(op))


def _requantized_convolution(op: Op) -> OpShardingRule:
    return requantized_convolution(op, channel=_last_channel(op) if attribute(op, "channels_last", 0) else 1)


def _local_requantized_convolution(op: Op, shard: Shard) -> Sequence[Value]:
    return local_convolution(3, -1 if attribute(op, "channels_last", 0) else 1)(op, shard)


def _pool(op: Op) -> OpShardingRule:
    is_last = attribute(op, "channels_last", op.name.endswith("NhwcMaxPool"))
    return passing(op, (0, _last_channel(op) if is_last else 1))


def _quantized_concat(op: Op) -> OpShardingRule:
    """Return the rule of joined tensors, each of which has a scale and a zero point behind it."""
    rank = len(out_shape(op))
    axis = normal(attribute(op, "axis"), rank)
    parts = _numbers(op, *range(2, len(op.operands), 3))
    return tied(op, [Tie(dict.fromkeys(parts, dim), {0: dim}) for dim in range(rank) if dim != axis])


def _quantized_softmax(op: Op) -> OpShardingRule:
    return passing(op, range(normal(attribute(op, "axis", -1), len(shape_of(op)))))


def _skip_normalization(op: Op) -> OpShardingRule:
    """Return the rule of a normalization over the last dimension of a sum, whose second part may be repeated."""
    rank, shift = len(shape_of(op)), len(shape_of(op)) - len(shape_of(op, 1))
    added = {dim: {1: dim - shift} for dim in range(shift, rank)}
    return passing(op, range(rank - 1), added)


_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, rules.broadcast),
    **{name: _by_batch(*dims) for name, dims in _BATCHES.items()},
    **{name: heads.rule for name, heads in _HEADS.items()},
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), quantized),
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul"), _fused_matmul),
    "MatMulIntegerToFloat": _scaled_matmul,
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "FusedGemm": _complete_gemm(1, (2,)),
    "QGemm": _complete_gemm(3, (4, 5, 6)),
    "MatMulNBits": _block_quantized_matmul,
    "GatherBlockQuantized": _block_quantized_gather,
    "FusedConv": _fused_convolution,
    **dict.fromkeys(("NhwcConv", "NhwcFusedConv"), _fused_convolution_channels_last),
    "QLinearConv": _requantized_convolution,
    **dict.fromkeys(("QLinearAveragePool", "QLinearGlobalAveragePool", "NhwcMaxPool"), _pool),
    "QLinearReduceMean": reduction(None),
    "QLinearConcat": _quantized_concat,
    "QLinearSoftmax": _quantized_softmax,
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _skip_normalization),
    "DynamicQuantizeLSTM": replicated_rule,
    **dict.fromkeys(("Inverse", "Trilu"), of_matrices),
    "ExpandDims": rules.reshape,
}
FORMS = {
    f"{SPACE}.FusedConv": local_convolution(1),
    **dict.fromkeys((f"{SPACE}.NhwcConv", f"{SPACE}.NhwcFusedConv"), local_convolution(1, -1)),
    f"{SPACE}.QLinearConv": _local_requantized_convolution,
    f"{SPACE}.MatMulNBits": _local_block_quantized_matmul,
    **{f"{SPACE}.{name}": heads.localize for name, heads in _HEADS.items()},
}


def register(onnx: Dialect) -> None:
    """Define the ops."""
    for name, rule in _RULES.items():
        onnx.op(f"onnx.{SPACE}.{name}", traits=[Pure], rule=rule)
    # The optimizer writes it in ONNX's own domain, which has the operator under another name.
    onnx.op("onnx.SimplifiedLayerNormalization", traits=[Pure], rule=layer_normalization)

"""Rules of products that sum over dimensions: matrices, convolutions, attention."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.onnx.convolution_cost import OnnxConvolutionCost
from shardy_dialects.onnx.tied_dims import Tie, attribute, operand_at, out_shape, passing, shape_of, tied
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Localize, Shard
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import rules
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import OpShardingRule


def matmul_ties(op: Op, left: int, right: int, *, transposed: tuple[bool, bool] = (False, False)) -> list[Tie]:
    """Return the ties of a product of matrices as numpy's matmul, the summed dimension last.

    Args:
        op: The op.
        left: The number of the left operand.
        right: The number of the right operand.
        transposed: Which of them have their last two dimensions exchanged.
    """
    a, b, out = shape_of(op, left), shape_of(op, right), out_shape(op)
    ties = []
    last = len(out) - (len(a) > 1) - (len(b) > 1)
    for dim in range(last):
        operands = {}
        for number, shape in ((left, a), (right, b)):
            operand_dim = dim - (last - (len(shape) - 2))
            if len(shape) > 2 and operand_dim >= 0:
                operands[number] = operand_dim
        ties.append(Tie(operands, {0: dim}))
    rows, inner = (1, 2) if transposed[0] and len(a) > 1 else (2, 1)
    columns, inner_right = (2, 1) if transposed[1] and len(b) > 1 else (1, 2)
    if len(a) > 1:
        ties.append(Tie({left: len(a) - rows}, {0: last}))
    if len(b) > 1:
        ties.append(Tie({right: len(b) - columns}, {0: len(out) - 1}))
    return [*ties, Tie({left: len(a) - inner, right: max(len(b) - inner_right, 0)}, {}, Combiner.ADD)]


def _matmul(op: Op) -> OpShardingRule:
    return tied(op, matmul_ties(op, 0, 1))


def _integer_matmul(op: Op) -> OpShardingRule:
    """Return the rule of a product of integers, whose zero points may be vectors."""
    return tied(op, _ties_with_vectors(op, 1, (2,), (3,)))


def _requantized_matmul(op: Op) -> OpShardingRule:
    """Return the rule of a product that is rounded afterwards, whose sum must be complete."""
    return tied(op, _ties_with_vectors(op, operand_at(op, 3), (1, 2), (4, 5))[:-1])


def _ties_with_vectors(op: Op, right: int, of_rows: Sequence[int], of_columns: Sequence[int]) -> list[Tie]:
    """Return the ties of a product of matrices; some inputs of the node may have a number per row or column."""
    ties = matmul_ties(op, 0, right)
    if min(len(shape_of(op)), len(shape_of(op, right))) < 2:
        return ties
    *batches, rows, columns, total = ties
    return [*batches, with_vectors(op, rows, *of_rows), with_vectors(op, columns, *of_columns), total]


def with_vectors(op: Op, tie: Tie, *positions: int) -> Tie:
    """Return a tie of the rows or columns of a product that vectors at some inputs of the node are part of."""
    numbers = (operand_at(op, position) for position in positions)
    vectors = {number: 0 for number in numbers if number >= 0 and len(shape_of(op, number)) == 1}
    return Tie({**tie.operands, **vectors}, tie.results, tie.combiner)


def _gemm(op: Op) -> OpShardingRule:
    """Return the rule of a product of two matrices; the importer has made an addition of the third operand."""
    rows, left = (1, 0) if attribute(op, "transA", 0) else (0, 1)
    right, columns = (1, 0) if attribute(op, "transB", 0) else (0, 1)
    if len(op.operands) == 2:
        ties = [Tie({0: rows}, {0: 0}), Tie({1: columns}, {0: 1})]
        return tied(op, [*ties, Tie({0: left, 1: right}, {}, Combiner.ADD)])
    # A scaled operand to add stays with the product, whose sum must be complete then.
    rank = len(shape_of(op, 2))
    added = [{2: rank - 2} if rank > 1 else {}, {2: rank - 1} if rank else {}]
    return tied(op, [Tie({0: rows, **added[0]}, {0: 0}), Tie({1: columns, **added[1]}, {0: 1})])


def _einsum(op: Op) -> OpShardingRule | None:
    equation = attribute(op, "equation")
    return rules.einsum(op, equation if isinstance(equation, str) else equation.decode())


def _is_pointwise(op: Op, dim: int) -> bool:
    """Return whether a spatial dimension has windows of one element, without strides and padding."""
    kernel = attribute(op, "kernel_shape")
    return (
        kernel is not None
        and kernel[dim] == 1
        and attribute(op, "strides", (1,) * len(kernel))[dim] == 1
        and attribute(op, "auto_pad", "NOTSET") in ("NOTSET", "VALID")
        and not any(attribute(op, "pads", ())[dim :: len(kernel)])
    )


def _convolution_ties(op: Op, weight: int, *, out_dim: int, in_dim: int) -> list[Tie]:
    """Return the ties of a convolution, that of the summed channels last; none of these with several groups."""
    spatial = len(shape_of(op)) - 2
    ties = [Tie({0: 0}, {0: 0})]
    ties += [Tie({0: 2 + dim}, {0: 2 + dim}) for dim in range(spatial) if _is_pointwise(op, dim)]
    group, kernel = attribute(op, "group", 1), shape_of(op, weight)
    if group == 1:
        return [*ties, Tie({weight: out_dim}, {0: 1}), Tie({0: 1, weight: in_dim}, {}, Combiner.ADD)]
    if _is_depthwise(op, weight):
        ties.append(Tie({0: 1, weight: 0}, {0: 1}))
    return [*ties, Tie({weight: in_dim}, {})] if kernel[in_dim] == 1 else ties


def _is_depthwise(op: Op, weight: int, channel: int = 1) -> bool:
    """Return whether each channel is convolved by itself."""
    group = attribute(op, "group", 1)
    return group > 1 and shape_of(op)[channel] == group == out_shape(op)[channel] == shape_of(op, weight)[0]


def _conv(op: Op) -> OpShardingRule:
    return tied(op, _convolution_ties(op, 1, out_dim=0, in_dim=1))


def _conv_transpose(op: Op) -> OpShardingRule:
    ties = _convolution_ties(op, 1, out_dim=1, in_dim=0)
    return tied(op, ties if attribute(op, "group", 1) == 1 else [Tie({0: 0}, {0: 0})])


def complete_convolution(
    op: Op, weight: int, vectors: Sequence[int], like_result: Sequence[int] = (), *, channel: int = 1
) -> OpShardingRule:
    """Return the rule of a convolution that is not linear afterwards, whose sum must be complete.

    Args:
        op: The op.
        weight: The number of the operand that holds the kernels.
        vectors: The numbers of operands with a number per channel of the result, such as a bias; -1 for none.
        like_result: The numbers of operands that are added to the result; -1 for none.
        channel: The dimension of channels: 1, or the last one.
    """
    added = [number for number in like_result if number >= 0]
    first = 1 if channel > 1 else 2
    dims = [0, *(first + dim for dim in range(len(shape_of(op)) - 2) if _is_pointwise(op, dim))]
    ties = [Tie({0: dim, **dict.fromkeys(added, dim)}, {0: dim}) for dim in dims]
    channels = {weight: 0} | {number: 0 for number in vectors if number >= 0 and shape_of(op, number)}
    channels |= dict.fromkeys(added, channel)
    if _is_depthwise(op, weight, channel):
        ties.append(Tie({0: channel, **channels}, {0: channel}))
    elif attribute(op, "group", 1) == 1:
        ties.append(Tie(channels, {0: channel}))
    return tied(op, ties)


def requantized_convolution(op: Op, *, channel: int = 1) -> OpShardingRule:
    """Return the rule of a convolution that is rounded afterwards; scales and bias may have the output's channels."""
    vectors = [operand_at(op, position) for position in (4, 5, 8)]
    return complete_convolution(op, operand_at(op, 3), vectors, channel=channel)


def _deform_conv(op: Op) -> OpShardingRule:
    """Return the rule of a deformable convolution: sequences, and the channels of the result with one group."""
    batches = {number: 0 for position in (2, 4) if (number := operand_at(op, position)) >= 0}
    ties = [Tie({0: 0, **batches}, {0: 0})]
    bias = operand_at(op, 3)
    if attribute(op, "group", 1) == 1:
        ties.append(Tie({1: 0, **({bias: 0} if bias >= 0 else {})}, {0: 1}))
    return tied(op, ties)


def _attention(op: Op) -> OpShardingRule:
    """Return the rule of attention: batches, and heads that queries, keys and values have as many of."""
    ranks = [len(shape_of(op, number)) for number in range(3)]
    ins = {0: 0, 1: 0, 2: 0}
    mask = operand_at(op, 3)
    further = [number for number in range(3, len(op.operands)) if number != mask and len(shape_of(op, number)) == 4]
    outs = {number: 0 for number in range(len(op.results)) if out_shape(op, number)}
    ins |= dict.fromkeys(further, 0)
    with_heads = ranks == [4, 4, 4] and shape_of(op, 0)[1] == shape_of(op, 1)[1]
    masks = {mask: 0} if mask >= 0 and len(shape_of(op, mask)) == 4 else {}
    ties = [Tie(ins | masks, outs)]
    if with_heads:
        heads = dict.fromkeys(ins, 1) | ({mask: 1} if masks else {})
        ties.append(Tie(heads, {number: 1 for number in outs if len(out_shape(op, number)) == 4}))
    return tied(op, ties)


def _recurrent(op: Op) -> OpShardingRule:
    """Return the rule of a recurrent layer, which treats each sequence by itself."""
    if attribute(op, "layout", 0):
        return passing(op, ())
    batches = {operand_at(op, position): dim for position, dim in ((0, 1), (4, 0), (5, 1), (6, 1))}
    batches.pop(-1, None)
    first = op.attributes.get("outputs", tuple(range(len(op.results))))
    return tied(op, [Tie(batches, {number: 2 if output == 0 else 1 for number, output in enumerate(first)})])


def local_convolution(position: int, channel: int = 1) -> Localize:
    """Return the local form of a convolution: the channels of a device are all groups of a depthwise one.

    Args:
        position: The input of the node that holds the kernels.
        channel: The dimension of channels; -1 for the last one.
    """

    def localize(op: Op, shard: Shard) -> Sequence[Value]:
        shard.check_kinds()
        if not _is_depthwise(op, operand_at(op, position), channel):
            return shard.copy()
        return shard.copy(group=shard.result_shape(0)[channel])

    return localize


FORMS = {
    **dict.fromkeys(("Conv", "ConvInteger"), local_convolution(1)),
    "QLinearConv": local_convolution(3),
}
_COSTS = {
    **dict.fromkeys(("Conv", "ConvInteger", "DeformConv"), OnnxConvolutionCost()),
    "ConvTranspose": OnnxConvolutionCost(is_transposed=True),
    "QLinearConv": OnnxConvolutionCost(weight=3),
}


def register(onnx: Dialect) -> None:
    """Define the ops."""
    table = {
        "MatMul": _matmul,
        "MatMulInteger": _integer_matmul,
        **dict.fromkeys(("Conv", "ConvInteger"), _conv),
        **dict.fromkeys(("RNN", "LSTM", "GRU"), _recurrent),
        "QLinearMatMul": _requantized_matmul,
        "Gemm": _gemm,
        "Einsum": _einsum,
        "ConvTranspose": _conv_transpose,
        "QLinearConv": requantized_convolution,
        "DeformConv": _deform_conv,
        "Attention": _attention,
    }
    for name, rule in table.items():
        onnx.op(f"onnx.{name}", traits=[Pure], rule=rule, cost=_COSTS.get(name))

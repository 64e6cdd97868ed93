"""Rules of look-ups: embeddings, gathers, scatters and indexing by tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardy_dialects.aten.arguments import (
    REPLICATED,
    Rule,
    RuleFunction,
    aligned,
    attribute,
    broadcast,
    normal,
    operand_names,
    operand_number,
    operand_shape,
    result_shape,
    tied,
    whole,
)
from shardy_dialects.aten.owned_parts import indexed_dims, localize_look_up, localize_update
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Localize, Shard, local_by_types
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import einsum
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

_LARGEST = 2
"""The number of the mode of bags that takes the largest elements."""


def _embedding(op: Op) -> Rule:
    """Return the rule of a look-up in a table; each device finds its own rows, and the rest adds up."""
    return einsum.rule("v c, ... -> ... c", reduction="v", order="... c")(op)


def _embedding_backward(op: Op) -> Rule:
    """Return the rule of its gradient, which sums over the look-ups."""
    if attribute(op, "scale_grad_by_freq", False):
        return einsum.rule("... c, ... -> v c", need_replication="... v")(op)
    return einsum.rule("... c, ... -> v c", reduction="...", need_replication="v")(op)


def _embedding_bag(op: Op) -> Rule:
    """Return the rule of sums of rows of a table: its columns are free."""
    table, largest = operand_shape(op, 0), attribute(op, "mode", 0) == _LARGEST
    builder = OpShardingRuleBuilder.for_op(op)
    outs = {0: 1, 3: 1} if largest and len(op.results) > 3 else {0: 1}
    builder.tie({0: 1}, outs, table[1])
    builder.tie({0: 0}, {}, table[0], kind=REPLICATED)
    for number in range(1, len(op.operands)):
        builder.tie({number: 0}, {}, operand_shape(op, number)[0], kind=REPLICATED)
    for number in range(len(op.results)):
        builder.tie({}, {number: 0}, result_shape(op, number)[0], kind=REPLICATED)
    return builder.build()


def _embedding_bag_backward(op: Op) -> Rule:
    """Return the rule of the gradient of a table whose rows are summed: its columns are free; sparse ones have none."""
    names = operand_names(op)
    if attribute(op, "sparse", False):
        return None
    largest = {names.index("maximum_indices"): 1} if attribute(op, "mode", 0) == _LARGEST else {}
    return tied(op, [({names.index("grad"): 1, **largest}, {0: 1})])


def _embedding_bag_weights_backward(op: Op) -> Rule:
    """Return the rule of the gradient of the weights of rows, which sums over the columns."""
    names = operand_names(op)
    return tied(op, [({names.index("grad"): 1, names.index("weight"): 1}, {}, FactorKind.REDUCTION)])


def _indexed_rule(op: Op, *, values: int | None) -> Rule:
    """Return the rule of indexing by tensors, or of putting values there.

    Args:
        op: The op.
        values: The number of the operand that is put; None where elements are taken.
    """
    shape, positions = operand_shape(op, 0), indexed_dims(op)
    if any("xi1>" in str(op.operands[number].type) for number in positions.values()):
        return None
    in_order = sorted(positions)
    adjacent = in_order == list(range(in_order[0], in_order[0] + len(in_order)))
    indices = broadcast([operand_shape(op, number) for number in positions.values()])
    start = in_order[0] if adjacent else 0
    builder = OpShardingRuleBuilder.for_op(op)
    wide = (
        result_shape(op)
        if values is None
        else (
            *shape[:start],
            *indices,
            *(size for dim, size in enumerate(shape) if dim >= start and dim not in positions),
        )
    )
    for dim, size in enumerate(indices):
        places = {number: aligned(operand_shape(op, number), indices, dim) for number in positions.values()}
        ins = {number: place for number, place in places.items() if place is not None}
        if values is None:
            builder.tie(ins, {0: start + dim}, size)
        else:
            place = aligned(operand_shape(op, values), wide, start + dim)
            builder.tie(ins if place is None else {**ins, values: place}, {}, size, kind=REPLICATED)
    put_dim: int | None
    position = 0
    for dim, size in enumerate(shape):
        if dim in positions:
            if values is None:
                builder.tie({0: dim}, {}, size, kind=REPLICATED)
            else:
                builder.tie({0: dim}, {0: dim}, size)
            continue
        if position == start:
            position += len(indices)
        if values is None:
            builder.tie({0: dim}, {0: position}, size)
        else:
            put_dim = aligned(operand_shape(op, values), wide, position)
            builder.tie({0: dim} | ({} if put_dim is None else {values: put_dim}), {0: dim}, size)
        position += 1
    return builder.build()


def _index(op: Op) -> Rule:
    return _indexed_rule(op, values=None)


def _index_put(op: Op) -> Rule:
    values = operand_number(op, "values")
    return None if values is None else _indexed_rule(op, values=values)


def _index_select(op: Op) -> Rule:
    shape, index = operand_shape(op, 0), operand_number(op, "index")
    chosen = normal(attribute(op, "dim"), len(shape))
    assert index is not None, "the schema asks for an index"
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        if dim == chosen:
            builder.tie({0: dim}, {}, size, kind=REPLICATED)
            builder.tie({index: 0} if operand_shape(op, index) else {}, {0: dim}, result_shape(op)[dim])
        else:
            builder.tie({0: dim}, {0: dim}, size)
    return builder.build()


def _gather(op: Op) -> Rule:
    """Return the rule of taking elements along a dimension; along the others each takes its own."""
    shape, index = operand_shape(op, 0), operand_number(op, "index")
    index = operand_number(op, "indices") if index is None else index
    # Without a dimension, elements of the flat operand are taken.
    if index is None or len(operand_shape(op, index)) != len(shape) or attribute(op, "dim") is None or not shape:
        return None
    chosen = normal(attribute(op, "dim"), len(shape))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        places = operand_shape(op, index)
        if dim == chosen:
            builder.tie({0: dim}, {}, size, kind=REPLICATED)
            builder.tie({index: dim}, {0: dim}, places[dim])
        else:
            kind = FactorKind.PASS_THROUGH if places[dim] == size else REPLICATED
            builder.tie({0: dim, index: dim}, {0: dim}, min(size, places[dim]), kind=kind)
    return builder.build()


def _scatter(op: Op) -> Rule:
    """Return the rule of putting elements along a dimension: each device takes what falls into its part."""
    shape, index = operand_shape(op, 0), operand_number(op, "index")
    if index is None or len(operand_shape(op, index)) != len(shape) or not shape:
        return None
    source = operand_number(op, "src")
    chosen = normal(attribute(op, "dim", 0), len(shape))
    places = operand_shape(op, index)
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        ins = {index: dim} | ({} if source is None or not operand_shape(op, source) else {source: dim})
        sizes = {size, *(operand_shape(op, number)[dim] for number in ins)}
        if dim == chosen:
            builder.tie({0: dim}, {0: dim}, size)
            builder.tie(ins, {}, places[dim], kind=REPLICATED)
        else:
            kind = FactorKind.PASS_THROUGH if len(sizes) == 1 else REPLICATED
            builder.tie({0: dim, **ins}, {0: dim}, min(sizes), kind=kind)
    return builder.build()


def _index_add(op: Op) -> Rule:
    """Return the rule of adding or copying slices to places of one dimension."""
    shape = operand_shape(op, 0)
    index, source = operand_number(op, "index"), operand_number(op, "source")
    if index is None or source is None or not shape:
        return None
    chosen = normal(attribute(op, "dim"), len(shape))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        if dim == chosen:
            builder.tie({0: dim}, {0: dim}, size)
            ins = {number: place for number, place in ((source, dim), (index, 0)) if operand_shape(op, number)}
            if ins:
                count = operand_shape(op, index)[0] if index in ins else operand_shape(op, source)[dim]
                builder.tie(ins, {}, count, kind=REPLICATED)
        else:
            builder.tie({0: dim, source: dim}, {0: dim}, size)
    return builder.build()


def _index_fill(op: Op) -> Rule:
    """Return the rule of filling slices at places of one dimension."""
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(operand_shape(op, 0)):
        builder.tie({0: dim}, {0: dim}, size)
    index = operand_shape(op, 1)
    return (builder.tie({1: 0}, {}, index[0], kind=REPLICATED) if index else builder).build()


def _searchsorted(op: Op) -> Rule:
    """Return the rule of finding places in sorted rows, which are whole; each row may have its own."""
    rows, input_number = operand_shape(op, 0), operand_number(op, "self")
    if input_number is None or operand_number(op, "sorter") is not None:
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(operand_shape(op, input_number)):
        ins = {0: dim} if dim < len(rows) - 1 else {}
        builder.tie({**ins, input_number: dim}, {0: dim}, size)
    return builder.tie({0: len(rows) - 1}, {}, rows[-1], kind=REPLICATED).build()


_WHOLE = (
    *("masked_scatter_backward.default", "bucketize.Scalar", "searchsorted.Scalar"),
    *("isin.Scalar_Tensor", "_unsafe_masked_index.default", "_unsafe_masked_index_put_accumulate.default"),
    "_chunk_cat.default",
)


def _look_up(op: Op) -> Rule:
    """Return the rule of ops that look each element of one operand up in another one, which is whole."""
    elements = operand_number(op, "index")
    elements = operand_number(op, "elements") if elements is None else elements
    return None if elements is None else tied(op, [({elements: dim}, {0: dim}) for dim in range(len(result_shape(op)))])


def _along_one(name: str) -> RuleFunction:
    """Return the rule of ops along one dimension, which is whole, as are operands that say what happens along it.

    Args:
        name: The argument that holds it.
    """

    def rule(op: Op) -> Rule:
        rank = len(operand_shape(op, 0))
        along = attribute(op, name, None if name == "dim" else 0)
        if along is None:
            return whole(op)
        return tied(op, [({0: dim}, {0: dim}) for dim in range(rank) if dim != normal(along, rank)])

    return rule


def _diagonal_put(op: Op) -> Rule:
    """Return the rule of putting diagonals of two dimensions, which are whole."""
    rank = len(operand_shape(op, 0))
    diagonal_dims = {normal(attribute(op, name, default), rank) for name, default in (("dim1", 0), ("dim2", 1))}
    free_dims = [dim for dim in range(rank) if dim not in diagonal_dims]
    return tied(op, [({0: dim, 1: place}, {0: dim}) for place, dim in enumerate(free_dims)])


def _one_hot(op: Op) -> Rule:
    return einsum.rule("... -> ... c", need_replication="c")(op)


def _bucketize(op: Op) -> Rule:
    """Return the rule of finding places among boundaries, which are whole."""
    boundaries = operand_number(op, "boundaries")
    if boundaries is None:
        return None
    input_number = 1 - boundaries
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(operand_shape(op, input_number)):
        builder.tie({input_number: dim}, {0: dim}, size)
    return builder.tie({boundaries: 0}, {}, operand_shape(op, boundaries)[0], kind=REPLICATED).build()


def _localize_embedding(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the rows of a table; where it is cut into rows, those that the device has, and zeros for the others."""
    table = shard.operand_shardings[0]
    if table is None or shard.parts(table, 0) == 1:
        return local_by_types(op, shard)
    rows = shard.operands[0].shape[0]
    offset = shard.ops.offset(shard.emit, [position * rows for position in shard.positions(table, 0)])
    operands = [*shard.operands, offset]
    return [shard.emit.op("spmd.embedding", operands, [shard.result_type()]).result]


def register(aten: Dialect) -> None:
    """Define the ops."""
    by_rule = {
        _embedding: ("embedding.default",),
        _embedding_backward: ("embedding_dense_backward.default",),
        _embedding_bag: (
            *("embedding_bag.default", "embedding_bag.padding_idx", "_embedding_bag_forward_only.default"),
            "_embedding_bag.default",
        ),
        _embedding_bag_backward: ("_embedding_bag_backward.default", "_embedding_bag_dense_backward.default"),
        _embedding_bag_weights_backward: ("_embedding_bag_per_sample_weights_backward.default",),
        _index: ("index.Tensor", "_unsafe_index.Tensor"),
        _index_put: ("index_put.default", "_unsafe_index_put.default"),
        _index_select: ("index_select.default",),
        _gather: ("gather.default", "take_along_dim.default"),
        _scatter: (
            *("scatter.src", "scatter.value", "scatter_add.default", "scatter_reduce.two"),
            *("scatter.reduce", "scatter.value_reduce"),
        ),
        _index_add: ("index_add.default", "index_copy.default", "index_reduce.default"),
        _look_up: ("take.default", "isin.Tensor_Tensor"),
        _along_one("dim"): ("repeat_interleave.self_Tensor",),
        _along_one("axis"): ("segment_reduce.default",),
        _diagonal_put: ("diagonal_scatter.default",),
        whole: ("put.default", "masked_scatter.default", "repeat_interleave.Tensor", "as_strided.default", *_WHOLE),
        _index_fill: ("index_fill.int_Scalar", "index_fill.int_Tensor"),
        _searchsorted: ("searchsorted.Tensor",),
        _one_hot: ("one_hot.default",),
        _bucketize: ("bucketize.Tensor",),
    }
    for rule, names in by_rule.items():
        for name in names:
            aten.op(f"aten.{name}", traits=[Pure], rule=rule)


UPDATES = (
    *("index_put.default", "_unsafe_index_put.default", "index_add.default", "index_copy.default"),
    *("index_reduce.default", "index_fill.int_Scalar", "index_fill.int_Tensor", "scatter.src", "scatter.value"),
    *("scatter_add.default", "scatter_reduce.two", "scatter.reduce", "scatter.value_reduce"),
)
_LOOK_UPS = ("index.Tensor", "_unsafe_index.Tensor", "index_select.default", "gather.default", "take_along_dim.default")
FORMS: Mapping[str, Localize] = {
    "embedding.default": _localize_embedding,
    **dict.fromkeys(UPDATES, localize_update),
    **dict.fromkeys(_LOOK_UPS, localize_look_up),
}
"""The local forms by the names of the overloads; those of all other ops change in their types only."""

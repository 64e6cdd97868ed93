"""Ops that move elements: what changes a dimension needs it whole. Sizes are operands, which become those of shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.program import Op, Value
from shardy_py.plugins import Dialect, Pure, Shard, no_local_form
from shardy_py.sharding import einsum, rules
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.unknown_size import is_near_derived

_SHAPE = "tosa.const_shape"


def dim_names(op: Op) -> list[str]:
    """Return names for the dimensions of the first operand."""
    return [f"d{dim}" for dim in range(op.operands[0].type.rank)]  # type: ignore[union-attr]


def _same_sizes(op: Op) -> OpShardingRule | None:
    """Return the rule of an op that leaves alone the dimensions that keep their size; other operands say how."""
    source, target, dims = op.operands[0].type.shape, op.results[0].type.shape, dim_names(op)  # type: ignore[union-attr]
    results = [name if source[dim] == target[dim] else f"r{dim}" for dim, name in enumerate(dims)]
    others = ["one" if getattr(value.type, "rank", 0) else "" for value in op.operands[1:]]
    changed = [name for dim, name in enumerate(dims) if source[dim] != target[dim]]
    changed += [name for name in results if name.startswith("r")]
    text = f"{', '.join([' '.join(dims), *others])} -> {' '.join(results)}"
    return einsum.rule(text, need_replication=changed)(op)


def _concat(op: Op) -> OpShardingRule | None:
    axis = op.attributes["axis"]
    sides = [
        " ".join(f"a{number}" if dim == axis else name for dim, name in enumerate(dim_names(op)))
        for number in range(len(op.operands) + 1)
    ]
    axis_names = [f"a{number}" for number in range(len(sides))]
    return einsum.rule(f"{', '.join(sides[:-1])} -> {sides[-1]}", need_replication=axis_names)(op)


def _reverse(op: Op) -> OpShardingRule | None:
    return rules.along(op, op.attributes["axis"])


def _transpose(op: Op) -> OpShardingRule | None:
    return rules.transpose(op, op.attributes["perms"])


def _local_shape(number: int) -> Callable[[Op, Shard], Sequence[Value]]:
    """Return the local form of an op one operand of which is the shape of its result."""

    def localize(op: Op, shard: Shard) -> Sequence[Value]:
        shard.check_kinds()
        if not shard.sharded_dims(shard.result_shardings[0]):
            return shard.copy()
        shape = op.operands[number]
        if getattr(shape.owner, "name", "") != _SHAPE:
            raise no_local_form("the shape of its result is not a constant")
        # One size that is not known follows from the number of elements.
        sizes = tuple(-1 if is_near_derived(size) else size for size in shard.result_shape())
        if sizes.count(-1) > 1 or (-1 in sizes and op.name != "tosa.reshape"):
            raise no_local_form("sizes of its result are not known")
        text = f"dense<{list(sizes)}> : tensor<{len(sizes)}xindex>"
        values = DenseElements((len(sizes),), sizes, text)
        local = shard.emit.op(_SHAPE, (), [shape.type], {"values": values}).result
        operands = [*shard.operands[:number], local, *shard.operands[number + 1 :]]
        return shard.emit.op_like(op, operands, [shard.result_type()]).results

    return localize


def register(tosa: Dialect) -> None:
    """Define the ops."""
    tosa.op("tosa.reshape", traits=[Pure], rule=rules.reshape, local=_local_shape(1))
    tosa.op("tosa.slice", traits=[Pure], rule=_same_sizes, local=_local_shape(2))
    for name in ("pad", "tile"):
        tosa.op(f"tosa.{name}", traits=[Pure], rule=_same_sizes)
    tosa.op("tosa.concat", traits=[Pure], rule=_concat)
    tosa.op("tosa.reverse", traits=[Pure], rule=_reverse)
    tosa.op("tosa.transpose", traits=[Pure], rule=_transpose)
    tosa.op("tosa.gather", traits=[Pure], rule="n k c, n w -> n w c", need_replication="k")
    tosa.op("tosa.scatter", traits=[Pure], rule="n k c, n w, n w c -> n k c", need_replication="k, w")

"""Local forms of slices and of joining: along a sharded dimension they take or give all of it."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.ir.graph import Op, Value
from shardy_py.ir.local import Shard, no_local_form


def localize_slice(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a slice that takes sharded dimensions whole."""
    limits = list(op.attributes["limit_indices"])
    starts, strides = op.attributes["start_indices"], op.attributes["strides"]
    for dim in _cut_dims(shard):
        size = op.operands[0].shape[dim]
        if (starts[dim], limits[dim], strides[dim]) != (0, size, 1):
            raise no_local_form(f"dimension {dim} is sharded and not taken whole")
        limits[dim] = shard.operands[0].shape[dim]
    return shard.copy(limit_indices=tuple(limits))


def localize_dynamic_slice(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a dynamic slice that takes sharded dimensions whole; their starts are 0 whatever they hold."""
    sizes = list(op.attributes["slice_sizes"])
    for dim in _cut_dims(shard):
        if sizes[dim] != op.operands[0].shape[dim]:
            raise no_local_form(f"dimension {dim} is sharded and not taken whole")
        sizes[dim] = shard.operands[0].shape[dim]
    return shard.copy(slice_sizes=tuple(sizes))


def localize_dynamic_update_slice(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a dynamic update that replaces sharded dimensions whole."""
    update = op.operands[1].shape
    for dim in _cut_dims(shard):
        if update[dim] != op.operands[0].shape[dim]:
            raise no_local_form(f"dimension {dim} is sharded and not updated whole")
    return shard.copy()


def localize_concatenate(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the joined shards; the joined dimension is not sharded."""
    dim = int(op.attributes["dimension"])
    if dim in _cut_dims(shard):
        raise no_local_form(f"dimension {dim} is sharded but the concatenation is on this dimension.")
    return shard.copy()


def _cut_dims(shard: Shard) -> list[int]:
    """Return the dimensions that are sharded in an operand or in the result."""
    shardings = (*shard.operand_shardings, *shard.result_shardings)
    return sorted({dim for sharding in shardings for dim in shard.sharded_dims(sharding)})


FORMS = {
    "stablehlo.slice": localize_slice,
    "stablehlo.dynamic_slice": localize_dynamic_slice,
    "stablehlo.dynamic_update_slice": localize_dynamic_update_slice,
    "stablehlo.concatenate": localize_concatenate,
}

"""Local forms of gathers and scatters: along a sharded dimension they take or update all of it, or batch over it."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.attributes import DimensionNumbers, parse_dimension_numbers
from shardy_py.ir.graph import Op, Value
from shardy_py.ir.local import Shard, no_local_form


def localize_gather(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a gather that takes sharded dimensions whole."""
    sizes = list(op.attributes["slice_sizes"])
    for dim in shard.sharded_dims(shard.operand_shardings[0]):
        if sizes[dim] == op.operands[0].shape[dim]:
            sizes[dim] = shard.operands[0].shape[dim]
        elif dim not in _batching_dims(op):
            raise no_local_form(f"dimension {dim} of the operand is sharded and indexed")
    return shard.copy(slice_sizes=tuple(sizes))


def localize_scatter(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a scatter of the updates of the shard."""
    numbers = parse_dimension_numbers(str(op.attributes["scatter_dimension_numbers"]))
    count = (len(op.operands) - 1) // 2
    for number in range(count):
        target, updates = number, count + 1 + number
        _check_targets(op, shard, numbers, target, updates)
        _check_updates(shard, numbers, updates)
    return shard.copy()


def _check_targets(op: Op, shard: Shard, numbers: DimensionNumbers, target: int, updates: int) -> None:
    """Check that no sharded dimension of an operand is indexed."""
    batching, inserted = numbers.dims("input_batching_dims"), numbers.dims("inserted_window_dims")
    shape, update_shape = op.operands[target].shape, op.operands[updates].shape
    window = [dim for dim in range(len(shape)) if dim not in inserted and dim not in batching]
    of_update = dict(zip(window, numbers.dims("update_window_dims"), strict=True))
    for dim in shard.sharded_dims(shard.operand_shardings[target]):
        if dim in batching or (dim in of_update and update_shape[of_update[dim]] == shape[dim]):
            continue
        raise no_local_form(f"dimension {dim} of the operand is sharded and indexed")


def _check_updates(shard: Shard, numbers: DimensionNumbers, updates: int) -> None:
    """Check that all updates of a place are on one device."""
    sharding = shard.operand_shardings[updates]
    window, batching = numbers.dims("update_window_dims"), numbers.dims("scatter_indices_batching_dims")
    vector = numbers.number("index_vector_dim")
    others = [dim for dim in range(0 if sharding is None else sharding.rank) if dim not in window]
    for position, dim in enumerate(others):
        of_indices = position if position < vector else position + 1
        if shard.parts(sharding, dim) > 1 and of_indices not in batching:
            raise no_local_form(f"dimension {dim} of the updates is sharded, and the operand would count several times")


def _batching_dims(op: Op) -> Sequence[int]:
    return parse_dimension_numbers(str(op.attributes["dimension_numbers"])).dims("operand_batching_dims")


FORMS = {"stablehlo.gather": localize_gather, "stablehlo.scatter": localize_scatter}

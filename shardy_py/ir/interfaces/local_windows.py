"""Windows of sharded dimensions for local forms: ranges of elements that each device needs, its shard included."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_py.ir.graph.program import Value
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.support.arguments import as_integer


def with_window(
    shard: Shard,
    number: int,
    dim: int,
    starts: Sequence[int],
    size: int,
    *,
    result_dim: int | None = None,
    fill: Value | None = None,
) -> Shard:
    """Return a shard in which each device has a window of an operand, after a halo exchange.

    Args:
        shard: The op on one device.
        number: The number of the operand.
        dim: The dimension of the operand.
        starts: For each part of the dimension of the first result, the index in the global operand where its window
            begins; it may be negative.
        size: The size of all windows.
        result_dim: The dimension of the first result, by default that of the same number.
        fill: The scalar that stands where a window lies outside of the whole operand; undefined by default.

    Raises:
        ValueError: there is no such operand or dimension, or the windows are not one per part, of whole numbers.
        CannotLocalize: the operand and the result are not sharded alike, or the ops for communication send no windows.

    Returns:
        The shard with another operand; its shardings are the same.
    """
    from shardy_py.sharding.shard_moves import Run, Windows, own_runs

    target = dim if result_dim is None else result_dim
    _check(shard, number, dim, target, [*starts, size])
    before, after = shard.operand_shardings[number], shard.result_shardings[0]
    parts = shard.parts(after, target)
    if len(starts) != parts:
        raise ValueError(f"{len(starts)} windows for {parts} parts of dimension {target} of the result")
    value, length = shard.operands[number], shard.op.operands[number].shape[dim]
    held = [[Run(0, length)]] * parts
    if shard.parts(before, dim) > 1:
        if before is None or after is None or shard.positions(before, dim) != shard.positions(after, target):
            ends = f"dimension {dim} of operand {number} and dimension {target} of the result"
            raise no_local_form(f"{ends} are sharded in different ways")
        held = own_runs(length, parts, value.shape[dim])
    sharding = _of_one_dim(shard, dim, len(value.shape), after, target)
    window = shard.ops.windows(shard, value, dim, sharding, Windows(held, starts, size), fill)
    if window is None:
        raise no_local_form("the ops for communication send no windows of a dimension")
    operands = [window if index == number else other for index, other in enumerate(shard.operands)]
    return evolve(shard, operands=operands)


def _check(shard: Shard, number: int, dim: int, target: int, sizes: Sequence[int]) -> None:
    """Raise a `ValueError` for a window that cannot be."""
    operands = shard.op.operands
    if number not in range(len(operands)):
        raise ValueError(f"there is no operand {number}, the op has {len(operands)}")
    sides = ((dim, operands[number], f"operand {number}"), (target, shard.op.results[0], "the result"))
    for checked_dim, value, what in sides:
        rank = len(value.shape)
        if checked_dim not in range(rank):
            raise ValueError(f"{what} has no dimension {checked_dim}, its rank is {rank}")
    if any(as_integer(item) is None for item in sizes) or sizes[-1] < 0:
        raise ValueError(f"the windows begin at {list(sizes[:-1])} and have the size {sizes[-1]}")


def _of_one_dim(shard: Shard, dim: int, rank: int, sharding: TensorSharding | None, given_dim: int) -> TensorSharding:
    """Return a sharding of a single dimension, copied from a dimension of another sharding.

    Raises:
        CannotLocalize: no tensor of the op has a mesh.
    """
    known = (sharding, *shard.operand_shardings, *shard.result_shardings)
    mesh = next((item.mesh for item in known if item is not None), None)
    if mesh is None:
        raise no_local_form("no tensor of the op is sharded")
    axes = () if sharding is None else sharding.of_dimension(given_dim).axes
    dims = (DimensionSharding(tuple(axes) if number == dim else ()) for number in range(rank))
    return TensorSharding(mesh, tuple(dims))

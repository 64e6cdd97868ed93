"""The sharded dimensions of an op whose first operand and results have the same dimensions."""

from __future__ import annotations

from shardy_dialects.stablehlo.local.windows import Cut
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.sharding.tensor import TensorSharding


def cut_dims(shard: Shard) -> list[int]:
    """Return the dimensions that are sharded in an operand or in a result."""
    shardings = (*shard.operand_shardings, *shard.result_shardings)
    return sorted({dim for sharding in shardings for dim in shard.sharded_dims(sharding)})


def cut_of(shard: Shard, dim: int) -> Cut:
    """Return a sharded dimension along which operands of the rank of the result are sharded as it is, or whole.

    Raises:
        CannotLocalize: an operand is sharded along other axes.
    """
    result = shard.result_shardings[0]
    operands = [
        sharding
        for value, sharding in zip(shard.op.operands, shard.operand_shardings, strict=True)
        if len(value.shape) == len(shard.op.results[0].shape)
    ]
    return common_cut(shard, [(sharding, dim) for sharding in operands], (result, dim))


def common_cut(
    shard: Shard,
    operands: list[tuple[TensorSharding | None, int]],
    result: tuple[TensorSharding | None, int],
) -> Cut:
    """Return a sharded dimension of a result, along which operands are sharded as the result is, or whole.

    Args:
        shard: The op on one device.
        operands: The shardings of operands, each with the number of the dimension.
        result: The sharding of the result, with the number of the dimension.

    Raises:
        CannotLocalize: an operand is sharded along other axes, or the result is not sharded.
    """
    sharding, dim = result
    if sharding is None or shard.parts(sharding, dim) == 1:
        raise no_local_form(f"dimension {dim} of the result is whole, and that of an operand is sharded")
    wanted = shard.positions(sharding, dim)
    for other, number in operands:
        if other is not None and shard.parts(other, number) > 1 and shard.positions(other, number) != wanted:
            raise no_local_form(f"dimension {dim} of an operand and of the result are sharded along different axes")
    return Cut(shard, sharding, dim)

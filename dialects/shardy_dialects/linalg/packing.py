"""Packing of tensors into tiles, and back: the tiles of a dimension are sharded as it is, none is cut."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from shardy_py.ir.graph.program import Op, Value
from shardy_py.plugins import Dialect, Pure, Shard, no_local_form
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape


def packing_rule(op: Op, *, is_pack: bool) -> OpShardingRule | None:
    """Tie each dimension to the number of its tiles; a tile, and a dimension with padding, is needed whole.

    Args:
        op: The op; its second operand is what the result is written into.
        is_pack: Whether the result has the tiles, or the first operand.
    """
    source, result = tensor_shape(op.operands[0]), tensor_shape(op.results[0])
    plain, packed = (source, result) if is_pack else (result, source)
    positions, tiles = op.attributes["inner_dims_pos"], op.attributes["static_inner_tiles"]
    if None in (*plain, *packed) or any(tile < 0 for tile in tiles):
        return None
    order = _order(op, len(plain))
    builder = OpShardingRuleBuilder.for_op(op)

    def add(plain_dim: int | None, packed_dim: int | None, size: int, kind: FactorKind) -> None:
        first, last = (plain_dim, packed_dim) if is_pack else (packed_dim, plain_dim)
        operands = {number: dim for number, dim in ((0, first), (1, last)) if dim is not None}
        builder.add_factor(operands, {} if last is None else {0: last}, size, kind=kind)

    for dim, size in enumerate(plain):
        outer = order.index(dim)
        if not _is_tiled(op, dim):
            add(dim, outer, size, FactorKind.PASS_THROUGH)
            continue
        inner = len(plain) + positions.index(dim)
        if packed[outer] * packed[inner] == size:
            add(dim, outer, packed[outer], FactorKind.PASS_THROUGH)
            add(dim, inner, packed[inner], FactorKind.NEED_REPLICATION)
            continue
        add(dim, None, size, FactorKind.NEED_REPLICATION)
        add(None, outer, packed[outer], FactorKind.NEED_REPLICATION)
        add(None, inner, packed[inner], FactorKind.NEED_REPLICATION)
    return builder.build()


def register(dialect: Dialect) -> None:
    """Define the ops; the dialect tensor had them before linalg."""
    for kind in ("pack", "unpack"):
        rule = partial(packing_rule, is_pack=kind == "pack")
        dialect.op(f"{dialect.name}.{kind}", traits=[Pure], rule=rule, local=partial(_localize, is_pack=kind == "pack"))


def _localize(op: Op, shard: Shard, *, is_pack: bool) -> Sequence[Value]:
    """Return the op on shards.

    Raises:
        CannotLocalize: the parts of a dimension are no whole tiles, or not those of the tiles.
    """
    source, result = (op.operands[0].shape, shard.operands[0].shape), (op.results[0].shape, shard.result_shape())
    (plain, plain_part), (packed, packed_part) = (source, result) if is_pack else (result, source)
    rank = len(plain)
    for outer, dim in enumerate(_order(op, rank)):
        inner = rank + op.attributes["inner_dims_pos"].index(dim) if _is_tiled(op, dim) else None
        tile = 1 if inner is None else packed[inner]
        is_cut = inner is not None and packed_part[inner] != tile
        is_whole = plain_part[dim] == plain[dim] and packed_part[outer] == packed[outer]
        if is_cut or not (is_whole or plain_part[dim] == packed_part[outer] * tile):
            raise no_local_form("the parts of a dimension are no whole tiles")
    return shard.copy()


def _order(op: Op, rank: int) -> tuple[int, ...]:
    return tuple(op.attributes.get("outer_dims_perm") or range(rank))


def _is_tiled(op: Op, dim: int) -> bool:
    return dim in op.attributes["inner_dims_pos"]

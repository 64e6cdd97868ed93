"""The collectives of the local form of one op, such as the permutations by which a convolution gets its halos."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from shardy_py.errors import UnsupportedError
from shardy_py.ir.graph.program import Block, Op, Region
from shardy_py.ir.interfaces.local import LocalEmitter, LocalOps, LocalSemantics, Shard, local_type
from shardy_py.ir.interfaces.local_ops import LocalCollective
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.local.collectives import CollectiveOptions
from shardy_py.local.fallback import Fallback
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding

Shardings = Sequence[TensorSharding | None]


def collectives_of_form(
    op: Op, operands: Shardings, results: Shardings, semantics: OpSemantics, ops: LocalOps
) -> tuple[LocalCollective, ...]:
    """Return the collectives by which the local form of an op gets elements of other devices; () without such a form.

    The form runs beside the program, which does not change. Where it has no form under these shardings, they are the
    collectives that gather its operands. A form gets empty regions.

    Args:
        op: An op of a global program.
        operands: The shardings of its operands.
        results: The shardings of its results.
        semantics: What is known about ops.
        ops: The ops for communication.
    """
    program, meshes = op.program, op.program.meshes
    form = semantics.get_local(op) if isinstance(semantics, LocalSemantics) else None
    rule = None if form is None else semantics.get_sharding_rule(op)
    if rule is None:
        return ()
    try:
        types = [local_type(value.type, item, meshes) for value, item in zip(op.operands, operands, strict=True)]
    except UnsupportedError:
        return ()
    block, regions = Block(program, types), [Region([]) for _ in op.regions]
    emit = LocalEmitter(program, block, count(1).__next__)
    shard = Shard(op, block.arguments, operands, results, meshes, semantics, emit, ops, lambda: regions)
    if not _moves_elements(rule, shard):
        return ()
    try:
        Fallback(CollectiveOptions(), trust_shardings=False, gathers=True).localize(op, shard, form)
        read = [ops.read_collective(item) for item in block.ops]
    except UnsupportedError:
        return ()
    finally:
        for value in (value for item in block.ops for value in item.results):
            program.shardings.pop(value.id, None)
        emit.erase_after(None)
    return tuple(item for item in read if item is not None and item.groups)


def _moves_elements(rule: OpShardingRule, shard: Shard) -> bool:
    """Return whether a tensor of an op is sharded along a factor whose elements move between devices."""
    shardings = (*shard.operand_shardings, *shard.result_shardings)
    return any(
        factor in rule.permutation_factors
        for mapping, sharding in zip(rule.mappings, shardings, strict=True)
        for dim in shard.sharded_dims(sharding)
        for factor in mapping[dim]
    )

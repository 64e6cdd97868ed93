"""Windows of structured ops: the elements of neighbours that loops over a shard of the result read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardy_dialects.linalg.loops import Loops
from shardy_py.indexing.canonical import linear
from shardy_py.indexing.expressions import Expression, Variable
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape
from shardy_py.plugins import Shard, no_local_form, with_window
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.values import frozen


@frozen
class _Window:
    """The index of a dimension along which a loop over the result moves windows.

    Args:
        loop: The loop.
        step: The distance of two windows.
        reach: The largest place in a window that is read.
    """

    loop: Variable
    step: int
    reach: int


def with_windows(op: Op, shard: Shard, rule: OpShardingRule, loops: Loops) -> Shard:
    """Return a shard whose operands have all that the loops read for the result on the device.

    Args:
        op: The op of the global program.
        shard: The op on one device.
        rule: Its rule.
        loops: Its loops.

    Raises:
        CannotLocalize: it is not known which elements these are, or the ops for communication do not send them.
    """
    moved = list(_sharded_dims(shard, rule))
    if not moved:
        return shard
    if len(op.results) > 1:
        raise no_local_form("windows are sharded, and the op has several results")
    result_dims = {item: dim for dim, item in enumerate(loops.maps[-1].results) if isinstance(item, Variable)}
    sizes = _loop_sizes(op, loops)
    for number, dim in moved:
        window = _window(loops.maps[number].results[dim], result_dims, sizes)
        _check_other_loops(shard, loops, loops.maps[number].results[dim], window.loop)
        result_dim = result_dims[window.loop]
        part = shard.result_shape()[result_dim]
        starts = [place * part * window.step for place in range(shard.parts(shard.result_shardings[0], result_dim))]
        size = (part - 1) * max(window.step, 0) + window.reach + 1
        shard = with_window(shard, number, dim, starts, size, result_dim=result_dim)
    return shard


def _sharded_dims(shard: Shard, rule: OpShardingRule) -> Iterator[tuple[int, int]]:
    """Yield the operands and dimensions of factors that need a permutation and are sharded in some tensor."""
    shardings = (*shard.operand_shardings, *shard.result_shardings)
    sharded = {
        factor
        for mapping, sharding in zip(rule.mappings, shardings, strict=True)
        for dim in (shard.sharded_dims(sharding) if mapping else ())
        for factor in mapping[dim]
    }.intersection(rule.permutation_factors)
    for number, mapping in enumerate(rule.operand_mappings):
        for dim, factors in enumerate(mapping):
            if sharded.intersection(factors):
                yield number, dim


def _window(index: Expression, result_dims: Mapping[Variable, int], sizes: Mapping[Expression, int]) -> _Window:
    """Return the window that an index reads.

    Raises:
        CannotLocalize: the index is not a sum of loops, one of which is a dimension of the result.
    """
    found = linear(index)
    moving = [loop for loop in found.terms if isinstance(loop, Variable) and loop in result_dims]
    if len(moving) != 1 or any(loop not in sizes for loop in found.terms):
        raise no_local_form("a sharded dimension is not read by one window along a dimension of the result")
    (loop,) = moving
    others = (factor * (sizes[other] - 1) for other, factor in found.terms.items() if other != loop and factor > 0)
    return _Window(loop, found.terms[loop], found.offset + sum(others))


def _check_other_loops(shard: Shard, loops: Loops, index: Expression, moving: Variable) -> None:
    """Check that all loops of an index but one are whole.

    Raises:
        CannotLocalize: a tensor is sharded along one of them.
    """
    others = set(linear(index).terms) - {moving}
    shardings = (*shard.operand_shardings, *shard.result_shardings)
    for map_, sharding in zip(loops.maps_of_all(len(shard.op.results)), shardings, strict=True):
        if any(map_.results[dim] in others for dim in shard.sharded_dims(sharding)):
            raise no_local_form("the size of a window is sharded")


def _loop_sizes(op: Op, loops: Loops) -> dict[Expression, int]:
    """Return the number of iterations of each loop that goes through a dimension alone."""
    return {
        item: size
        for map_, value in zip(loops.maps, op.operands, strict=True)
        for item, size in zip(map_.results, static_shape(value.type) or (), strict=False)
        if isinstance(item, Variable)
    }

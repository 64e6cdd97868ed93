"""Local forms of structured ops: loops run over the shards, as their bounds follow from the shapes.

Windows that move along a sharded dimension read elements of neighbours. Padding along reduced loops must change
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from shardy_dialects.linalg.bodies import Body, initial_outputs
from shardy_dialects.linalg.structured import Loops, LoopsOf
from shardy_py.indexing.canonical import linear
from shardy_py.indexing.expressions import Expression, Variable
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.plugins import Shard, no_local_form, with_window
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.values import frozen


def localize_structured(loops_of: LoopsOf, op: Op, shard: Shard) -> Sequence[Value]:
    """Return the results of a structured op on shards of its tensors.

    Padding along reduced loops holds the neutral value of the combiner already; here is checked that this is enough.
    Where windows move along a sharded dimension, devices send each other what these read.

    Args:
        loops_of: Gives the loops of the op.
        op: The op of the global program.
        shard: The op with its operands on the device.

    Raises:
        CannotLocalize: it needs a dimension whole, would count an initial value once per shard, or would see padding.
    """
    shard.check_kinds([FactorKind.NEED_REPLICATION])
    rule = shard.semantics.get_sharding_rule(op)
    if rule is None:
        return shard.copy()
    if rule.reduction_factors:
        _check_reduction(op, shard, rule, loops_of(op))
    return with_windows(op, shard, rule, loops_of(op)).copy()


def _check_reduction(op: Op, shard: Shard, rule: OpShardingRule, loops: Loops) -> None:
    """Check that initial values count once, and that padding changes no result.

    Raises:
        CannotLocalize: it is not so.
    """
    reduced = _reduced_dims(shard, rule)
    if any(reduced) and initial_outputs(op, loops.combiner):
        raise no_local_form("its initial value would count once per shard")
    padded = {number: set(shard.padded_dims(number)).intersection(dims) for number, dims in enumerate(reduced) if dims}
    if not any(padded.values()):
        return
    masked = frozenset(number for number, dims in padded.items() if dims)
    if not keeps_neutral(op, Body.of(op), loops, masked):
        raise no_local_form("its body makes of the padding along a reduced loop more than a neutral value")


def _reduced_dims(shard: Shard, rule: OpShardingRule) -> list[list[int]]:
    """Return the sharded dimensions of each operand that belong to reductions."""
    result = []
    for mapping, sharding in zip(rule.operand_mappings, shard.operand_shardings, strict=True):
        dims = shard.sharded_dims(sharding) if mapping else []
        result.append([dim for dim in dims if set(mapping[dim]).intersection(rule.reduction_factors)])
    return result


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
    position = linear(index)
    moving = [loop for loop in position.terms if isinstance(loop, Variable) and loop in result_dims]
    if len(moving) != 1 or any(loop not in sizes for loop in position.terms):
        raise no_local_form("a sharded dimension is not read by one window along a dimension of the result")
    (loop,) = moving
    others = (factor * (sizes[other] - 1) for other, factor in position.terms.items() if other != loop and factor > 0)
    return _Window(loop, position.terms[loop], position.offset + sum(others))


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


_KEEP_ALL = frozenset(("arith.extf", "arith.truncf"))
_KEEP_ZERO = _KEEP_ALL | frozenset(
    (
        *("arith.extsi", "arith.extui", "arith.trunci", "arith.negf", "arith.sitofp", "arith.uitofp"),
        *("arith.addf", "arith.addi", "arith.subf", "arith.subi", "arith.mulf", "arith.muli"),
        *("math.absf", "math.absi", "math.asin", "math.asinh", "math.atan", "math.atanh", "math.cbrt", "math.ceil"),
        *("math.erf", "math.expm1", "math.floor", "math.log1p", "math.round", "math.roundeven", "math.sin"),
        *("math.sinh", "math.sqrt", "math.tan", "math.tanh", "math.trunc"),
    )
)
"""Ops that give zero where all their operands are zero."""
_WITHOUT_ZERO_POINTS = ("quantized_", "_q")


def keeps_neutral(op: Op, body: Body | None, loops: Loops, masked: Collection[int]) -> bool:
    """Return whether iterations over padding change nothing, when the padding holds neutral values.

    A sum of squares sees zeros there and adds zeros. A sum of exponentials would add ones.

    Args:
        op: The structured op.
        body: Its body; without one it is the product of its inputs, or the only input.
        loops: Its loops.
        masked: The numbers of the inputs whose padding holds the neutral value.
    """
    inputs = len(op.operands) - len(op.results)
    if body is None:
        has_zero_points = any(text in op.name for text in _WITHOUT_ZERO_POINTS)
        return not has_zero_points and all(number in masked for number in range(inputs) if loops.maps[number].results)
    arguments = {body.block.arguments[number].id for number in masked if number < inputs}
    keeps = _keeps_zero if loops.combiner is Combiner.ADD else _keeps_all
    return all(keeps(value, body, arguments) for value in body.contributions)


def _keeps_zero(value: Value, body: Body, masked: Collection[int]) -> bool:
    """Return whether a value of a body is zero where the masked inputs are."""
    producer = value.defining_op
    if producer is None or producer.parent is not body.block:
        return value.id in masked
    return producer.name in _KEEP_ZERO and all(_keeps_zero(operand, body, masked) for operand in producer.operands)


def _keeps_all(value: Value, body: Body, masked: Collection[int]) -> bool:
    """Return whether a value of a body is a masked input, up to its precision."""
    producer = value.defining_op
    if producer is None or producer.parent is not body.block:
        return value.id in masked
    return producer.name in _KEEP_ALL and _keeps_all(producer.operands[0], body, masked)

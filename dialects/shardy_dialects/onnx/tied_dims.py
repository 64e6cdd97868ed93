"""Sharding rules from lists of dimensions that go together; all other dimensions must be whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shardy_py.ir.graph.program import Op
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder
from shardy_py.values import frozen

WHOLE = FactorKind.NEED_REPLICATION


@frozen
class Tie:
    """Dimensions that are sharded alike.

    Args:
        operands: The dimension of each operand that has it, by its number.
        results: That of each result.
        combiner: How results combine that are summed over it; None where results have it.
        size: The size of the major part of these dimensions that is sharded alike, such as heads; 0 for all of them.
    """

    operands: Mapping[int, int]
    results: Mapping[int, int]
    combiner: Combiner | None = None
    size: int = 0


def shape_of(op: Op, number: int = 0) -> tuple[int, ...]:
    """Return the sizes of an operand; () for a scalar, and where there is none."""
    return tuple(getattr(op.operands[number].type, "shape", ()) if number < len(op.operands) else ())


def out_shape(op: Op, number: int = 0) -> tuple[int, ...]:
    """Return the sizes of a result; () for a scalar."""
    return tuple(getattr(op.results[number].type, "shape", ()))


def operand_at(op: Op, position: int) -> int:
    """Return the number of the operand at an input of the node; -1 where the node has none there."""
    positions = op.attributes.get("positions", tuple(range(len(op.operands))))
    return positions.index(position) if position in positions else -1


def attribute(op: Op, name: str, default: Any = None) -> Any:
    """Return an attribute of the node, or an operand that holds constant numbers, by its name."""
    return op.attributes.get(name, default)


def normal(dim: int, rank: int) -> int:
    """Return a dimension counted from the first one."""
    return dim + rank if dim < 0 else dim


def tied(op: Op, ties: Iterable[Tie]) -> OpShardingRule:
    """Return the rule of an op from its ties; a dimension in none of them must be whole.

    Ties of dimensions of other sizes, such as 1 where an operand is repeated, leave these out.
    """
    builder = OpShardingRuleBuilder.for_op(op)
    covered: set[tuple[bool, int, int]] = set()
    for tie in ties:
        if tie.size:
            covered |= _tie_major_parts(op, tie, builder)
            continue
        sizes = [*(out_shape(op, number)[dim] for number, dim in tie.results.items())]
        sizes += [shape_of(op, number)[dim] for number, dim in tie.operands.items()]
        size = max(sizes, default=1)
        operands = {number: dim for number, dim in tie.operands.items() if shape_of(op, number)[dim] == size}
        results = {number: dim for number, dim in tie.results.items() if out_shape(op, number)[dim] == size}
        covered |= {(True, *item) for item in operands.items()} | {(False, *item) for item in results.items()}
        if tie.combiner is None:
            builder.tie(operands, results, size)
        else:
            builder.tie(operands, results, size, kind=FactorKind.REDUCTION, combiner=tie.combiner)
    for number in range(len(op.operands)):
        for dim, size in enumerate(shape_of(op, number)):
            if (True, number, dim) not in covered:
                builder.tie({number: dim}, {}, size, kind=WHOLE)
    for number in range(len(op.results)):
        for dim, size in enumerate(out_shape(op, number)):
            if (False, number, dim) not in covered:
                builder.tie({}, {number: dim}, size, kind=WHOLE)
    return builder.build()


def _tie_major_parts(op: Op, tie: Tie, builder: OpShardingRuleBuilder) -> set[tuple[bool, int, int]]:
    """Tie the major parts of dimensions, whose minor parts must be whole, and return these dimensions."""
    builder.tie(tie.operands, tie.results, tie.size)
    for number, dim in tie.operands.items():
        if shape_of(op, number)[dim] > tie.size:
            builder.tie({number: dim}, {}, shape_of(op, number)[dim] // tie.size, kind=WHOLE)
    for number, dim in tie.results.items():
        if out_shape(op, number)[dim] > tie.size:
            builder.tie({}, {number: dim}, out_shape(op, number)[dim] // tie.size, kind=WHOLE)
    return {(True, *item) for item in tie.operands.items()} | {(False, *item) for item in tie.results.items()}


def passing(op: Op, dims: Iterable[int], others: Mapping[int, Mapping[int, int]] | None = None) -> OpShardingRule:
    """Return the rule of an op whose first operand and results share some dimensions.

    Args:
        op: The op.
        dims: The dimensions.
        others: For such a dimension, the dimensions of other operands that go with it.
    """
    ties = []
    for dim in dims:
        results = {number: dim for number in range(len(op.results)) if dim < len(out_shape(op, number))}
        ties.append(Tie({0: dim, **(others or {}).get(dim, {})}, results))
    return tied(op, ties)

"""Access to the arguments of a call: operands and attributes by the names of the operator's schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import Localize, Shard
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

Rule = OpShardingRule | None


Dims = int | Sequence[int] | None
"""A dimension, several, or all."""


RuleFunction = Callable[[Op], Rule]


REPLICATED = FactorKind.NEED_REPLICATION


def operand_names(op: Op) -> Sequence[str]:
    """Return the name of the argument of each operand."""
    names: Sequence[str] = op.attributes.get("operand_names", ())
    return names


def operand_number(op: Op, name: str) -> int | None:
    """Return the number of the operand of an argument, None where it is not given as a tensor."""
    names = operand_names(op)
    return names.index(name) if name in names else None


def attribute(op: Op, name: str, default: Attribute = None) -> Attribute:
    """Return an argument that is not a tensor, or the default where it is None."""
    return op.attributes.get(name, default)


def shape_of(value: Value) -> tuple[int, ...]:
    """Return the sizes of a value; () for one that is not a tensor."""
    return tuple(size or 0 for size in value.type.shape) if isinstance(value.type, TensorType) else ()


def operand_shape(op: Op, number: int) -> tuple[int, ...]:
    """Return the sizes of an operand."""
    return shape_of(op.operands[number])


def result_shape(op: Op, number: int = 0) -> tuple[int, ...]:
    """Return the sizes of a result."""
    return shape_of(op.results[number])


def normal(dim: int, rank: int) -> int:
    """Return the number of a dimension that may count from the end."""
    return dim % rank if rank else 0


def normal_dims(dims: Dims, rank: int) -> tuple[int, ...]:
    """Return the numbers of dimensions given as one, several, or None for all."""
    if dims is None or dims == ():
        return tuple(range(rank))
    return tuple(normal(dim, rank) for dim in ((dims,) if isinstance(dims, int) else dims))


Tie = tuple[dict[int, int], dict[int, int]] | tuple[dict[int, int], dict[int, int], FactorKind]


def tied(op: Op, ties: Iterable[Tie]) -> Rule:
    """Return the rule in which some dimensions go together, and all others are whole.

    Args:
        op: The op.
        ties: Operand number to dimension, result number to dimension, and the kind where the dimension does not pass
            through. A dimension of a result with several ties is compound, the first of them major. Where sizes
            differ, those of size 1 broadcast and are left out.
    """
    builder, known = OpShardingRuleBuilder.for_op(op), set[tuple[bool, int, int]]()
    for ins, outs, *kinds in ties:
        size = max([operand_shape(op, number)[dim] for number, dim in ins.items()], default=1)
        wide = {number: dim for number, dim in ins.items() if operand_shape(op, number)[dim] == size}
        builder.tie(wide, outs, size, kind=kinds[0] if kinds else FactorKind.PASS_THROUGH)
        known |= {(False, *place) for place in ins.items()} | {(True, *place) for place in outs.items()}
    for number in range(len(op.operands)):
        for dim, size in enumerate(operand_shape(op, number)):
            if (False, number, dim) not in known and size:
                builder.tie({number: dim}, {}, size, kind=REPLICATED)
    for number in range(len(op.results)):
        for dim, size in enumerate(result_shape(op, number)):
            if (True, number, dim) not in known and size:
                builder.tie({}, {number: dim}, size, kind=REPLICATED)
    return builder.build()


def whole(op: Op) -> Rule:
    """Return the rule of ops all of whose tensors are whole."""
    return tied(op, ())


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the sizes to which tensors broadcast."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(max(sizes) for sizes in zip(*padded, strict=True))


def aligned(shape: tuple[int, ...], wide: tuple[int, ...], dim: int) -> int | None:
    """Return the dimension of a tensor that broadcasts to a dimension, None where it lacks it or has size 1."""
    place = dim - (len(wide) - len(shape))
    return place if place >= 0 and shape[place] == wide[dim] else None


def sized(name: str) -> Localize:
    """Return the form of an operator one argument of which holds the sizes of its result."""

    def form(op: Op, shard: Shard) -> Sequence[Value]:
        shard.check_kinds()
        return shard.copy(**{name: shard.result_shape()})

    return form


def input_sized(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the gradient of a slice, whose argument holds the sizes of the result."""
    shard.check_kinds()
    return shard.copy(input_sizes=shard.result_shape())

"""Access to the arguments of a call: operands and attributes by the names of the operator's schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

REPLICATED = FactorKind.NEED_REPLICATION
_GATHERED = (FactorKind.NEED_REPLICATION, FactorKind.PERMUTATION)


def operand_names(op: Op) -> Sequence[str]:
    """Return the name of the argument of each operand."""
    names: Sequence[str] = op.attributes.get("operand_names", ())
    return names


def operand_number(op: Op, name: str) -> int | None:
    """Return the number of the operand of an argument, None where it is not given as a tensor."""
    names = operand_names(op)
    return names.index(name) if name in names else None


def attribute(op: Op, name: str, default: Any = None) -> Any:
    """Return an argument that is no tensor, or the default where it is None."""
    return op.attributes.get(name, default)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the sizes of a value; () for one that is no tensor."""
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


def normal_dims(dims: Any, rank: int) -> tuple[int, ...]:
    """Return the numbers of dimensions given as one, several, or None for all."""
    if dims is None or dims == ():
        return tuple(range(rank))
    return tuple(normal(dim, rank) for dim in ((dims,) if isinstance(dims, int) else dims))


Tie = tuple[dict[int, int], dict[int, int]] | tuple[dict[int, int], dict[int, int], FactorKind]


def tied(op: Op, ties: Iterable[Tie]) -> Any:
    """Return the rule in which some dimensions go together, and all others are whole.

    Args:
        op: The op.
        ties: Operand number to dimension, result number to dimension, and the kind where the dimension does not pass
            through. A dimension of a result with several ties is compound, the first of them major. Where sizes
            differ, those of size 1 broadcast and are left out.
    """
    factors, known = Factors(op), set[tuple[bool, int, int]]()
    for ins, outs, *kinds in ties:
        size = max([operand_shape(op, number)[dim] for number, dim in ins.items()], default=1)
        wide = {number: dim for number, dim in ins.items() if operand_shape(op, number)[dim] == size}
        factors.add(size, wide, outs, kind=kinds[0] if kinds else FactorKind.PASS_THROUGH)
        known |= {(False, *place) for place in ins.items()} | {(True, *place) for place in outs.items()}
    for number in range(len(op.operands)):
        for dim, size in enumerate(operand_shape(op, number)):
            if (False, number, dim) not in known and size:
                factors.add(size, {number: dim}, {}, kind=REPLICATED)
    for number in range(len(op.results)):
        for dim, size in enumerate(result_shape(op, number)):
            if (True, number, dim) not in known and size:
                factors.add(size, {}, {number: dim}, kind=REPLICATED)
    return factors.build()


def whole(op: Op) -> Any:
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


class Factors:
    """Builder of rules that names the tensors that have a factor.

    >>> # Factors(op).add(8, {0: 1}, {0: 0}) ties dimension 1 of operand 0 to dimension 0 of result 0.

    Args:
        op: The op.
    """

    def __init__(self, op: Op) -> None:
        self.op = op
        self.builder = OpShardingRuleBuilder.for_op(op)
        self.ones: set[tuple[bool, int, int]] = set()

    def add(
        self,
        size: int,
        operands: dict[int, int],
        results: dict[int, int],
        *,
        kind: FactorKind = FactorKind.PASS_THROUGH,
        combiner: str = "add",
    ) -> Factors:
        """Add a factor.

        Where a dimension of size 1 is made of others, or others of it, the tensors share no factor: a factor of size 1
        says nothing, and the others must be whole.

        Args:
            size: Its size.
            operands: Operand number to dimension.
            results: Result number to dimension.
            kind: Its kind.
            combiner: How partial results combine, for a reduction.
        """
        if size == 1 and kind in _GATHERED and self._largest(operands, results) > 1:
            for number, dim in operands.items():
                self.add(operand_shape(self.op, number)[dim], {number: dim}, {}, kind=REPLICATED)
            for number, dim in results.items():
                self.add(result_shape(self.op, number)[dim], {}, {number: dim}, kind=REPLICATED)
            return self
        if size == 1:
            # A factor of size 1 is no part of a dimension that has others.
            operands = {n: dim for n, dim in operands.items() if self._is_first_one(False, n, dim)}
            results = {n: dim for n, dim in results.items() if self._is_first_one(True, n, dim)}
        ins = [operands.get(number) for number in range(len(self.op.operands))]
        outs = [results.get(number) for number in range(len(self.op.results))]
        if kind is FactorKind.REDUCTION:
            self.builder.add_factor(ins, outs, size, kind=kind, combiner=combiner)
        else:
            self.builder.add_factor(ins, outs, size, kind=kind)
        return self

    def _is_first_one(self, is_result: bool, number: int, dim: int) -> bool:
        """Return whether a dimension is of size 1 and has no factor yet; it has one from now on."""
        shape = result_shape(self.op, number) if is_result else operand_shape(self.op, number)
        place = is_result, number, dim
        is_first = shape[dim] == 1 and place not in self.ones
        self.ones.add(place)
        return is_first

    def _largest(self, operands: dict[int, int], results: dict[int, int]) -> int:
        return max(
            *(operand_shape(self.op, number)[dim] for number, dim in operands.items()),
            *(result_shape(self.op, number)[dim] for number, dim in results.items()),
            1,
        )

    def build(self) -> Any:
        """Return the rule."""
        return self.builder.build()

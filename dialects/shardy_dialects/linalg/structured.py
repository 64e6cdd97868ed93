"""Linalg's ops: their loops, from which rules, indexing maps and local forms follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from math import prod
from typing import TYPE_CHECKING, TypedDict

from attrs import evolve

from shardy_dialects.linalg.bodies import Body, initial_outputs
from shardy_py import indexing
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.plugins import (
    Broadcast,
    ConstantFoldable,
    Contraction,
    Dialect,
    Elementwise,
    IsTerminator,
    PassThrough,
    Pure,
    ReturnLike,
    Trait,
)
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.derivation import PARALLEL, REDUCTION
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import Shape, tensor_shape
from shardy_py.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardy_py.indexing import AffineMap, OpIndexing
    from shardy_py.ir.graph.program import Value
    from shardy_py.plugins import Shard


@frozen
class Loops:
    """The loops of a structured op.

    Args:
        maps: One indexing map per operand: inputs, then outputs.
        iterator_types: One per loop.
        combiner: The combiner of the iterations of reductions; None where they do not combine.
        replicated: Loops that need replication whatever the maps say.
    """

    maps: tuple[AffineMap, ...]
    iterator_types: tuple[str, ...]
    combiner: Combiner | None = Combiner.ADD
    replicated: frozenset[int] = frozenset()

    def maps_of_all(self, num_results: int) -> tuple[AffineMap, ...]:
        """Return the maps of all operands and results; each result has that of its output operand."""
        return (*self.maps, *self.maps[len(self.maps) - num_results :])


LoopsOf = Callable[[Op], Loops]


CONTRACTIONS: Mapping[str, str] = {
    "linalg.matmul": "a c, c b -> a b",
    "linalg.batch_matmul": "a b d, a d c -> a b c",
    "linalg.matvec": "a b, b -> a",
    "linalg.vecmat": "b, b a -> a",
    "linalg.batch_matvec": "a b c, a c -> a b",
    "linalg.dot": "a, a ->",
    "linalg.batch_vecmat": "a c, a c b -> a b",
    "linalg.matmul_transpose_a": "c a, c b -> a b",
    "linalg.matmul_transpose_b": "a c, b c -> a b",
    "linalg.batch_matmul_transpose_a": "a d b, a d c -> a b c",
    "linalg.batch_matmul_transpose_b": "a b d, a c d -> a b c",
    "linalg.batch_reduce_matmul": "c a d, c d b -> a b",
    "linalg.mmt4d": "a c d f, b c e f -> a b d e",
    "linalg.batch_mmt4d": "a b d e g, a c d f g -> a b c e f",
    # The zero points of the two factors are scalars.
    "linalg.quantized_matmul": "a c, c b, , -> a b",
    "linalg.quantized_batch_matmul": "a b d, a d c, , -> a b c",
}
"""The rule texts of the named contractions: factors that the result lacks are summed over."""
ELEMENTWISE = (
    *("abs", "add", "ceil", "copy", "div", "div_unsigned", "erf", "exp", "floor", "log", "max", "min", "mul", "negf"),
    *("powf", "reciprocal", "round", "rsqrt", "select", "sqrt", "square", "sub", "tanh"),
)


@cache
def loops_of_text(text: str) -> Loops:
    """Return the loops of a contraction that is written as a rule text: one per factor, in the order of their names.

    >>> loops_of_text("a c, c b -> a b").iterator_types
    ('parallel', 'parallel', 'reduction')
    """
    from shardy_py.sharding.einsum.text import parse_tensors

    operands, results = parse_tensors(text)
    tensors = [[name for dim in tensor.dims for name in dim.names] for tensor in (*operands, *results)]
    names = sorted({name for tensor in tensors for name in tensor})
    maps = tuple(indexing.AffineMap.of_dims(len(names), map(names.index, tensor)) for tensor in tensors)
    return Loops(maps, tuple(PARALLEL if name in tensors[-1] else REDUCTION for name in names))


def generic_loops(op: Op) -> Loops:
    """Return the loops an op has as attributes."""
    maps = _attribute_maps(op)
    kinds = tuple(_kind(str(item)) for item in op.attributes.get("iterator_types", ()))
    return _with_body(Loops(maps, kinds), op)


def _with_body(loops: Loops, op: Op) -> Loops:
    """Return loops with what the body of the op says; without one they add."""
    body = Body.of(op)
    if body is None:
        return loops
    # What the iterations of a parallel loop start from is of no interest.
    combiner = body.combiner if REDUCTION in loops.iterator_types else Combiner.ADD
    return evolve(loops, combiner=combiner, replicated=body.read_loops)


def _attribute_maps(op: Op) -> tuple[AffineMap, ...]:
    return tuple(indexing.AffineMap.parse(str(item)) for item in op.attributes["indexing_maps"])


def _kind(text: str) -> str:
    return REDUCTION if REDUCTION in text else PARALLEL


def contraction_loops(op: Op) -> Loops:
    """Return the loops of a contraction; its maps may be given, with transposed or broadcast operands."""
    known = loops_of_text(CONTRACTIONS[op.name])
    if not op.attributes.get("indexing_maps"):
        return known
    return Loops(_attribute_maps(op), known.iterator_types)


def contract_loops(op: Op) -> Loops:
    """Return the loops of a general contraction: those that the output lacks are summed over."""
    from shardy_py.indexing.expressions import variables_of

    maps = _attribute_maps(op)
    result_loops = set().union(*map(variables_of, maps[-1].results))
    kinds = (PARALLEL if indexing.dim(loop) in result_loops else REDUCTION for loop in range(maps[-1].num_dims))
    return Loops(maps, tuple(kinds))


def softmax_loops(op: Op) -> Loops:
    """Return one loop per dimension; along one of them each element reads all, by a symbol."""
    rank, along = len(tensor_shape(op.operands[0])), op.attributes["dimension"]
    read = tuple(indexing.symbol(0) if loop == along else indexing.dim(loop) for loop in range(rank))
    maps = (indexing.AffineMap(rank, read, num_symbols=1), indexing.AffineMap.of_dims(rank, range(rank)))
    return Loops(maps, (PARALLEL,) * rank, replicated=frozenset({along}))


def elementwise_loops(op: Op) -> Loops:
    """Return one loop per dimension of the output; scalar operands are in none."""
    rank = len(tensor_shape(op.operands[-1]))
    ranks = [len(tensor_shape(value)) for value in op.operands]
    return Loops(
        tuple(indexing.AffineMap.of_dims(rank, range(operand_rank)) for operand_rank in ranks), (PARALLEL,) * rank
    )


def mapped_loops(op: Op) -> Loops:
    """Return one loop per dimension of the output; its maps may be given, with transposed or broadcast operands."""
    maps = _attribute_maps(op) if op.attributes.get("indexing_maps") else ()
    return Loops(maps, (PARALLEL,) * maps[-1].num_dims) if maps else elementwise_loops(op)


def transpose_loops(op: Op) -> Loops:
    """Return one loop per dimension of the input; the output has them permuted."""
    order = op.attributes["permutation"]
    rank = len(order)
    maps = (indexing.AffineMap.of_dims(rank, range(rank)), indexing.AffineMap.of_dims(rank, order))
    return Loops(maps, (PARALLEL,) * rank)


def broadcast_loops(op: Op) -> Loops:
    """Return one loop per dimension of the output; the input lacks those it is repeated along."""
    return _without(op.attributes["dimensions"], len(tensor_shape(op.operands[-1])), PARALLEL, missing_in=0)


def reduce_loops(op: Op) -> Loops:
    """Return one loop per dimension of the inputs; the outputs lack those that are reduced."""
    half = len(op.operands) // 2
    loops = _without(op.attributes["dimensions"], len(tensor_shape(op.operands[0])), REDUCTION, missing_in=1)
    return _with_body(Loops((loops.maps[0],) * half + (loops.maps[1],) * half, loops.iterator_types), op)


def _without(dims: Iterable[int], rank: int, kind: str, *, missing_in: int) -> Loops:
    removed = frozenset(dims)
    maps = [indexing.AffineMap.of_dims(rank, range(rank))] * 2
    maps[missing_in] = indexing.AffineMap.of_dims(rank, [dim for dim in range(rank) if dim not in removed])
    return Loops(tuple(maps), tuple(kind if dim in removed else PARALLEL for dim in range(rank)))


def structured_rule(loops_of: LoopsOf, op: Op) -> OpShardingRule | None:
    """Return the rule of an op from its loops; each result has the map of its output operand."""
    if not _is_static(op):
        return None
    from shardy_py.sharding.derivation import rule_from_indexing_maps

    loops = loops_of(op)
    return rule_from_indexing_maps(
        loops.maps_of_all(len(op.results)),
        _shapes(op),
        num_results=len(op.results),
        iterator_types=loops.iterator_types,
        combiner=loops.combiner,
        whole=loops.replicated,
    )


def structured_indexing(loops_of: LoopsOf, op: Op) -> OpIndexing | None:
    """Return the indexing maps of an op from its loops."""
    if not _is_static(op) or not all(map(prod, _shapes(op))):
        return None
    from shardy_py.sharding.derivation import op_indexing_from_maps

    count = len(op.results)
    return op_indexing_from_maps(loops_of(op).maps_of_all(count), _shapes(op), num_results=count)


def _is_static(op: Op) -> bool:
    return bool(op.results) and not any(None in getattr(value.type, "shape", ()) for value in op.operands)


def _shapes(op: Op) -> list[Shape]:
    return [tensor_shape(value) for value in (*op.operands, *op.results)]


def initial_operands(loops_of: LoopsOf, op: Op) -> list[int]:
    """Return the outputs that a reduction starts from and that count once."""
    return initial_outputs(op, loops_of(op).combiner)


def generic_traits(op: Op) -> Iterable[Trait]:
    """Return the traits of a generic op by its loops: all parallel, with every tensor in every loop, is elementwise.

    A body that asks for the number of its iteration is not.
    """
    body = Body.of(op)
    if body is not None and body.read_loops:
        return ()
    maps = op.attributes.get("indexing_maps", ())
    kinds = op.attributes.get("iterator_types", ())
    if len(set(map(str, maps))) == 1 and not any(REDUCTION in str(kind) for kind in kinds):
        return (Elementwise,)
    return ()


def _elementwise_traits(op: Op) -> Iterable[Trait]:
    """Return the trait of ops all of whose tensors are in every loop in the same way."""
    return (Elementwise,) if len(set(mapped_loops(op).maps)) == 1 else ()


class LoopFacets(TypedDict):
    """The facets of an op that follow from its loops."""

    rule: Callable[[Op], OpShardingRule | None]
    indexing: Callable[[Op], OpIndexing | None]
    initial_of: Callable[[Op], list[int]]
    local: Callable[[Op, Shard], Sequence[Value]]


def described_by(loops_of: LoopsOf) -> LoopFacets:
    """Return the facets of a definition that follow from the loops of an op."""
    return LoopFacets(
        rule=partial(structured_rule, loops_of),
        indexing=partial(structured_indexing, loops_of),
        initial_of=partial(initial_operands, loops_of),
        local=partial(_localize, loops_of),
    )


def _localize(loops_of: LoopsOf, op: Op, shard: Shard) -> Sequence[Value]:
    from shardy_dialects.linalg.local_structured import localize_structured

    return localize_structured(loops_of, op, shard)


_WINOGRAD = {
    "filter": ("f h w c, x y c f -> x y c f", "h w x y"),
    "input": ("n h w c, x y t u n c -> x y t u n c", "h w x y t u"),
    "output": ("x y t u n f, n h w f -> n h w f", "x y t u h w"),
}
"""The transforms of Winograd's convolution: their rules, and the factors of windows and tiles."""


def register(dialect: Dialect) -> None:
    """Define the structured ops."""

    def define(name: str, loops_of: LoopsOf, *traits: Trait, has_body: bool = False) -> None:
        dialect.op(name, traits=[Pure, *traits], contextual=has_body, **described_by(loops_of))

    dialect.op(
        "linalg.generic",
        traits=[Pure],
        traits_of=generic_traits,
        contextual=True,
        **described_by(generic_loops),
    )
    for name in CONTRACTIONS:
        define(name, contraction_loops, Contraction)
    for short in ELEMENTWISE:
        define(f"linalg.{short}", elementwise_loops, Elementwise)
    define("linalg.map", elementwise_loops, Elementwise)
    dialect.op("linalg.elementwise", traits=[Pure], traits_of=_elementwise_traits, **described_by(mapped_loops))
    define("linalg.contract", contract_loops, Contraction)
    define("linalg.softmax", softmax_loops)
    define("linalg.fill", elementwise_loops, Elementwise, ConstantFoldable)
    define("linalg.transpose", transpose_loops, PassThrough)
    define("linalg.broadcast", broadcast_loops, Broadcast)
    define("linalg.reduce", reduce_loops, has_body=True)
    dialect.op("linalg.yield", traits=[IsTerminator, ReturnLike, Pure])
    dialect.op("linalg.index", traits=[Pure])
    # Each number follows from its place in the whole tensor.
    dialect.op("linalg.fill_rng_2d", rule=", , , i j -> i j", need_replication="i, j", traits=[Pure])
    for name, (text, space) in _WINOGRAD.items():
        full_name = f"linalg.winograd_{name}_transform"
        dialect.op(full_name, rule=text, need_replication=tuple(space.split()), traits=[Pure], local=local_by_types)

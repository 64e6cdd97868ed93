"""Derive the rule of an op from its maps, and indexing maps from the affine maps of its loops."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import evolve

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.indexing import AffineMap, Expression, IndexingMap, OpIndexing, Variable, VariableKind, dim, symbol
from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.expressions import rewritten, variables_of
from shardy_py.indexing.indexing_map import bounds_of
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.derivation import PARALLEL, REDUCTION
from shardy_py.sharding.derivation.factors import LoopFactors, restricted_factors
from shardy_py.sharding.derivation.loops import LoopAccess, all_dims, dim_index, loop_sizes
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import Shape


def rule_from_indexing_maps(
    maps: Sequence[AffineMap],
    shapes: Sequence[Shape],
    *,
    num_results: int,
    iterator_types: Sequence[str] = (),
    combiner: Combiner | None = Combiner.ADD,
    whole: Collection[int] = (),
) -> OpShardingRule | None:
    """Return the rule of a structured op from its indexing maps.

    Each loop is a factor; one that tensors take apart by ``floordiv`` and ``mod`` has a factor for each digit. A
    dimension indexed by a combination of loops such as ``d0 * 4 + d1`` has their factors, major first, if the loops
    fill it without gaps and overlaps. One that a window slides over, ``d0 * stride + d1`` with ``d1`` reduced, has that
    of the parallel loop, which needs a permutation (neighbours exchange what windows share), while the loop over the
    window needs replication. Loops that run backwards, are shifted or take steps need a permutation, those in any
    other expression replication, and so do reduced loops along which tensors meet at different indices. A tensor that
    has a loop in two dimensions is sharded along the first, and gathered for the op.

    Args:
        maps: One map per operand, then one per result; their dimensions are the loops.
        shapes: The sizes, in the same order; () for a scalar.
        num_results: The number of results.
        iterator_types: One per loop, ``parallel`` or ``reduction``; all parallel by default.
        combiner: How the iterations of reduction loops combine; None where they do not: these loops need replication.
        whole: Further loops that need replication.

    Returns:
        The rule, or None where no dimension tells the size of a loop.

    Raises:
        RuleError: the maps do not fit the shapes or each other.

    >>> maps = [AffineMap.parse(f"(d0, d1, d2) -> {text}") for text in ("(d0, d2)", "(d2, d1)", "(d0, d1)")]
    >>> kinds = ["parallel", "parallel", "reduction"]
    >>> str(rule_from_indexing_maps(maps, [(8, 4), (4, 16), (8, 16)], num_results=1, iterator_types=kinds))
    '<([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k}>'
    """
    _check(maps, shapes, iterator_types)
    num_loops = max((map_.num_dims for map_ in maps), default=0)
    accesses = [
        LoopAccess(tuple(zip(map(dim_index, map_.results), shape, strict=True)))
        for map_, shape in zip(maps, shapes, strict=True)
    ]
    sizes = loop_sizes(all_dims(accesses), num_loops)
    if sizes is None:
        return None
    reduced = [kind == REDUCTION for kind in iterator_types] or [False] * num_loops
    factors = LoopFactors(sizes, [access.without_single_steps(sizes) for access in accesses], reduced, combiner)
    factors.replicate(whole)
    return factors.rule(num_results)


def rule_from_op_maps(
    maps: Sequence[IndexingMap], operands: Sequence[Shape], results: Sequence[Shape], *, sums: bool = False
) -> OpShardingRule | None:
    """Return the rule of an op from the maps of its operands: each index of the result is a loop, so is each symbol.

    Loops that the domain of a map restricts to a part of a dimension need replication.

    Args:
        maps: The map of every operand, from the index of the first result.
        operands: The shapes of the operands; () for a scalar.
        results: The shapes of the results; all have the index of the first.
        sums: Whether the values of range variables are added up, so that each shard may add up its own part. Otherwise
            such dimensions need replication.

    Returns:
        The rule; None without operands, where a map is undefined, where results have different shapes, or where
        nothing tells the size of a loop.

    >>> from shardy_py.indexing import op_maps
    >>> maps = [op_maps.transpose((16, 8), [1, 0])]
    >>> str(rule_from_op_maps(maps, [(8, 16)], [(16, 8)]))
    '<([j, i])->([i, j]) {i=16, j=8}>'
    """
    if not maps or not results or len(set(map(tuple, results))) > 1 or any(map_.is_undefined for map_ in maps):
        return None
    rank, symbols = len(results[0]), max(len(map_.ranges) for map_ in maps)
    loops: dict[Variable, Expression] = {
        Variable(VariableKind.RANGE, number): dim(rank + number) for number in range(symbols)
    }
    read = [AffineMap(rank + symbols, tuple(rewritten(result, loops) for result in map_.results)) for map_ in maps]
    written = [AffineMap.of_dims(rank + symbols, range(rank))] * len(results)
    rule = rule_from_indexing_maps(
        [*read, *written],
        [*operands, *results],
        num_results=len(results),
        iterator_types=[PARALLEL] * rank + [REDUCTION] * symbols,
    )
    if rule is None:
        return None
    # What moves is gathered where it must be.
    restricted = restricted_factors(rule, maps, operands, results[0]).difference(rule.permutation_factors)
    replicated = {factor for factor in restricted if rule.factor_sizes[factor] > 1}
    if not sums:
        replicated.update(rule.reduction_factors)
    if not replicated:
        return rule
    return evolve(
        rule,
        reduction_factors=tuple(factor for factor in rule.reduction_factors if factor not in replicated),
        need_replication_factors=tuple(sorted({*rule.need_replication_factors, *replicated})),
    )


def with_whole_dims(rule: OpShardingRule | None, dims: Collection[int]) -> OpShardingRule | None:
    """Return a rule in which the factors of some dimensions of the first result need replication.

    Args:
        rule: The rule, or None.
        dims: The dimensions.

    >>> rule = rule_from_op_maps([IndexingMap.of_shape((8, 4), [dim(0), dim(1)])], [(8, 4)], [(8, 4)])
    >>> str(with_whole_dims(rule, {1}))
    '<([i, j])->([i, j]) {i=8, j=4} need_replication={j}>'
    """
    if rule is None or not dims:
        return rule
    mapping = rule.result_mappings[0]
    replicated_factors = {factor for number in dims if number < len(mapping) for factor in mapping[number]}
    return evolve(
        rule,
        need_replication_factors=tuple(sorted({*rule.need_replication_factors, *replicated_factors})),
        permutation_factors=tuple(factor for factor in rule.permutation_factors if factor not in replicated_factors),
    )


def _check(maps: Sequence[AffineMap], shapes: Sequence[Shape], iterator_types: Sequence[str]) -> None:
    if len(maps) != len(shapes):
        raise _unfit(f"there are {len(maps)} maps for {len(shapes)} tensors")
    for number, (map_, shape) in enumerate(zip(maps, shapes, strict=True)):
        if len(map_.results) != len(shape):
            raise _unfit(f"map {number} has {len(map_.results)} results, its tensor has {len(shape)} dimensions")
        if map_.num_dims != maps[0].num_dims:
            raise _unfit(f"map {number} is over {map_.num_dims} loops, map 0 over {maps[0].num_dims}")
    if iterator_types and maps and len(iterator_types) != maps[0].num_dims:
        raise _unfit(f"there are {len(iterator_types)} iterator types for {maps[0].num_dims} loops")


def _unfit(message: str) -> RuleError:
    return RuleError(Diagnostic("indexing-maps", message))


def op_indexing_from_maps(maps: Sequence[AffineMap], shapes: Sequence[Shape], *, num_results: int) -> OpIndexing | None:
    """Return the indexing maps of a structured op, between its operands and its first result.

    A loop that indexes a dimension of the result is this dimension; the others, and the symbols of the maps, are range
    variables. A map back exists for operands that read every index by a variable of its own.

    Args:
        maps: One map per operand, then one per result; their dimensions are the loops.
        shapes: The sizes, in the same order; () for a scalar.
        num_results: The number of results, at least one.

    Returns:
        The maps; None where a dimension of the result is not one loop of its own, or where nothing tells the size of a
        loop or of a symbol.

    >>> maps = [AffineMap.parse(f"(d0, d1, d2) -> {text}") for text in ("(d0, d2)", "(d2, d1)", "(d0, d1)")]
    >>> indexing = op_indexing_from_maps(maps, [(8, 4), (4, 16), (8, 16)], num_results=1)
    >>> print(indexing.output_to_input[0])
    (d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 7], d1 in [0, 15], s0 in [0, 3]
    """
    first = len(maps) - num_results
    output, out_shape = maps[first], shapes[first]
    sizes = loop_sizes(all_dims(map(_access, maps, shapes)), output.num_dims)
    index_of_loop = {loop: index for index, loop in enumerate(output.results) if isinstance(loop, Variable)}
    if (
        sizes is None
        or len(index_of_loop) != len(output.results)
        or any(loop.kind is not VariableKind.DIM for loop in index_of_loop)
    ):
        return None
    inner = [dim(loop) for loop in range(output.num_dims) if dim(loop) not in index_of_loop]
    values: dict[Variable, Expression] = {loop: dim(index) for loop, index in index_of_loop.items()}
    values |= {loop: symbol(number) for number, loop in enumerate(inner)}
    read: list[IndexingMap] = []
    for map_, shape in zip(maps[:first], shapes, strict=False):
        symbol_sizes = _symbol_sizes(map_, shape)
        if symbol_sizes is None:
            return None
        moved = values | {symbol(number): symbol(len(inner) + number) for number in range(map_.num_symbols)}
        results = tuple(canonicalize(rewritten(result, moved)) for result in map_.results)
        summed = [*(sizes[loop.number] for loop in inner), *symbol_sizes]
        # An operand that no range variable moves is read once.
        is_moved = any(item.kind is VariableKind.RANGE for result in results for item in variables_of(result))
        read.append(IndexingMap(results, bounds_of(out_shape), bounds_of(summed if is_moved else ())))
    return OpIndexing(read, [_map_back(map_, shape) for map_, shape in zip(read, shapes, strict=False)])


def _access(map_: AffineMap, shape: Shape) -> LoopAccess:
    return LoopAccess(tuple(zip(map(dim_index, map_.results), shape, strict=True)))


def _symbol_sizes(map_: AffineMap, shape: Shape) -> list[int] | None:
    """Return the sizes of a map's symbols, from the dimensions that they index alone; None for unknown sizes."""
    known = dict(zip(map_.results, shape, strict=True))
    sizes = [known.get(symbol(number)) for number in range(map_.num_symbols)]
    return None if None in sizes else [size for size in sizes if size is not None]


def _map_back(map_: IndexingMap, shape: Shape) -> IndexingMap | None:
    """Return the map from the index of an operand to those of the result, where each index is a variable of its own."""
    if not all(isinstance(result, Variable) for result in map_.results) or len(set(map_.results)) != len(map_.results):
        return None
    read = {result: dim(number) for number, result in enumerate(map_.results)}
    free = [number for number in range(len(map_.dims)) if dim(number) not in read]
    values = read | {dim(number): symbol(index) for index, number in enumerate(free)}
    return IndexingMap(
        tuple(values[dim(number)] for number in range(len(map_.dims))),
        bounds_of(shape),
        tuple(map_.dims[number] for number in free),
    )

"""Indexing maps of ops from the affine maps of their loops."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.indexing import AffineMap, Expression, IndexingMap, OpIndexing, Variable, VariableKind, dim, symbol
from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.expressions import rewritten, variables_of
from shardy_py.indexing.indexing_map import bounds_of
from shardy_py.sharding.derivation.dim_index import dim_index
from shardy_py.sharding.derivation.loops import LoopAccess, all_dims, loop_sizes
from shardy_py.sharding.rule_builder import Shape


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
    places = {loop: place for place, loop in enumerate(output.results) if isinstance(loop, Variable)}
    if sizes is None or len(places) != len(output.results) or any(loop.kind is not VariableKind.DIM for loop in places):
        return None
    inner = [dim(loop) for loop in range(output.num_dims) if dim(loop) not in places]
    values: dict[Variable, Expression] = {loop: dim(place) for loop, place in places.items()}
    values |= {loop: symbol(number) for number, loop in enumerate(inner)}
    read: list[IndexingMap] = []
    for map_, shape in zip(maps[:first], shapes, strict=False):
        own = _symbol_sizes(map_, shape)
        if own is None:
            return None
        moved = values | {symbol(number): symbol(len(inner) + number) for number in range(map_.num_symbols)}
        results = tuple(canonicalize(rewritten(result, moved)) for result in map_.results)
        summed = [*(sizes[loop.number] for loop in inner), *own]
        # An operand that no range variable moves is read once.
        is_moved = any(item.kind is VariableKind.RANGE for result in results for item in variables_of(result))
        read.append(IndexingMap(results, bounds_of(out_shape), bounds_of(summed if is_moved else ())))
    return OpIndexing(read, [_map_back(map_, shape) for map_, shape in zip(read, shapes, strict=False)])


def _access(map_: AffineMap, shape: Shape) -> LoopAccess:
    return LoopAccess(tuple(zip(map(dim_index, map_.results), shape, strict=True)))


def _symbol_sizes(map_: AffineMap, shape: Shape) -> list[int] | None:
    """Return the sizes of a map's symbols, from the dimensions that they index alone; None where one is unknown."""
    known = dict(zip(map_.results, shape, strict=True))
    sizes = [known.get(symbol(number)) for number in range(map_.num_symbols)]
    return None if None in sizes else [size for size in sizes if size is not None]


def _map_back(map_: IndexingMap, shape: Shape) -> IndexingMap | None:
    """Return the map from the index of an operand to those of the result, where each index is a variable of its own."""
    if not all(isinstance(result, Variable) for result in map_.results) or len(set(map_.results)) != len(map_.results):
        return None
    read = {result: dim(number) for number, result in enumerate(map_.results)}
    free = [number for number in range(len(map_.dims)) if dim(number) not in read]
    values = read | {dim(number): symbol(place) for place, number in enumerate(free)}
    return IndexingMap(
        tuple(values[dim(number)] for number in range(len(map_.dims))),
        bounds_of(shape),
        tuple(map_.dims[number] for number in free),
    )

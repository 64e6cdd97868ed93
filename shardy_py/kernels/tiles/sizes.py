"""The tiles of the roots of a fusion: their sizes, by default or as they are given."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.indexing import IndexingMap, Variable, op_maps
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.fusion.choose import Choice, EmitterKind
from shardy_py.kernels.fusion.fusion import Fusion, shape_of
from shardy_py.kernels.fusion.reductions import reduced_dims
from shardy_py.kernels.tiles.element import refusal
from shardy_py.kernels.tiles.emission import MOST_TILE_ELEMENTS, operand_tile
from shardy_py.kernels.tiles.tiling import TensorTile, power_of_two, read_through, root_tile

ELEMENTS = 4096
"""The elements of a tile by default, those that are reduced among them."""
SIDE = 32
"""The least size by default of the two dimensions that a transpose swaps, where they are as long."""

_KINDS = (EmitterKind.LOOP, EmitterKind.TRANSPOSE, EmitterKind.REDUCTION)


def root_tiles(fusion: Fusion, choice: Choice, sizes: Sequence[int] | None) -> tuple[TensorTile, ...]:
    """Return the tile of every root.

    Args:
        fusion: The fusion.
        choice: Its emitter.
        sizes: The sizes of the tile of the first root, of a reduction of the first one that is reduced; None for the
            default.

    Raises:
        UnsupportedError: the emitter has no tiles, or a root cannot be written in tiles of the first one.
        OptionError: the sizes do not fit the root.
    """
    roots = [fusion.producer(root) for root in fusion.roots]
    if choice.kind not in _KINDS:
        message = f"its emitter, {choice.name}, is not among those of tiles: {', '.join(kind.value for kind in _KINDS)}"
        raise refusal("tile-emitter", message, next((op for op in (*choice.heroes, *roots) if op is not None), None))
    reductions = [hero if hero is not None and fusion.facts[hero.id].is_reduction else None for hero in choice.heroes]
    is_reduction = choice.kind is EmitterKind.REDUCTION
    first = next(number for number, hero in enumerate(reductions) if hero is not None or not is_reduction)
    anchor = fusion.roots[first]
    tile = root_tile(shape_of(anchor), _checked(sizes, anchor) or _default_sizes(fusion, choice, anchor))
    tiles = []
    for root, op in zip(fusion.roots, roots, strict=True):
        source, source_tile = anchor, tile
        hero = reductions[first]
        if fusion.elements(root) != fusion.elements(anchor) and hero is not None:
            # A root beside a reduction has the elements that are reduced.
            result = hero.results[0]
            source = hero.operands[0]
            source_tile = operand_tile(fusion, hero, _written(tile, anchor, result, fusion, op))
        tiles.append(_written(source_tile, source, root, fusion, op))
    return tuple(tiles)


def _checked(sizes: Sequence[int] | None, root: Value) -> tuple[int, ...] | None:
    """Check sizes of tiles that are given."""
    if sizes is None:
        return None
    shape = shape_of(root)
    most = [power_of_two(size) for size in shape]
    if len(sizes) == len(shape) and prod(sizes) <= MOST_TILE_ELEMENTS:
        pairs = zip(sizes, most, strict=True)
        if all(0 < size <= limit and size == power_of_two(size) for size, limit in pairs):
            return tuple(sizes)
    message = f"tiles of {root.type} have not the sizes {list(sizes)}"
    hint = f"give a power of two for every dimension, at most {most}, and at most {MOST_TILE_ELEMENTS} elements"
    raise OptionError(Diagnostic("tile-sizes", message, hint=hint))


def _default_sizes(fusion: Fusion, choice: Choice, root: Value) -> list[int]:
    """Return sizes that are as long as possible in the order of memory; both dimensions of a swap get `SIDE` first."""
    shape = shape_of(root)
    sizes = [1] * len(shape)
    most = max(1, ELEMENTS // max((_reduced_elements(fusion, op) for op in fusion.ops), default=1))

    def grow(dimension: int, limit: int) -> None:
        while sizes[dimension] < min(limit, power_of_two(shape[dimension])) and prod(sizes) < most:
            sizes[dimension] *= 2

    order = fusion.layout_of(root)
    if choice.kind is EmitterKind.TRANSPOSE:
        for dimension in (*order[:1], *_swapped(fusion, choice, root)):
            grow(dimension, SIDE)
    for dimension in order:
        grow(dimension, shape[dimension] * 2)
    return sizes


def _reduced_elements(fusion: Fusion, op: Op) -> int:
    """Return how many elements of a tile a reduction combines to one."""
    dims = reduced_dims(fusion, op) if fusion.facts[op.id].is_reduction else None
    return prod(power_of_two(shape_of(op.operands[0])[number]) for number in dims or ())


def _swapped(fusion: Fusion, choice: Choice, root: Value) -> list[int]:
    """Return the root's dimension that is the fastest one of what its hero transposes."""
    dimensions = []
    for hero in choice.heroes:
        maps: Sequence[IndexingMap] = () if hero is None else fusion.facts[hero.id].maps
        if hero is None or len(maps) != 1 or shape_of(hero.results[0]) != shape_of(root) or not maps[0].results:
            continue
        fastest = maps[0].results[-1]
        if isinstance(fastest, Variable):
            dimensions.append(fastest.number)
    return dimensions[:1]


def _written(tile: TensorTile, source: Value, root: Value, fusion: Fusion, op: Op | None) -> TensorTile:
    """Return the tile of another value at the same places in memory.

    Raises:
        UnsupportedError: there is none, or it overhangs where the other one does not.
    """
    map_ = fusion.same_place(source, root)
    shape = shape_of(source)
    if map_ == op_maps.identity(shape):
        return tile
    read = read_through(tile, map_)
    is_whole = all(size % width == 0 for size, width in zip(shape, tile.sizes, strict=True))
    sizes = list(tile.sizes)
    if not is_whole:
        message = f"tiles of {sizes} overhang {source.type}, so that they are not tiles of this root, {root.type}"
        hint = f"tiles that divide {list(shape)} would be; reduced dimensions are padded to powers of two"
        raise refusal("tile-root", message, op, hint=hint)
    if read is None or read.tile.size != tile.size:
        message = f"a tile of {sizes} of {source.type} is not a tile of this root, {root.type}"
        raise refusal("tile-root", message, op, hint="give other sizes of tiles, or a fusion with one root")
    return read.tile

"""The tiles of a transpose kernel: packed ones where several elements fit a word, else tiled ones."""

from __future__ import annotations

from math import prod

from shardy_py.indexing import IndexingMap
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.choose import Choice
from shardy_py.kernels.fusion.fusion import Fusion, bits_of, element_type_of, shape_of
from shardy_py.kernels.fusion.transposes import packed, tiled_heroes
from shardy_py.kernels.launch.grid import Launch, shared_tile_bytes
from shardy_py.kernels.launch.packed import PackedTiles
from shardy_py.kernels.launch.tiled import TiledTranspose, tiled_transpose


def transpose_launch(fusion: Fusion, choice: Choice, device: DeviceSpec) -> Launch:
    """Return the launch of a transpose kernel."""
    transpose = choice.transpose
    assert transpose is not None
    form = packed(transpose)
    if form is not None:
        return PackedTiles(transpose, form).launch
    heroes = {hero.id: hero for hero in tiled_heroes(fusion, choice.heroes).values()}
    sizes = [bits_of(element_type_of(hero.results[0])) // 8 for hero in heroes.values()]
    return tiled_transpose(transpose, device, sizes=sizes).launch


def transpose_bytes(fusion: Fusion, choice: Choice, launch: Launch) -> int:
    """Return the bytes of shared memory that the tiles of a transpose kernel take."""
    elements = prod(transpose_tiles(choice, launch).tile)
    heroes = {hero.id: hero for hero in tiled_heroes(fusion, choice.heroes).values()}
    return sum(shared_tile_bytes(elements, element_type_of(hero.results[0])) for hero in heroes.values())


def transpose_tiles(choice: Choice, launch: Launch) -> PackedTiles | TiledTranspose:
    """Return the tiles of a transpose kernel with a launch."""
    transpose = choice.transpose
    assert transpose is not None
    form = packed(transpose)
    return TiledTranspose(transpose, launch.unroll) if form is None else PackedTiles(transpose, form)


def transpose_maps(fusion: Fusion, choice: Choice, launch: Launch) -> tuple[IndexingMap, ...]:
    """Return the maps of the loops of a transpose kernel, in their order."""
    tiles = transpose_tiles(choice, launch)
    found = tiled_heroes(fusion, choice.heroes)
    heroes = list({hero.id: hero for hero in found.values()}.values())
    read = [tiles.input_map(shape_of(hero.operands[0])) for hero in heroes]
    output = shape_of(heroes[0].results[0])
    if isinstance(tiles, TiledTranspose):
        return read[0], tiles.output_map(output)
    side = read[:1] if len(found) < len(fusion.roots) else []
    return *read, *side, tiles.squares, tiles.columns(output)

"""The tiles of a transpose kernel: packed ones where several elements fit a word, else tiled ones.

A tiled transpose says which element a thread reads, where it lies in the tile, and which one the thread writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from shardy_py.indexing import (
    Bound,
    Constant,
    Expression,
    IndexingMap,
    Interval,
    compose,
    dim,
    op_maps,
    simplify,
    symbol,
)
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.fusion import shape_of
from shardy_py.kernels.fusion.transposes import TILE, RootTransposes, Transpose
from shardy_py.kernels.launch.grid import BL_X, TH_X, THREADS, Launch, grid_bounds
from shardy_py.kernels.launch.packed import PackedTiles
from shardy_py.values import frozen


def transpose_launch(transposes: RootTransposes, device: DeviceSpec) -> Launch:
    """Return the launch of a transpose kernel.

    Threads take vectors where there are threads, shared memory and neighbours enough for them.
    """
    form = transposes.form
    if transposes.packed is not None:
        return PackedTiles(form, transposes.packed).launch
    plain = TiledTranspose(form)
    vector = _WORD_BITS // max(transposes.bits) if form.moves_minor else 1
    while vector > 1:
        square = vector * vector
        enough = prod(plain.counts) * THREADS >= square * device.threads
        fits = (TILE + 1) * TILE * sum(transposes.bits) // 8 * square <= device.shared_bytes
        if enough and fits and gcd(*form.swapped) % vector == 0:
            return TiledTranspose(form, vector).launch
        vector //= 2
    return plain.launch


def transpose_tiles(transposes: RootTransposes, launch: Launch) -> PackedTiles | TiledTranspose:
    """Return the tiles of a transpose kernel with a launch."""
    form, packed = transposes.form, transposes.packed
    return TiledTranspose(form, launch.unroll) if packed is None else PackedTiles(form, packed)


def transpose_maps(transposes: RootTransposes, launch: Launch, *, has_side: bool) -> tuple[IndexingMap, ...]:
    """Return the maps of the loops of a transpose kernel, in their order.

    Args:
        transposes: The transposes.
        launch: The grid.
        has_side: Whether there are roots that are not computed from a transpose.
    """
    tiles = transpose_tiles(transposes, launch)
    heroes = list({hero.id: hero for hero in transposes.heroes.values()}.values())
    read = [tiles.input_map(shape_of(hero.operands[0])) for hero in heroes]
    output = shape_of(heroes[0].results[0])
    if isinstance(tiles, TiledTranspose):
        return read[0], tiles.output_map(output)
    return *read, *(read[:1] if has_side else ()), tiles.squares, tiles.columns(output)


ROWS = 4
"""The rows of a tile that the threads of a block take in one step."""
_WORD_BITS = 32


@frozen
class TiledTranspose:
    """The tiles of a transpose.

    Mirrors ``TransposeFusion`` of XLA: a block reads a tile row by row, writes it transposed to shared memory, and
    reads it again row by row.

    Args:
        transpose: The transpose.
        vector: The elements in a row, and the rows, that a thread takes in one step.
    """

    transpose: Transpose
    vector: int = 1

    @property
    def _inner(self) -> int:
        """The neighbouring elements of a thread."""
        return self.vector if self.transpose.moves_minor else self.transpose.shape[-1]

    @property
    def block(self) -> tuple[int, ...]:
        """The part of the input that a block takes."""
        return self.transpose.block(self.vector)

    @property
    def tile(self) -> tuple[int, ...]:
        """The shape of the tile in shared memory."""
        return self.transpose.tile(self.vector)

    @property
    def counts(self) -> tuple[int, ...]:
        """The blocks along each dimension of the input."""
        return tuple(-(-size // part) for size, part in zip(self.transpose.shape, self.block, strict=True))

    @property
    def launch(self) -> Launch:
        """The grid."""
        return Launch((prod(self.counts), 1, 1), (THREADS, 1, 1), self.vector)

    def _offsets(self, block: Sequence[int]) -> list[Expression]:
        """Return the offset in a part of a tensor, which threads go through row by row."""
        step = TILE * self.vector * ROWS * (1 if self.transpose.moves_minor else self._inner)
        place = symbol(0) * step + dim(TH_X) * self._inner + symbol(1)
        parts = zip(op_maps.delinearized(place, block), block, strict=True)
        return [Constant(0) if size == 1 else offset for offset, size in parts]

    def _map(self, results: Sequence[Expression]) -> IndexingMap:
        ranges = (TILE * self.vector // ROWS, self._inner)
        bounds = tuple(Bound(Interval(0, size - 1)) for size in ranges)
        return IndexingMap(tuple(results), grid_bounds(self.launch), bounds)

    def input_map(self, shape: Sequence[int]) -> IndexingMap:
        """Return the map to the index that is read.

        Args:
            shape: The shape of the tensor, which has the elements of the input in the same order.
        """
        return self._global(self.transpose.shape, self.block, op_maps.delinearized(dim(BL_X), self.counts), shape)

    def output_map(self, shape: Sequence[int]) -> IndexingMap:
        """Return the map to the index that is written, of a tensor with the elements of the output."""
        numbers = op_maps.delinearized(dim(BL_X), self.counts)
        block = [self.block[number] for number in self.transpose.permutation]
        moved = [numbers[number] for number in self.transpose.permutation]
        return self._global(self.transpose.output, block, moved, shape)

    def _global(
        self, full_shape: Sequence[int], block: Sequence[int], numbers: Sequence[Expression], shape: Sequence[int]
    ) -> IndexingMap:
        parts = zip(numbers, block, self._offsets(block), strict=True)
        index = [number * size + offset for number, size, offset in parts]
        inside = ((result, Interval(0, size - 1)) for result, size in zip(index, full_shape, strict=True))
        map_ = self._map(index).with_constraints(inside)
        return simplify(compose(map_, op_maps.reshape(full_shape, shape)))

    @property
    def store(self) -> IndexingMap:
        """The map to the place in the tile where what was read is written."""
        offsets = self._offsets(self.block)
        first, other = self.transpose.swapped_dims
        offsets[first], offsets[other] = offsets[other], offsets[first]
        return self._map(offsets)

    @property
    def load(self) -> IndexingMap:
        """The map to the place in the tile that is read for the output."""
        return self._map(self._offsets(self.block))

"""Packed transposes: which elements of less than 32 bits a thread reads, keeps in the tile and writes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_py.indexing import (
    Bound,
    Constant,
    Expression,
    IndexingMap,
    Interval,
    Variable,
    compose,
    dim,
    op_maps,
    simplify,
    symbol,
)
from shardy_py.indexing.expressions import rewritten
from shardy_py.kernels.fusion.transposes import PackedTranspose, Transpose
from shardy_py.kernels.launch.grid import BL_X, TH_X, THREADS, Launch, grid_bounds
from shardy_py.values import frozen

LANES = 32
WARPS = THREADS // LANES
_Constraint = tuple[Expression, Interval]


@frozen
class PackedTiles:
    """The tiles of a packed transpose.

    Mirrors ``PackedTranspose`` of XLA: rows of a square tile are words of shared memory; squares of elements are
    transposed in registers.

    Args:
        transpose: The transpose.
        form: How it is packed.
    """

    transpose: Transpose
    form: PackedTranspose

    @property
    def _rank(self) -> int:
        return len(self.transpose.shape)

    @property
    def tile(self) -> tuple[int, int]:
        """The shape of the tile in shared memory."""
        return self.form.tile, self.form.tile

    @property
    def _output_block(self) -> list[int]:
        """The part of the output that a block takes."""
        fast, middle, slow = self.form.tiles
        sizes = [1] * self._rank
        sizes[self.transpose.permutation.index(self._rank - 1)] = fast
        if self._has_middle:
            sizes[-2] = middle
        sizes[-1] = slow
        return sizes

    @property
    def _has_middle(self) -> bool:
        """True if the dimension beside the output's fast one stays where it is: it has a share of the tile."""
        return self.form.sizes[1] > 1

    @property
    def counts(self) -> tuple[int, ...]:
        """The blocks along each dimension of the output."""
        return tuple(-(-size // part) for size, part in zip(self.transpose.output, self._output_block, strict=True))

    @property
    def launch(self) -> Launch:
        """The grid."""
        return Launch((prod(self.counts), 1, 1), (THREADS, 1, 1), self.form.vector)

    @property
    def _columns(self) -> int:
        return self.form.tiles[0] * self.form.tiles[1]

    def _map(self, results: Sequence[Expression], sizes: Sequence[int], inside: Sequence[_Constraint]) -> IndexingMap:
        ranges = tuple(Bound(Interval(0, size - 1)) for size in sizes)
        return simplify(IndexingMap(tuple(results), grid_bounds(self.launch), ranges).with_constraints(inside))

    def _inside(self, row: Expression, column: Expression) -> list[_Constraint]:
        """Return the constraints that a place is in the part of the tile that is in use."""
        return [(column, Interval(0, self._columns - 1)), (row, Interval(0, self.form.tiles[2] - 1))]

    def _swizzled(self, row: Expression, column: Expression) -> Expression:
        """Return the column of shared memory: rows are shifted so that the elements of a column are in all banks."""
        vector = self.form.vector
        return (column + row // vector * vector) % self.form.tile

    @property
    def _read(self) -> tuple[Expression, Expression, tuple[int, ...]]:
        """Row and column that a thread reads, and the sizes of its loops."""
        row = symbol(0) * WARPS + dim(TH_X) // LANES
        column = dim(TH_X) % LANES * self.form.vector + symbol(1)
        return row, column, (-(-self.form.tiles[2] // WARPS), self.form.vector)

    @property
    def _written(self) -> tuple[Expression, Expression, tuple[int, ...]]:
        """Row and column that a thread writes, and the sizes of its loops."""
        vector = self.form.vector
        row = dim(TH_X) % LANES * vector + symbol(2)
        column = (symbol(0) * WARPS + dim(TH_X) // LANES) * vector + symbol(1)
        return row, column, (-(-self._columns // (vector * WARPS)), vector, vector)

    def input_map(self, shape: Sequence[int]) -> IndexingMap:
        """Return the map to the index that is read.

        Args:
            shape: The shape of the tensor, which has the elements of the input in the same order.
        """
        numbers = op_maps.delinearized(dim(BL_X), self.counts)
        places = [self.transpose.permutation.index(number) for number in range(self._rank)]
        block = [self._output_block[place] for place in places]
        row, column, sizes = self._read
        offsets = self._offsets(row, column, self._rank - 1, self.transpose.permutation[-1])
        index = [numbers[place] * size + offset for place, size, offset in zip(places, block, offsets, strict=True)]
        map_ = self._map(index, sizes, self._inside(row, column))
        return simplify(compose(map_, op_maps.reshape(self.transpose.shape, shape)))

    def output_map(self, shape: Sequence[int]) -> IndexingMap:
        """Return the map to the index that is written, of a tensor with the elements of the output."""
        numbers = op_maps.delinearized(dim(BL_X), self.counts)
        row, column, sizes = self._written
        offsets = self._offsets(row, column, self.transpose.permutation.index(self._rank - 1), self._rank - 1)
        parts = zip(numbers, self._output_block, offsets, strict=True)
        index = [number * size + offset for number, size, offset in parts]
        map_ = self._map(index, sizes, self._inside(row, column))
        return simplify(compose(map_, op_maps.reshape(self.transpose.output, shape)))

    def _offsets(self, row: Expression, column: Expression, fast: int, slow: int) -> list[Expression]:
        """Return the offset within a block of a row and a column of the tile.

        Args:
            row: The row.
            column: The column.
            fast: The dimension that is the input's fast one.
            slow: The dimension that is the output's fast one.
        """
        offsets: list[Expression] = [Constant(0)] * self._rank
        offsets[fast] = column % self.form.tiles[0]
        offsets[slow] = row
        if self._has_middle:
            offsets[self._rank - 2] = column // self.form.tiles[0]
        return offsets

    @property
    def store(self) -> IndexingMap:
        """The map to the place in the tile where what was read is written."""
        row, column, sizes = self._read
        return self._map([row, self._swizzled(row, column)], sizes, self._inside(row, column))

    @property
    def load(self) -> IndexingMap:
        """The map to the place in the tile that is read for the output."""
        row, column, sizes = self._written
        return self._map([row, self._swizzled(row, column)], sizes, self._inside(row, column))

    @property
    def squares(self) -> IndexingMap:
        """The map of the loop over squares to the place of one in the tile; the elements of a square are dimensions."""
        return _with_dims(self.load, (1, 2))

    def columns(self, shape: Sequence[int]) -> IndexingMap:
        """Return the map of the loop over the elements of a square to the index that is written."""
        return _with_dims(self.output_map(shape), (0,))


def _with_dims(map_: IndexingMap, numbers: Sequence[int]) -> IndexingMap:
    """Return a map with some range variables turned into dimensions, which follow all others."""
    other_ranges = [number for number in range(len(map_.ranges)) if number not in numbers]
    values: dict[Variable, Expression] = {
        symbol(number): dim(len(map_.dims) + place) for place, number in enumerate(numbers)
    }
    values |= {symbol(number): symbol(place) for place, number in enumerate(other_ranges)}
    dims = (*map_.dims, *(map_.ranges[number] for number in numbers))
    constraints = [(rewritten(expression, values), interval) for expression, interval in map_.constraints]
    results = tuple(rewritten(result, values) for result in map_.results)
    moved = IndexingMap(results, dims, tuple(map_.ranges[number] for number in other_ranges))
    return simplify(moved.with_constraints(constraints))

"""Entry functions of transposes: a loop into shared memory, a barrier, a loop out of it.

Packed transposes hold words in shared memory and transpose squares of elements in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, builtin, func, tensor, vector
from xdsl.ir import SSAValue

from shardy_py.indexing import IndexingMap, compose, simplify
from shardy_py.kernels.dialect.constants import element_type, read_vector, zero, zeros
from shardy_py.kernels.dialect.memory_ops import AllocateSharedOp, SyncThreadsOp
from shardy_py.kernels.dialect.ops import LoopOp, YieldOp
from shardy_py.kernels.dialect.types import element_dtype, index_attribute, scalar_type
from shardy_py.kernels.elemental.epilogues import Epilogue, call_epilogue, emit_epilogue
from shardy_py.kernels.elemental.functions import FunctionEmitter, read_element
from shardy_py.kernels.elemental.scope import Scope
from shardy_py.kernels.entry.arguments import EntryBuilder
from shardy_py.kernels.entry.scopes import called_element, entry_scope
from shardy_py.kernels.fusion.fusion import shape_of
from shardy_py.kernels.fusion.transposes import RootTransposes
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.launch.packed import PackedTiles
from shardy_py.kernels.launch.transposes import TiledTranspose


def tiled_transpose_entry(functions: FunctionEmitter, transposes: RootTransposes, tiles: TiledTranspose) -> func.FuncOp:
    """Return the entry function of tiled transposes.

    Mirrors ``TransposeFusion`` of XLA. Side outputs are written in the first loop.
    """
    build = TransposeEntry(functions, transposes, tiles.launch)
    shared, outputs = _write_tiles(build, tiles)
    return build.entry.finished(_read_tiles(build, tiles, shared, outputs))


def _write_tiles(build: TransposeEntry, tiles: TiledTranspose) -> tuple[Sequence[SSAValue], list[SSAValue]]:
    """Return the tiles as all threads have written them, and the results so far."""
    entry, count = build.entry, len(build.heroes)
    read = tiles.input_map(shape_of(build.heroes[0].operands[0]))
    loop = LoopOp(read, entry.ids, [*build.allocate(tiles.tile), *build.side_targets])
    entry.builder.insert(loop)
    scope = entry_scope(build.functions, loop.body.block)
    place = scope.apply(tiles.store, entry.ids, loop.symbols)
    written = []
    for number, hero in enumerate(build.heroes):
        index = scope.apply(tiles.input_map(shape_of(hero.operands[0])), entry.ids, loop.symbols)
        element = build.operand_element(scope, number, index)
        written.append(scope.add(tensor.InsertOp(element, loop.carried[number], place)))
    written += build.insert_side_outputs(scope, tiles.input_map, loop.symbols, loop.carried[count:])
    scope.builder.insert(YieldOp(*written))
    return build.synchronize(loop.outputs[:count]), build.outputs(loop.outputs[count:])


def _read_tiles(
    build: TransposeEntry, tiles: TiledTranspose, shared: Sequence[SSAValue], outputs: Sequence[SSAValue]
) -> tuple[SSAValue, ...]:
    """Return the results, with what the epilogue computes of the tiles."""
    entry = build.entry
    build.emit_epilogue(tiles.output_map)
    loop = LoopOp(tiles.output_map(shape_of(build.heroes[0].results[0])), entry.ids, outputs)
    entry.builder.insert(loop)
    scope = entry_scope(build.functions, loop.body.block)
    place = tuple(scope.apply(tiles.load, entry.ids, loop.symbols))
    values = [read_element(scope, tile, place) for tile in shared]
    scope.builder.insert(YieldOp(*build.insert_roots(scope, loop.symbols, values, loop.carried)))
    return tuple(loop.outputs)


def packed_transpose_entry(functions: FunctionEmitter, transposes: RootTransposes, tiles: PackedTiles) -> func.FuncOp:
    """Return the entry function of packed transposes.

    Mirrors ``PackedTranspose`` of XLA: a loop into shared memory per transpose, then one for all side outputs, a
    barrier, and a loop over squares around one over their columns.
    """
    build = TransposeEntry(functions, transposes, tiles.launch)
    written = [_write_tile(build, tiles, number, tile) for number, tile in enumerate(build.allocate(tiles.tile))]
    outputs = build.outputs(_write_side_outputs(build, tiles))
    return build.entry.finished(_read_packed_tiles(build, tiles, build.synchronize(written), outputs))


def _write_tile(build: TransposeEntry, tiles: PackedTiles, number: int, tile: SSAValue) -> SSAValue:
    """Return the tile of a transpose with what it reads."""
    entry = build.entry
    loop = LoopOp(tiles.input_map(shape_of(build.heroes[number].operands[0])), entry.ids, [tile])
    entry.builder.insert(loop)
    scope = entry_scope(build.functions, loop.body.block)
    element = build.operand_element(scope, number, loop.indices)
    place = scope.apply(tiles.store, entry.ids, loop.symbols)
    scope.builder.insert(YieldOp(scope.add(tensor.InsertOp(element, loop.carried[0], place))))
    return loop.outputs[0]


def _write_side_outputs(build: TransposeEntry, tiles: PackedTiles) -> Sequence[SSAValue]:
    """Return the side outputs, written."""
    if not build.side:
        return ()
    entry = build.entry
    loop = LoopOp(tiles.input_map(shape_of(build.heroes[0].operands[0])), entry.ids, build.side_targets)
    entry.builder.insert(loop)
    scope = entry_scope(build.functions, loop.body.block)
    scope.builder.insert(YieldOp(*build.insert_side_outputs(scope, tiles.input_map, loop.symbols, loop.carried)))
    return loop.outputs


def _read_packed_tiles(
    build: TransposeEntry, tiles: PackedTiles, shared: Sequence[SSAValue], outputs: Sequence[SSAValue]
) -> tuple[SSAValue, ...]:
    """Return the results, with what the epilogue computes of the tiles."""
    entry, hero = build.entry, build.heroes[0]
    build.emit_epilogue(tiles.output_map)
    first = entry.add(arith.ConstantOp(index_attribute(0)))
    types = {tile.type: builtin.VectorType(element_type(tile), [tiles.form.vector] * 2) for tile in shared}
    empty = {type_: entry.add(arith.ConstantOp(zeros(square), square)) for type_, square in types.items()}
    outer = LoopOp(tiles.squares, [*entry.ids, first, first], outputs)
    entry.builder.insert(outer)
    scope = entry_scope(build.functions, outer.body.block)
    squares = [_square(scope, tile, outer.indices, empty[tile.type]) for tile in shared]
    inner = LoopOp(tiles.columns(shape_of(hero.results[0])), [*entry.ids, *outer.symbols], outer.carried)
    scope.builder.insert(inner)
    within = entry_scope(build.functions, inner.body.block)
    at = list(inner.symbols)
    values = [within.add(vector.ExtractOp(square, at, element_type(square))) for square in squares]
    symbols = [*outer.symbols, *inner.symbols]
    within.builder.insert(YieldOp(*build.insert_roots(within, symbols, values, inner.carried)))
    scope.builder.insert(YieldOp(*inner.outputs))
    return tuple(outer.outputs)


def _square(scope: Scope, tile: SSAValue, place: Sequence[SSAValue], square: SSAValue) -> SSAValue:
    """Return a square of the tile at a place, transposed: each row that is read becomes a column."""
    assert isinstance(square.type, builtin.VectorType)
    size, element = square.type.get_shape()[0], element_type(tile)
    padding, step = scope.add(arith.ConstantOp(zero(element))), scope.index(1)
    row, column = place
    for number in range(size):
        line = scope.add(read_vector(tile, [row, column], builtin.VectorType(element, [size]), padding))
        for position in range(size):
            item = scope.add(vector.ExtractOp(line, [position], element))
            square = scope.add(vector.InsertOp(item, square, [position, number]))
        row = scope.add(arith.AddiOp(row, step))
    return square


MapToShape = Callable[[Sequence[int]], IndexingMap]
"""Returns the map to the index in a tensor of a shape."""


class TransposeEntry:
    """An entry function of transposes while it is built.

    Roots behind a transpose go through its epilogue, all others are side outputs.

    Args:
        functions: The functions.
        transposes: The transposes.
        launch: The grid.
    """

    def __init__(self, functions: FunctionEmitter, transposes: RootTransposes, launch: Launch) -> None:
        self.functions = functions
        self.fusion = functions.fusion
        self.entry = EntryBuilder(functions.fusion, launch)
        self.heroes = tuple({hero.id: hero for hero in transposes.heroes.values()}.values())
        self.side = [number for number in range(len(self.fusion.roots)) if number not in transposes.heroes]
        self._behind = transposes.heroes

    @property
    def side_targets(self) -> list[SSAValue]:
        """The results that are side outputs, before anything is written."""
        return [self.entry.outputs[number] for number in self.side]

    def outputs(self, side: Sequence[SSAValue]) -> list[SSAValue]:
        """Return all results, the side outputs written."""
        written = dict(zip(self.side, side, strict=True))
        return [written.get(number, value) for number, value in enumerate(self.entry.outputs)]

    def allocate(self, tile: Sequence[int]) -> list[SSAValue]:
        """Allocate a tile for every transpose."""
        tiles: list[SSAValue] = []
        for hero in self.heroes:
            op = AllocateSharedOp(builtin.TensorType(scalar_type(element_dtype(hero.results[0])), tile))
            self.entry.builder.insert(op)
            tiles.append(op.output)
        return tiles

    def operand_element(self, scope: Scope, number: int, index: Sequence[SSAValue]) -> SSAValue:
        """Return an element of what a transpose reads."""
        operand = self.heroes[number].operands[0]
        return called_element(self.functions, scope, operand, self.entry.parameters, index)

    def insert_side_outputs(
        self, scope: Scope, input_map: MapToShape, symbols: Sequence[SSAValue], targets: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Write the elements of the side outputs at the places in memory where transposes read theirs."""
        results = []
        for number, target in zip(self.side, targets, strict=True):
            root = self.fusion.roots[number]
            index = scope.apply(input_map(shape_of(root)), self.entry.ids, symbols)
            element = called_element(self.functions, scope, root, self.entry.parameters, index)
            results.append(scope.add(tensor.InsertOp(element, target, index)))
        return results

    def synchronize(self, tiles: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Wait until all threads have written the tiles."""
        barrier = SyncThreadsOp(*tiles)
        self.entry.builder.insert(barrier)
        return barrier.outputs

    def emit_epilogue(self, output_map: MapToShape) -> None:
        """Emit the function from transposed elements to those of the roots; those of side outputs give what they get.

        Args:
            output_map: The map from threads, blocks and loops to the index in a transpose.
        """
        maps = {}
        for number, hero in self._behind.items():
            root, result = self.fusion.roots[number], hero.results[0]
            maps[root] = simplify(compose(output_map(shape_of(result)), self.fusion.same_place(result, root)))
        self._epilogue = Epilogue(tuple(hero.results[0] for hero in self.heroes), maps)
        self._epilogue_name = emit_epilogue(self.functions, self._epilogue)
        for number in self.side:
            emit_epilogue(self.functions, Epilogue.at_root(self.fusion.roots[number], self.fusion.roots[number]))

    def insert_roots(
        self, scope: Scope, symbols: Sequence[SSAValue], values: Sequence[SSAValue], targets: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Insert the roots that the epilogue computes from transposed elements, and return the results.

        Args:
            scope: Where the epilogue is called.
            symbols: The loops.
            values: An element of every transpose.
            targets: The results so far.
        """
        epilogue, parameters = self._epilogue, self.entry.parameters
        indices = [*self.entry.ids, *symbols]
        elements = call_epilogue(scope, self._epilogue_name, epilogue, parameters, indices, values)
        results = list(targets)
        for number in self._behind:
            root = self.fusion.roots[number]
            index = scope.apply(epilogue.maps[root], self.entry.ids, symbols)
            results[number] = scope.add(tensor.InsertOp(elements[root], results[number], index))
        return results

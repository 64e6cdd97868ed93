"""The entry function of packed transposes: words in shared memory, squares of elements transposed in registers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, builtin, func, tensor, vector
from xdsl.ir import SSAValue

from shardy_py.kernels.dialect.ops import LoopOp, YieldOp
from shardy_py.kernels.dialect.syntax import INDEX
from shardy_py.kernels.dialect.vectors import element_type, read_vector, zero, zeros
from shardy_py.kernels.elemental.builder import Scope
from shardy_py.kernels.elemental.functions import FunctionEmitter
from shardy_py.kernels.entry.scopes import entry_scope
from shardy_py.kernels.entry.transpose import TransposeEntry
from shardy_py.kernels.fusion.choose import Choice
from shardy_py.kernels.fusion.fusion import shape_of
from shardy_py.kernels.launch.packed import PackedTiles


def packed_transpose_entry(functions: FunctionEmitter, choice: Choice, tiles: PackedTiles) -> func.FuncOp:
    """Return the entry function of packed transposes.

    Mirrors ``PackedTranspose`` of XLA: a loop into shared memory per transpose, then one for all side outputs, a
    barrier, and a loop over squares around one over their columns.
    """
    build = TransposeEntry(functions, choice, tiles.launch)
    written = [_write_tile(build, tiles, number, tile) for number, tile in enumerate(build.allocate(tiles.tile))]
    outputs = build.outputs(_write_side_outputs(build, tiles))
    return build.entry.finished(_read_tiles(build, tiles, build.synchronize(written), outputs))


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


def _read_tiles(
    build: TransposeEntry, tiles: PackedTiles, shared: Sequence[SSAValue], outputs: Sequence[SSAValue]
) -> tuple[SSAValue, ...]:
    """Return the results, with what the epilogue computes of the tiles."""
    entry, hero = build.entry, build.heroes[0]
    build.emit_epilogue(tiles.output_map)
    first = entry.add(arith.ConstantOp(builtin.IntegerAttr(0, INDEX)))
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

"""The entry function of tiled transposes: a loop into shared memory, a barrier, a loop out of it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, tensor
from xdsl.ir import SSAValue

from shardy_py.kernels.dialect.ops import LoopOp, YieldOp
from shardy_py.kernels.elemental.functions import FunctionEmitter, read_element
from shardy_py.kernels.entry.scopes import entry_scope
from shardy_py.kernels.entry.transpose import TransposeEntry
from shardy_py.kernels.fusion.choose import Choice
from shardy_py.kernels.fusion.fusion import shape_of
from shardy_py.kernels.launch.tiled import TiledTranspose


def tiled_transpose_entry(functions: FunctionEmitter, choice: Choice, tiles: TiledTranspose) -> func.FuncOp:
    """Return the entry function of tiled transposes.

    Mirrors ``TransposeFusion`` of XLA. Side outputs are written in the first loop.
    """
    build = TransposeEntry(functions, choice, tiles.launch)
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

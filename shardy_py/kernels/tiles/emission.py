"""The emission of a fusion at the level of tiles: scalar bodies on tensors, moved as indexing maps say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import arith, builtin, tensor
from xdsl.ir import Block, Operation, Region, SSAValue

from shardy_py.indexing import Expression, IndexingMap, Interval
from shardy_py.indexing.expressions import ZERO
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.dialect.types import INDEX, element_dtype, scalar_type
from shardy_py.kernels.elemental.index_expressions import add_op, apply_map
from shardy_py.kernels.elemental.scalars import make_constant
from shardy_py.kernels.fusion.bodies import region_of
from shardy_py.kernels.fusion.combiners import starts_of
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.kernels.fusion.reductions import reduced_dims
from shardy_py.kernels.passes.base import erase_dead_ops
from shardy_py.kernels.tiles.dialect import EntryFuncOp, LayoutAttr, MaskOp, TileExtractOp, TileInsertOp, TileReturnOp
from shardy_py.kernels.tiles.element import NOT_A_TILE, TileElement, TileValue, element_of, refusal
from shardy_py.kernels.tiles.tensor_ops import (
    TENSOR_OPS,
    BroadcastInDimOp,
    IotaOp,
    RegionReturnOp,
    ReshapeOp,
    TensorReduceOp,
    TransposeOp,
)
from shardy_py.kernels.tiles.tiling import TensorTile, TileRead, power_of_two, read_through
from shardy_py.plugins import ElementBuilder, Registry

MOST_TILE_ELEMENTS = 1 << 20
"""The most elements of a tile, as in Triton."""

_Key = tuple[int, TensorTile]


def tile_module(fusion: Fusion, tiles: Sequence[TensorTile]) -> builtin.ModuleOp:
    """Return the module of a fusion whose entry function computes a tile of every root.

    Args:
        fusion: The fusion.
        tiles: The tile of every root.

    Raises:
        UnsupportedError: an op reads or computes elements that are not a tile.
    """
    values = (*fusion.parameters, *fusion.roots)
    types = [_buffer_type(value, fusion.layout_of(value)) for value in values]
    entry = EntryFuncOp(fusion.name, types, (tiles[0].count, 1))
    emitter = _TileEmitter(fusion, entry.body.block)
    buffers = entry.body.block.args[len(fusion.parameters) :]
    for root, tile, buffer in zip(fusion.roots, tiles, buffers, strict=False):
        content = emitter.value_at(root, tile)
        emitter.builder.insert(TileInsertOp(content, buffer, emitter.offsets(tile), tile.sizes, tile.strides))
    emitter.builder.insert(TileReturnOp())
    # Bytes of conditions that were taken as conditions again.
    erase_dead_ops(entry.body)
    return builtin.ModuleOp([entry])


def _buffer_type(value: Value, layout: Sequence[int]) -> builtin.MemRefType[Any]:
    return builtin.MemRefType(scalar_type(element_dtype(value)), shape_of(value), LayoutAttr(tuple(layout)))


def _tensor_type(value: Value, shape: Sequence[int]) -> builtin.TensorType[Any]:
    return builtin.TensorType(scalar_type(element_dtype(value)), shape)


def operand_tile(fusion: Fusion, op: Op, tile: TensorTile) -> TensorTile:
    """Return the tile of a reduction's operands: the reduced dimensions whole, padded to powers of two.

    Raises:
        UnsupportedError: the op does not reduce whole dimensions.
    """
    reduced = reduced_dims(fusion, op)
    if reduced is None:
        raise refusal("tile-op", "it does not reduce whole dimensions", op)
    kept = iter(zip(tile.offsets, tile.sizes, tile.strides, strict=True))
    axes: list[tuple[Expression, int, int]] = []
    for number, size in enumerate(shape_of(op.operands[0])):
        axes.append((ZERO, power_of_two(size), 1) if number in reduced else next(kept))
    offsets, sizes, strides = zip(*axes, strict=True)
    return TensorTile(tile.count, offsets, sizes, strides)


class _TileEmitter:
    """Emits tiles of the values of a fusion into a block.

    Args:
        fusion: The fusion.
        block: The body of the entry function.
    """

    def __init__(self, fusion: Fusion, block: Block) -> None:
        self.fusion = fusion
        self.builder = Builder(InsertPoint.at_end(block))
        self._tile_id = block.args[-1]
        self._buffers = {value.id: block.args[number] for number, value in enumerate(fusion.parameters)}
        self._known: dict[_Key, SSAValue] = {}
        self._offsets: dict[Expression, SSAValue] = {}
        self._reads: dict[tuple[IndexingMap, TensorTile], TileRead | None] = {}

    def add(self, op: Operation) -> SSAValue:
        """Add an op and return its first result."""
        return add_op(self.builder, op)

    def offsets(self, tile: TensorTile) -> list[SSAValue]:
        """Return where a tile begins."""
        for offset in tile.offsets:
            if offset not in self._offsets:
                map_ = IndexingMap((offset,), (tile.domain,))
                (self._offsets[offset],) = apply_map(self.builder, map_, [self._tile_id])
        return [self._offsets[offset] for offset in tile.offsets]

    def value_at(self, value: Value, tile: TensorTile) -> SSAValue:
        """Return a tile of a value, behind the tiles that it is computed from: chains may be long."""
        pending = [(value, tile)]
        while pending:
            current, at = pending[-1]
            op = self.fusion.producer(current)
            if (current.id, at) in self._known:
                pending.pop()
            elif op is None:
                self._known[current.id, at] = self._extracted(current, at)
            elif missing := [item for item in self._sources(op, at) if (item[0].id, item[1]) not in self._known]:
                pending += missing
            else:
                for result, content in zip(op.results, self._computed(op, at), strict=True):
                    self._known[result.id, at] = content
        return self._known[value.id, tile]

    def _extracted(self, value: Value, tile: TensorTile) -> SSAValue:
        source, type_ = self._buffers[value.id], _tensor_type(value, tile.sizes)
        return self.add(TileExtractOp(source, self.offsets(tile), tile.sizes, tile.strides, type_))

    def _sources(self, op: Op, tile: TensorTile) -> list[tuple[Value, TensorTile]]:
        """Return the tiles of operands that a tile of an op's results is computed from."""
        _check_elements(op)
        if self.fusion.facts[op.id].is_reduction:
            count = len(op.results)
            reduced = operand_tile(self.fusion, op, tile)
            if reduced.size > MOST_TILE_ELEMENTS:
                message = f"a tile of it has {reduced.size} elements, and {MOST_TILE_ELEMENTS} is the most"
                raise refusal("tile-size", message, op)
            return [(value, reduced if number < count else tile.scalar()) for number, value in enumerate(op.operands)]
        return [(value, self.read(op, number, tile).tile) for number, value in enumerate(op.operands)]

    def read(self, op: Op, number: int, tile: TensorTile) -> TileRead:
        """Return how a tile of an op's result is made of a tile of an operand.

        Raises:
            UnsupportedError: what it reads of the operand is not a tile.
        """
        map_ = self.fusion.facts[op.id].maps[number]
        if (map_, tile) not in self._reads:
            everywhere = [Interval(0, size - 1) for size in shape_of(op.results[0])]
            is_total = [bound.interval for bound in map_.dims] == everywhere
            self._reads[map_, tile] = read_through(tile, map_) if is_total else None
        read = self._reads[map_, tile]
        if read is None:
            message = f"what a tile of {list(tile.sizes)} of its result reads of operand {number} is not a tile"
            raise refusal("tile-op", message, op)
        return read

    def _computed(self, op: Op, tile: TensorTile) -> Sequence[SSAValue]:
        if self.fusion.facts[op.id].is_reduction:
            return self._reduced(op, tile)
        maps = self.fusion.facts[op.id].maps
        return _run_body(self.fusion.registry, _Body(self, tile), op, tile.sizes, maps)

    def moved(self, op: Op, number: int, tile: TensorTile) -> SSAValue:
        """Return the elements of an operand in the places of a tile of the result."""
        read, value = self.read(op, number, tile), op.operands[number]
        content = self._known[value.id, read.tile]
        places = [read.spread.index(digit) for digit in read.digits]
        order = sorted(range(len(places)), key=places.__getitem__)
        is_in_order = order == list(range(len(order)))
        if is_in_order and read.tile.size == tile.size:
            return self._reshaped(content, tile.sizes)
        content = self._reshaped(content, [digit.size for digit in read.digits])
        if not is_in_order:
            content = self.add(TransposeOp(content, order, _tensor_type(value, [read.digits[i].size for i in order])))
        shape = [digit.size for digit in read.spread]
        if len(places) != len(shape):
            content = self.add(BroadcastInDimOp(content, sorted(places), _tensor_type(value, shape)))
        return self._reshaped(content, tile.sizes)

    def _reshaped(self, content: SSAValue, shape: Sequence[int]) -> SSAValue:
        type_: Any = content.type
        if list(type_.get_shape()) == list(shape):
            return content
        result = builtin.TensorType(type_.element_type, shape)
        return self.add(ReshapeOp(operands=[content], result_types=[result]))

    def index_at(self, tile: TensorTile, dimension: int) -> SSAValue:
        """Return the index along a dimension of the elements of a tile."""
        type_ = builtin.TensorType(INDEX, tile.sizes)
        numbers = self.add(IotaOp(dimension, builtin.TensorType(builtin.i64, tile.sizes)))
        index = self.add(TENSOR_OPS["arith.index_cast"].create(operands=[numbers], result_types=[type_]))
        stride = tile.strides[dimension]
        if stride != 1:
            index = self.add(arith.MuliOp(index, self.add(_index_tensor(stride, tile.sizes))))
        offset = self.add(tensor.SplatOp(self.offsets(tile)[dimension], [], type_))
        return self.add(arith.AddiOp(index, offset))

    def _reduced(self, op: Op, tile: TensorTile) -> Sequence[SSAValue]:
        """Combine the elements of tiles, those behind the end of a reduced dimension as neutral values."""
        count, fusion = len(op.results), self.fusion
        starts = starts_of(fusion, op)
        if starts is None:
            message = "its elements must be combined in their order, or there is no neutral value"
            raise refusal("tile-op", message, op)
        source, shape = operand_tile(fusion, op, tile), shape_of(op.operands[0])
        dims = reduced_dims(fusion, op) or ()
        bounds = [shape[number] if number in dims else size for number, size in enumerate(source.sizes)]
        contents = [self._known[value.id, source] for value in op.operands[:count]]
        inits = [self._known[value.id, tile.scalar()] for value in op.operands[count:]]
        if bounds != list(source.sizes):
            neutral = [self._neutral(*pair) for pair in zip(starts, inits, strict=True)]
            pairs = zip(contents, neutral, strict=True)
            contents = [self.add(MaskOp(content, bounds, value)) for content, value in pairs]
        block = Block(arg_types=[value.type for value in (*inits, *inits)])
        inner = _Region(fusion.registry, op, 0, block.args, (), Builder(InsertPoint.at_end(block)))
        inner.builder.insert(RegionReturnOp(operands=[inner.results()]))
        types = [_tensor_type(value, tile.sizes) for value in op.results]
        reduce = TensorReduceOp([*contents, *inits], dims, types, Region(block))
        self.builder.insert(reduce)
        return reduce.results

    def _neutral(self, start: int | None, init: SSAValue) -> SSAValue:
        """Return the value that changes nothing, as a scalar: a number, or the initial value."""
        element = element_of(init)
        if start is None:
            return self.add(tensor.ExtractOp(init, [], element))
        return self.add(make_constant(start, str(element)))


def _index_tensor(value: int, shape: Sequence[int]) -> Operation:
    type_: Any = builtin.TensorType(INDEX, shape)
    return arith.ConstantOp(builtin.DenseIntOrFPElementsAttr.from_list(type_, [value]), type_)


def _check_elements(op: Op) -> None:
    for value in (*op.operands, *op.results):
        if element_type_of(value).startswith("complex"):
            raise refusal("tile-op", "tiles have no complex elements", op)


def _run_body(
    registry: Registry, source: _Body | _Region, op: Op, shape: Sequence[int], maps: Sequence[IndexingMap]
) -> list[SSAValue]:
    """Run the scalar body of an op on tensors, and return the tiles of its results."""
    emission = registry.get_emission(op)
    if emission is None:
        raise refusal("no-emission", "it has no scalar body", op)
    contents = emission(cast(ElementBuilder, TileElement(source, op, shape, maps)), op)
    return [cast(TileValue, content).value for content in contents]


class _Body:
    """Tiles that the scalar body of an op of the fusion reads; implements `TileSource`."""

    def __init__(self, emitter: _TileEmitter, tile: TensorTile) -> None:
        self.add = emitter.add
        self._emitter = emitter
        self._tile = tile
        self._moved: dict[int, SSAValue] = {}

    def operand_tile(self, op: Op, number: int, indices: Sequence[TileValue] | None) -> SSAValue:
        """Return the elements of an operand in the places of the tile."""
        if indices:
            raise refusal("tile-op", NOT_A_TILE, op)
        if number not in self._moved:
            self._moved[number] = self._emitter.moved(op, number, self._tile)
        return self._moved[number]

    def index_tile(self, op: Op, dimension: int) -> SSAValue:
        """Return the index of the elements of the tile."""
        return self._emitter.index_at(self._tile, dimension)

    def region_tile(self, op: Op, region: int, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """Return what a region computes of tiles."""
        emitter, shape = self._emitter, self._tile.sizes
        return _Region(emitter.fusion.registry, op, region, arguments, shape, emitter.builder).results()


class _Region:
    """Tensors of one shape that ops in a region read; implements `TileSource`."""

    def __init__(
        self,
        registry: Registry,
        op: Op,
        region: int,
        arguments: Sequence[SSAValue],
        shape: Sequence[int],
        builder: Builder,
    ) -> None:
        inner, self._returned = region_of(op, region)
        self._known: dict[int, SSAValue] = dict(zip((value.id for value in inner), arguments, strict=True))
        self._registry = registry
        self._of = op
        self._shape = shape
        self.builder = builder

    def results(self) -> list[SSAValue]:
        """Return what the region gives back."""
        return [self._value(value) for value in self._returned]

    def add(self, op: Operation) -> SSAValue:
        """Add an op and return its first result."""
        return add_op(self.builder, op)

    def _value(self, value: Value) -> SSAValue:
        if value.id not in self._known:
            op = value.defining_op
            if op is None:
                raise refusal("tile-op", "its region reads a value from outside", self._of)
            contents = _run_body(self._registry, self, op, self._shape, ())
            self._known |= {result.id: content for result, content in zip(op.results, contents, strict=True)}
        return self._known[value.id]

    def operand_tile(self, op: Op, number: int, indices: Sequence[TileValue] | None) -> SSAValue:
        """Return an operand."""
        return self._value(op.operands[number])

    def index_tile(self, op: Op, dimension: int) -> SSAValue:
        """Refuse an index: elements of a region have none."""
        raise refusal("tile-op", "a region has no indices", op)

    def region_tile(self, op: Op, region: int, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """Return what a region inside computes."""
        return _Region(self._registry, op, region, arguments, self._shape, self.builder).results()

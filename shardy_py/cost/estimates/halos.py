"""Halos: the elements at the bounds of shards that windows read from the neighbours.

As in XLA's spmd_partitioner_util.cc::ExchangeHaloAndGetValidData, one dimension after the other: between neighbours a
device sends all from the bound of its shard to the last element that another one reads, and what lies outside of the
tensor is masked; see `shardy_py.cost.estimates.halos`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from math import prod

from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.ir.graph.op_names import ALL_GATHER, ALL_SLICE, ALL_TO_ALL, COLLECTIVE_PERMUTE
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.costs import Window
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.values import frozen


@frozen
class Halo:
    """Elements that each device gets from others along one dimension.

    Args:
        operand: The number of the operand.
        bytes: The bytes, at most.
        axes: The axes of the dimension.
        mesh: The mesh.
        is_gathered: Whether it gets all that the others have.
        read_bytes: The bytes that a device reads of what is gathered, or of its own shard; for the first halo only.
    """

    operand: int
    bytes: int
    axes: tuple[AxisRef, ...]
    mesh: Mesh
    is_gathered: bool
    read_bytes: int


def halo_operations(op: Op, windows: tuple[Window, ...], sizes: LocalSizes) -> float:
    """Return the operations that put padding in its place in shards with their halos, and choose between halos."""
    operations = 0.0
    for window, row, reach in _divided(op, windows, sizes):
        operations += row * reach.exchange.selected
        if window.is_padded:
            operations += row * reach.mask_operations * reach.span
    return operations


def halos_of(op: Op, windows: tuple[Window, ...], sizes: LocalSizes) -> Iterator[Halo]:
    """Yield the halos of an op, those of one dimension one after the other."""
    for window, row, reach in _divided(op, windows, sizes):
        operand = op.operands[window.operand]
        sharding = sizes.sharding(operand)
        mesh = None if sharding is None else sizes.mesh(sharding)
        if sharding is None or mesh is None:
            continue
        width = sizes.bytes(operand) // max(1, prod(sizes.shape(operand)))
        axes, exchange = sharding.dim_shardings[window.operand_dim].axes, reach.exchange
        read = reach.span if exchange.is_gathered else min(reach.span, reach.part)
        for number, elements in enumerate(exchange.sent):
            read_bytes = read * row * width if window.is_joined and not number else 0
            yield Halo(window.operand, elements * row * width, axes, mesh, exchange.is_gathered, read_bytes)


def _divided(op: Op, windows: tuple[Window, ...], sizes: LocalSizes) -> Iterator[tuple[Window, int, Reach]]:
    """Yield windows along sharded dimensions, the elements of a row across these, with their halos, and the reach."""
    if all(window.is_padded and _is_whole(op, window, sizes) for window in windows):
        return
    shapes = {window.operand: list(sizes.shape(op.operands[window.operand])) for window in windows}
    out, out_parts = static_shape(op.results[0].type), sizes.shape(op.results[0])
    for window in windows:
        operand, dim = op.operands[window.operand], window.operand_dim
        sharding, shape, part = sizes.sharding(operand), static_shape(operand.type), shapes[window.operand]
        mesh = None if sharding is None else sizes.mesh(sharding)
        if sharding is None or mesh is None or mesh.is_maximal or not shape or not out:
            continue
        count = axes_size(sharding.dim_shardings[dim].axes, mesh)
        out_part = out_parts[window.result_dim]
        if count == 1 or out_part == out[window.result_dim]:
            continue
        reach = Reach(window, shape[dim], part[dim], out_part, count)
        yield window, prod(part[:dim]) * prod(part[dim + 1 :]), reach
        part[dim] = reach.span


def _is_whole(op: Op, window: Window, sizes: LocalSizes) -> bool:
    """Return whether each device has all that a window reads, and slices its part of it for the op."""
    return is_sliced_from_whole(op.operands[window.operand], (window.operand_dim,), sizes)


_MASK_SIDE, _MASK_BOTH = 3, 5
"""Operations per element: its place, whether that is padding at one side or at one of both, and a selection."""


@frozen
class Exchange:
    """The transfers between devices along one dimension, and the work on what they bring.

    Args:
        sent: The elements of each permutation; where all is gathered, those that a device gets of the others.
        selected: The elements that are chosen between what came from different devices.
        is_gathered: Whether every device gets all shards.
    """

    sent: tuple[int, ...]
    selected: int = 0
    is_gathered: bool = False


@frozen(slots=False)
class Reach:
    """The reach of the windows of each shard of the result over the shards of the operand.

    Args:
        window: The window.
        size: The elements of the dimension.
        part: The elements of a shard of it.
        out_part: The elements of a shard of the result.
        count: The number of shards.
    """

    window: Window
    size: int
    part: int
    out_part: int
    count: int

    @cached_property
    def span(self) -> int:
        """The elements that a shard has with its halos."""
        window = self.window
        return -(-((self.out_part - 1) * window.stride + window.size) // window.dilation)

    @property
    def _shards(self) -> Iterable[int]:
        """The shards among which the one is that reads most to either side, whatever the number of all shards.

        As dilations repeat, each so many shards what a shard reads beyond its own elements grows, or shrinks, evenly.
        """
        ends = self.window.dilation + 1
        return range(self.count) if 2 * ends >= self.count else (*range(ends), *range(self.count - ends, self.count))

    @cached_property
    def beyond(self) -> tuple[int, int, int, int]:
        """The most elements that a shard reads to the left and right of its own, then what one with neighbours reads.

        What is negative is missing from the shard's own elements.
        """
        lefts = {shard: shard * self.part - self.start(shard) for shard in self._shards}
        rights = {shard: self.end(shard) - (shard + 1) * self.part for shard in self._shards}
        left = max(lefts[shard] for shard in lefts if shard)
        right = max(rights[shard] for shard in rights if shard != self.count - 1)
        return max(lefts.values()), max(rights.values()), left, right

    def start(self, shard: int) -> int:
        """Return the first element that a shard reads; below zero in padding."""
        window = self.window
        return -(-(shard * self.out_part * window.stride - window.low) // window.dilation)

    def end(self, shard: int) -> int:
        """Return the number behind the last element that a shard reads."""
        window = self.window
        step, last = self.out_part * window.stride, window.size - 1 - window.low - window.stride
        return ((shard + 1) * step + last) // window.dilation + 1

    @property
    def exchange(self) -> Exchange:
        """The transfers between the shards."""
        return _exchange_of(self)

    @property
    def mask_operations(self) -> int:
        """The operations per element that put padding in its place."""
        window = self.window
        last = (self.count * self.out_part - 1) * window.stride - window.low + window.size
        sides = (window.low > 0) + (last > (self.size - 1) * window.dilation + 1)
        return 0 if self._is_sliced_whole else (0, _MASK_SIDE, _MASK_BOTH)[sides]

    @property
    def _is_sliced_whole(self) -> bool:
        """True where shards reach so far that all of them are gathered and sliced, without a mask."""
        window, step, held = self.window, self.out_part * self.window.stride, self.part * self.window.dilation
        left = max(shard * (held - step) + window.low for shard in (1, self.count - 1))
        right = max(
            (shard + 1) * (step - held) + window.size - window.stride - window.low for shard in (0, self.count - 2)
        )
        return left + right + held >= held * self.count and max(left, right) > held


@lru_cache(maxsize=4096)
def _exchange_of(reach: Reach) -> Exchange:
    """Return the transfers between shards, which prices and operations both follow from, for every schedule."""
    part, count = reach.part, reach.count
    most_left, most_right, left, right = reach.beyond
    gathered = Exchange(((count - 1) * part,), is_gathered=True)
    if max(most_left, most_right) > 2 * reach.span:
        return gathered if 2 * reach.span >= count * part else _compact(reach)
    reaches_all = left + right + part >= part * count and max(left, right) > part
    begin, end = -most_left, part + most_right
    if reaches_all or begin >= end:
        return gathered
    return Exchange((*_one_side(left, part, end, count - 1), *_one_side(right, part, part - begin, count - 1)))


def _one_side(halo: int, part: int, end: int, others: int) -> list[int]:
    """Return the elements that come from each of the shards at one side, the farthest first.

    Args:
        halo: The most elements that a shard reads at that side; what is beyond all shards is padding.
        part: The elements of a shard.
        end: The elements between the bound of the shard and the last one that is read, seen from that side.
        others: The number of shards that there can be at one side.
    """
    elements = []
    for distance in reversed(range(min(-(-halo // part), others))):
        if -(distance + 1) * part < end:
            elements.append(min(halo - part * distance, part) - max(-distance * part - end, 0))
    return elements


@frozen
class _Piece:
    """Successive elements that a shard reads of another one, of itself or of the padding.

    Args:
        shard: The shard that reads.
        source: The shard that has them; None for padding.
        begin: The first element within the source.
        end: The one behind the last.
        number: The number of the piece among those of the shard.
        offset: Its place among what the shard reads.
    """

    shard: int
    source: int | None
    begin: int
    end: int
    number: int
    offset: int


def _compact(reach: Reach) -> Exchange:
    """Return the exchange in which devices send only what others read, each once per permutation."""
    pieces = [_pieces(reach, shard) for shard in range(reach.count)]
    sent, carried_by = _permutations(reach, [piece for shard_pieces in pieces for piece in shard_pieces])
    selected = 0
    for number in range(max(map(len, pieces))):
        same = [shard_pieces[number] for shard_pieces in pieces if number < len(shard_pieces)]
        local_pieces = [piece for piece in same if piece.source == piece.shard]
        lengths = [sent[carried_by[piece]] for piece in same if piece in carried_by]
        lengths += [piece.end - piece.begin for piece in same if piece.source is None]
        if local_pieces:
            lengths.append(max(piece.end for piece in local_pieces) - min(piece.begin for piece in local_pieces))
        origins = {carried_by[piece] for piece in same if piece in carried_by}
        selected += max(lengths) * max(0, len(origins) + bool(local_pieces) - 1)
    return Exchange(tuple(sent), selected)


def _pieces(reach: Reach, shard: int) -> list[_Piece]:
    """Return what a shard reads, in order, divided at the bounds of shards."""
    pieces: list[_Piece] = []
    start, end, part = reach.start(shard), reach.end(shard), reach.part
    at = start
    while at < end:
        if 0 <= at < reach.size:
            source, begin = divmod(at, part)
            limit = min(end, at - begin + part)
            pieces.append(_Piece(shard, source, begin, begin + limit - at, len(pieces), at - start))
        else:
            limit = min(end, 0) if at < 0 else end
            pieces.append(_Piece(shard, None, 0, limit - at, len(pieces), at - start))
        at = limit
    return pieces


def _permutations(reach: Reach, pieces: Sequence[_Piece]) -> tuple[list[int], dict[_Piece, int]]:
    """Return the elements of each permutation, and the number of the one that brings each piece."""
    waiting: list[list[_Piece]] = [[] for _ in range(reach.count)]
    for piece in sorted(pieces, key=lambda piece: (piece.number, piece.shard)):
        if piece.source is not None and piece.source != piece.shard:
            waiting[piece.source].append(piece)
    for queue in waiting:
        queue.sort(key=lambda piece: piece.offset)
    sent: list[int] = []
    carried_by: dict[_Piece, int] = {}
    while waiting := [queue for queue in waiting if queue]:
        begin, end, readers = reach.part, 0, set[int]()
        for queue in waiting:
            if readers and (queue[0].shard in readers or _is_apart(queue[0], begin, end, reach.part)):
                continue
            piece = queue.pop(0)
            carried_by[piece] = len(sent)
            readers.add(piece.shard)
            begin, end = min(begin, piece.begin), max(end, piece.end)
        sent.append(end - begin)
    return sent, carried_by


def _is_apart(piece: _Piece, begin: int, end: int, part: int) -> bool:
    """Return whether a piece is at one end of its shard, and what a permutation has is at the other."""
    if piece.begin == 0:
        return begin > piece.end and end == part
    return piece.end == part and end < piece.begin and begin == 0


_STEPS = frozenset((ALL_GATHER, ALL_SLICE, ALL_TO_ALL, COLLECTIVE_PERMUTE))


def reshards_before(value: Value) -> Iterator[Op]:
    """Yield the ops that reshard a tensor into a value, the last one first."""
    producer = value.defining_op
    while producer is not None and producer.name in _STEPS:
        yield producer
        producer = producer.operands[0].defining_op


def is_sliced_from_whole(value: Value, dims: Iterable[int], sizes: LocalSizes) -> bool:
    """Return whether each device had some dimensions whole, and sliced its part of them last."""
    producer = value.defining_op
    if producer is None or producer.name != ALL_SLICE:
        return False
    shape = static_shape(producer.operands[0].type)
    return shape is not None and all(sizes.shape(producer.operands[0])[dim] == shape[dim] for dim in dims)

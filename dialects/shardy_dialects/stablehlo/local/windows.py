"""Windows of a sharded dimension: the elements that each device needs, its own ones and those of other devices.

Pieces go by collective permutes, of no more elements than the largest piece; where all elements of a dimension would
move, it is gathered.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.local.writer import Writer
from shardy_py.ir.graph.program import Value
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.sharding.shard_moves import Move, Round, Run, covered, own_runs, plan_rounds, sent_elements
from shardy_py.sharding.shard_positions import replica_groups
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define, frozen


@frozen
class Cut:
    """A sharded dimension of a tensor.

    Args:
        shard: The op on one device.
        sharding: The sharding of the tensor.
        dim: The number of the dimension.
    """

    shard: Shard
    sharding: TensorSharding
    dim: int

    @property
    def parts(self) -> int:
        """The number of parts."""
        return self.shard.parts(self.sharding, self.dim)

    def by_device(self, table: Sequence[int]) -> list[int]:
        """Return the entries of a table of parts for all devices."""
        return [table[position] for position in self.shard.positions(self.sharding, self.dim)]

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups of devices that have the parts, in their order."""
        return replica_groups(self.shard.mesh(self.sharding), self.sharding.of_dimension(self.dim).axes)

    def pairs(self, moves: Sequence[Move]) -> list[tuple[int, int]]:
        """Return the pairs of devices for moves between parts."""
        return sorted((group[move.source], group[move.target]) for group in self.groups for move in moves)

    def runs(self, number: int, dim: int | None = None, shift: int = 0) -> list[list[Run]]:
        """Return the elements that each part has of an operand that is sharded as this dimension, or not at all.

        Args:
            number: The number of the operand.
            dim: Its dimension, by default the one of this number.
            shift: The coordinate of its first element.
        """
        dim, shard = self.dim if dim is None else dim, self.shard
        size, part = shard.op.operands[number].shape[dim], shard.operands[number].shape[dim]
        if shard.parts(shard.operand_shardings[number], dim) == 1:
            return [[Run(shift, size)] for _ in range(self.parts)]
        return own_runs(size, self.parts, part, shift)


@define
class WindowFetcher:
    """Brings a window of a dimension to each device.

    Attributes:
        cut: A dimension that is sharded as the windows are.
        dim: The dimension of what is fetched.
        size: The size of the windows.
        fill: The scalar for places that no part has elements for; None where they do not matter.
    """

    cut: Cut
    dim: int
    size: int
    fill: Value | None = None

    def fetch(self, value: Value, held: Sequence[Sequence[Run]], starts: Sequence[int]) -> Value:
        """Return the window of the device.

        Args:
            value: What the device has.
            held: Where the elements lie in it, for each part.
            starts: The coordinate at which the window of each part begins.
        """
        rounds = plan_rounds(held, starts, self.size)
        length = value.shape[self.dim]
        if sent_elements(rounds) > (self.cut.parts - 1) * length:
            value, held = self._gathered(value, held, length)
            rounds = plan_rounds(held, starts, self.size)
        if not rounds:
            return self._writer.filled(value, self.dim, self.size, self.fill)
        limits = covered(rounds, self.cut.parts)
        if self.fill is None or all(limit == (0, self.size) for limit in limits):
            return self._joined(value, rounds)
        wide = self._joined(value, rounds)
        rest = self._writer.filled(value, self.dim, self.size, self.fill)
        return self._chosen(limits, wide, rest)

    @property
    def _writer(self) -> Writer:
        return Writer(self.cut.shard.emit, self.cut.shard.ops)

    def _gathered(self, value: Value, held: Sequence[Sequence[Run]], length: int) -> tuple[Value, list[list[Run]]]:
        """Return the gathered elements of all parts, and the offsets of the runs in them."""
        gathered = self.cut.shard.ops.all_gather(self.cut.shard.emit, value, self.dim, self.cut.groups)
        runs = [
            Run(run.start, run.size, part * length + run.place)
            for part, runs_of_part in enumerate(held)
            for run in runs_of_part
        ]
        return gathered, [runs] * self.cut.parts

    def _joined(self, value: Value, rounds: Sequence[Round]) -> Value:
        """Return a window with the pieces of all rounds; what no piece fills is any value."""
        layout = _static_layout(rounds, self.size)
        if layout is not None:
            pieces = [(place, self._sent(value, rounds[number], rounds[number].size)) for place, number in layout]
            return self._writer.joined(pieces, self.dim, self.size)
        result: Value | None = None
        for item in rounds:
            size = min(item.size, value.shape[self.dim])
            places, limits = [0] * self.cut.parts, [(0, 0)] * self.cut.parts
            starts = self._starts(item, value.shape[self.dim], size)
            for move in item.moves:
                places[move.target] = move.place - (move.start - starts[move.source])
                limits[move.target] = (move.place, move.place + move.size)
            known = {move.target for move in item.moves}
            common = places[item.moves[0].target]
            places = [place if part in known else common for part, place in enumerate(places)]
            piece = self._placed(self._sent(value, item, size), places)
            result = piece if result is None else self._chosen(limits, piece, result)
        if result is None:
            raise no_local_form("no part has elements of the windows")
        return result

    def _starts(self, item: Round, length: int, size: int) -> list[int]:
        """Return the place from which each part sends, so that all of the piece lies in what it has."""
        starts = {move.source: min(move.start, length - size) for move in item.moves}
        common = starts[item.moves[0].source]
        return [starts.get(part, common) for part in range(self.cut.parts)]

    def _sent(self, value: Value, item: Round, size: int) -> Value:
        """Return the piece that comes to the device in a round."""
        starts = self._starts(item, value.shape[self.dim], size)
        piece = self._writer.part(value, self.dim, self.cut.by_device(starts), size)
        if item.is_local:
            return piece
        return self.cut.shard.ops.collective_permute(self.cut.shard.emit, piece, self.cut.pairs(item.moves))

    def _placed(self, piece: Value, places: Sequence[int]) -> Value:
        """Return a window in which a piece begins at a place."""
        dim = self.dim
        low = max(0, *places)
        high = max(0, *(self.size - place - piece.shape[dim] for place in places))
        if len(set(places)) == 1:
            return self._writer.padded(piece, dim, places[0], self.size - places[0] - piece.shape[dim])
        wide = self._writer.padded(piece, dim, low, high)
        return self._writer.part(wide, dim, self.cut.by_device([low - place for place in places]), self.size)

    def _chosen(self, limits: Sequence[tuple[int, int]], inside: Value, outside: Value) -> Value:
        """Return a window with one value between two places, and another one outside."""
        if all(limit == (0, self.size) for limit in limits):
            return inside
        lows, highs = (self.cut.by_device(column) for column in zip(*limits, strict=True))
        mask = self._writer.mask(self.size, lows, highs)
        return self._writer.select(mask, self.dim, inside, outside)


def _static_layout(rounds: Sequence[Round], size: int) -> list[tuple[int, int]] | None:
    """Return the places of the pieces of all rounds, with the number of the round, where they are those of all parts.

    Args:
        rounds: The rounds.
        size: The size of the windows.
    """
    layout = []
    for number, item in enumerate(rounds):
        places = {(move.start, move.place) for move in item.moves}
        if len(places) != 1:
            return None
        layout.append((next(iter(places))[1], number))
    layout.sort()
    ends = [0]
    for place, number in layout:
        if place < ends[-1]:
            return None
        ends.append(place + rounds[number].size)
    return layout if ends[-1] <= size else None


def cut_dims(shard: Shard) -> list[int]:
    """Return the dimensions that are sharded in an operand or in a result."""
    shardings = (*shard.operand_shardings, *shard.result_shardings)
    return sorted({dim for sharding in shardings for dim in shard.sharded_dims(sharding)})


def cut_of(shard: Shard, dim: int) -> Cut:
    """Return a sharded dimension along which operands of the rank of the result are sharded as it is, or whole.

    Raises:
        CannotLocalize: an operand is sharded along other axes.
    """
    result = shard.result_shardings[0]
    operands = [
        sharding
        for value, sharding in zip(shard.op.operands, shard.operand_shardings, strict=True)
        if len(value.shape) == len(shard.op.results[0].shape)
    ]
    return common_cut(shard, [(sharding, dim) for sharding in operands], (result, dim))


def common_cut(
    shard: Shard,
    operands: list[tuple[TensorSharding | None, int]],
    result: tuple[TensorSharding | None, int],
) -> Cut:
    """Return a sharded dimension of a result, along which operands are sharded as the result is, or whole.

    Args:
        shard: The op on one device.
        operands: The shardings of operands, each with the number of the dimension.
        result: The sharding of the result, with the number of the dimension.

    Raises:
        CannotLocalize: an operand is sharded along other axes, or the result is not sharded.
    """
    sharding, dim = result
    if sharding is None or shard.parts(sharding, dim) == 1:
        raise no_local_form(f"dimension {dim} of the result is whole, and that of an operand is sharded")
    result_positions = shard.positions(sharding, dim)
    for other, number in operands:
        if other is not None and shard.parts(other, number) > 1 and shard.positions(other, number) != result_positions:
            raise no_local_form(f"dimension {dim} of an operand and of the result are sharded along different axes")
    return Cut(shard, sharding, dim)

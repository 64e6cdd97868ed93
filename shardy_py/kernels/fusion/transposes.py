"""Transposes that go through shared memory, tile by tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import prod

from shardy_py.indexing import Variable
from shardy_py.ir.graph.program import Op
from shardy_py.kernels.device import shared_tile_bytes
from shardy_py.kernels.fusion.fusion import Fusion, bits_of, element_type_of
from shardy_py.values import frozen

TILE = 32
MIN_TILED = 16
MIN_TILED_SHORT = 8
MIN_TILED_AREA = 8192


@frozen(slots=False)
class Transpose:
    """A transpose without dimensions of size one, neighbours that stay together merged.

    Args:
        shape: The shape of the input.
        permutation: The input's dimension of every dimension of the output.
        bits: The bits of an element.
    """

    shape: tuple[int, ...]
    permutation: tuple[int, ...]
    bits: int

    @property
    def output(self) -> tuple[int, ...]:
        """The shape of the output."""
        return tuple(self.shape[number] for number in self.permutation)

    @property
    def moves_minor(self) -> bool:
        """True if the minor dimension changes."""
        return bool(self.permutation) and self.permutation[-1] != len(self.permutation) - 1

    @cached_property
    def swapped_dims(self) -> tuple[int, int]:
        """The two dimensions of the input that a tile swaps: its fast one and that of the output.

        Where the fastest dimension stays, these are the ones next to it.
        """
        place = -1 if self.moves_minor else -2
        return len(self.shape) + place, self.permutation[place]

    @property
    def swapped(self) -> tuple[int, int]:
        """The sizes of the two dimensions that a tile swaps."""
        first, second = self.swapped_dims
        return self.shape[first], self.shape[second]

    def block(self, vector: int) -> tuple[int, ...]:
        """Return the part of the input that a block of threads takes.

        Args:
            vector: The elements in a row, and the rows, that a thread takes in one step.
        """
        sizes = [1] * len(self.shape)
        if not self.moves_minor:
            sizes[-1] = self.shape[-1]
        for number in self.swapped_dims:
            sizes[number] = TILE * vector
        return tuple(sizes)

    def tile(self, vector: int) -> tuple[int, ...]:
        """Return the shape of a tile in shared memory: longer rows keep the elements of a column in different banks."""
        sizes = list(self.block(vector))
        sizes[self.swapped_dims[0]] += 1
        return tuple(sizes)

    @property
    def is_tiled(self) -> bool:
        """True if the transpose is tiled through shared memory."""
        if len(self.shape) < 2 or self.bits < 8:
            return False
        first, second = self.swapped
        if self.moves_minor:
            is_long = first >= MIN_TILED and second >= MIN_TILED
            is_short = min(first, second) >= MIN_TILED_SHORT and first * second >= MIN_TILED_AREA
            return is_long or is_short
        minor = self.bits * self.shape[-1]
        return len(self.shape) > 2 and minor <= 64 and minor * min(first, second) >= 128


def transpose_of(fusion: Fusion, op: Op) -> Transpose | None:
    """Return what an op transposes, or None where it does not.

    Any op with one operand whose map is a permutation of the indices, and that computes nothing, is a transpose. Those
    of tensors that are not row-major do not count: how tiles lie in memory is known for row-major tensors only.
    """
    if not all(fusion.is_row_major(value) for value in (*op.operands, *op.results)):
        return None
    facts = fusion.facts[op.id]
    if len(op.operands) != 1 or len(op.results) != 1 or facts.is_elementwise or facts.is_bitcast:
        return None
    (map_,) = facts.maps
    (shape,), (output,) = facts.operand_shapes, facts.result_shapes
    if map_.is_undefined or map_.is_known_empty or map_.constraints or len(shape) != len(output):
        return None
    places = [result.number for result in map_.results if isinstance(result, Variable)]
    if sorted(places) != list(range(len(output))):
        return None
    permutation = [places.index(number) for number in range(len(output))]
    if [shape[number] for number in permutation] != list(output):
        return None
    if not facts.keeps_elements:
        return None
    return normalized(shape, permutation, bits_of(element_type_of(op.results[0])))


def is_tiled_transpose(fusion: Fusion, op: Op) -> bool:
    """Return whether an op is a transpose that is tiled through shared memory."""
    transpose = transpose_of(fusion, op)
    return transpose is not None and transpose.is_tiled


@frozen(eq=False)
class RootTransposes:
    """The tiled transposes from which roots are computed; they move elements in one way.

    Args:
        form: The form of the first.
        packed: How they are packed; None where they are not.
        heroes: By the number of a root its transpose; other roots have as many elements.
        bits: The bits of an element of each transpose.
    """

    form: Transpose
    packed: PackedTranspose | None
    heroes: Mapping[int, Op]
    bits: tuple[int, ...]

    def tile_bytes(self, vector: int = 1) -> int:
        """Return the bytes of shared memory that the tiles of all transposes take.

        Args:
            vector: The elements in a row, and the rows, that a thread takes in one step, of a transpose not packed.
        """
        tile = self.form.tile(vector) if self.packed is None else (self.packed.tile, self.packed.tile)
        return sum(shared_tile_bytes(prod(tile), bits) for bits in self.bits)


def root_transposes(fusion: Fusion, heroes: Sequence[Op | None]) -> RootTransposes | None:
    """Return the tiled transposes among the heroes; None without any, or where one kernel takes not all."""
    forms = {number: transpose_of(fusion, hero) for number, hero in enumerate(heroes) if hero is not None}
    tiled = {number: form for number, form in forms.items() if form is not None and form.is_tiled}
    if len({(form.shape, form.permutation) for form in tiled.values()}) != 1:
        return None
    first = min(tiled)
    beside = (elements for number, elements in enumerate(fusion.root_elements) if number not in tiled)
    if any(elements != fusion.root_elements[first] for elements in beside):
        return None
    hero_of_root = {number: hero for number, hero in enumerate(heroes) if hero is not None and number in tiled}
    bits = {hero.id: tiled[number].bits for number, hero in hero_of_root.items()}
    return RootTransposes(tiled[first], packed(tiled[first]), hero_of_root, tuple(bits.values()))


def normalized(shape: Sequence[int], permutation: Sequence[int], bits: int) -> Transpose:
    """Return a transpose without dimensions of size one, neighbours that stay together merged.

    >>> normalized((1, 4, 5, 6), (0, 3, 1, 2), 32)
    Transpose(shape=(20, 6), permutation=(1, 0), bits=32)
    """
    order = [number for number in permutation if shape[number] != 1]
    groups: list[list[int]] = []
    real = [number for number in range(len(shape)) if shape[number] != 1]
    following = dict(pairwise(real))
    for number in order:
        if groups and following.get(groups[-1][-1]) == number:
            groups[-1].append(number)
        else:
            groups.append([number])
    by_input = sorted(groups)
    sizes = []
    for group in by_input:
        size = 1
        for number in group:
            size *= shape[number]
        sizes.append(size)
    return Transpose(tuple(sizes), tuple(by_input.index(group) for group in groups), bits)


@frozen
class PackedTranspose:
    """A transpose of elements of less than 32 bits that moves several of them at once.

    Args:
        vector: The elements in 32 bits.
        tile: The size of the square tile in shared memory.
        sizes: The sizes of the three parts: the input's fast dimension, what stays beside the output's, the output's.
        tiles: Their shares of a tile.
    """

    vector: int
    tile: int
    sizes: tuple[int, int, int]
    tiles: tuple[int, int, int]


def packed(transpose: Transpose) -> PackedTranspose | None:
    """Return how a transpose is packed, or None where it is not."""
    if transpose.bits >= 32 or not transpose.moves_minor or 32 % transpose.bits:
        return None
    vector = 32 // transpose.bits
    tile = 32 * vector
    fast, slow = transpose.shape[-1], transpose.output[-1]
    beside = len(transpose.output) - 2
    stays = beside >= 0 and transpose.permutation[beside] == beside
    middle = transpose.output[beside] if stays else 1
    fast_tile = min(fast, tile)
    middle_tile = min(middle, tile // fast_tile)
    slow_tile = min(slow, tile)
    columns = middle_tile * fast_tile
    fits = all(size >= 10 * vector and size % vector == 0 for size in (slow_tile, columns))
    if not fits or (slow % slow_tile) % vector:
        return None
    return PackedTranspose(vector, tile, (fast, middle, slow), (fast_tile, middle_tile, slow_tile))

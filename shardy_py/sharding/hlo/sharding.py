"""Shardings of HLO as values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Literal, get_args

from attrs import evolve

from shardy_py.sharding.hlo.digits import Digits
from shardy_py.sharding.hlo.tiles import TileAssignment
from shardy_py.values import frozen

Kind = Literal["replicated", "manual", "maximal", "unreduced", "unknown", "tiled", "tuple"]
Subgroup = Literal["manual", "unreduced", "replicated"]
SUBGROUPS: tuple[Subgroup, ...] = get_args(Subgroup)
"""The types of subgroups of devices, in the order in which XLA writes them."""


@frozen(cache_hash=True)
class ShardGroup:
    """The shard group of a value: its members are sharded alike, or like another.

    Args:
        kind: ``as`` where all members end up the same, ``like`` where this one follows the others.
        number: The number of the group.
    """

    kind: Literal["as", "like"]
    number: int

    def __str__(self) -> str:
        return f"shard_{self.kind} {self.number}"


@frozen(cache_hash=True)
class HloSharding:
    """The sharding of a value in HLO: over devices, not over the axes of a mesh.

    Make one by the methods, which bring it to the form XLA writes.

    Args:
        kind: What it is.
        tiles: The devices of the tiles; dimensions of subgroups come last.
        subgroups: What the devices have in common that differ in the last dimensions of the tiles only.
        device: The device of a maximal sharding.
        elements: The shardings in a tuple.
        group: The shard group, or None.

    >>> print(HloSharding.tiled(TileAssignment.iota((2, 1, 4)), ["replicated"]))
    {devices=[2,1,4]<=[8] last_tile_dim_replicate}
    """

    kind: Kind
    tiles: TileAssignment | None = None
    subgroups: tuple[Subgroup, ...] = ()
    device: int | None = None
    elements: tuple[HloSharding, ...] = ()
    group: ShardGroup | None = None

    @classmethod
    def replicated(cls) -> HloSharding:
        """Return the sharding of a value that every device has whole."""
        return cls("replicated")

    @classmethod
    def manual(cls) -> HloSharding:
        """Return the sharding of a value that the program itself has cut."""
        return cls("manual")

    @classmethod
    def unreduced(cls) -> HloSharding:
        """Return the sharding of a value of which every device has one summand."""
        return cls("unreduced")

    @classmethod
    def unknown(cls) -> HloSharding:
        """Return the sharding that says nothing."""
        return cls("unknown")

    @classmethod
    def maximal(cls, device: int) -> HloSharding:
        """Return the sharding of a value that one device has."""
        return cls("maximal", device=device)

    @classmethod
    def tuple_of(cls, elements: Iterable[HloSharding]) -> HloSharding:
        """Return the sharding of a tuple of values."""
        return cls("tuple", elements=tuple(elements))

    @classmethod
    def tiled(cls, tiles: TileAssignment, subgroups: Sequence[Subgroup] = ()) -> HloSharding:
        """Return a tiled sharding; a replicated, manual or unreduced one where there is only one tile.

        Args:
            tiles: The devices of the tiles.
            subgroups: One for each of the last dimensions; equal ones become one dimension.
        """
        if not subgroups:
            return cls("tiled", tiles)
        rank = len(tiles.dims) - len(subgroups)
        order = sorted(range(len(subgroups)), key=lambda number: SUBGROUPS.index(subgroups[number]))
        if order != list(range(len(order))):
            tiles = tiles.transposed([*range(rank), *(rank + number for number in order)])
        sizes: dict[Subgroup, int] = {}
        for kind, size in zip((subgroups[number] for number in order), tiles.dims[rank:], strict=True):
            sizes[kind] = sizes.get(kind, 1) * size
        sizes = {kind: size for kind, size in sizes.items() if size > 1}
        if prod(tiles.dims[:rank]) == 1 and len(sizes) < 2:
            return cls(next(iter(sizes), "replicated"))
        tiles = tiles.reshaped((*tiles.dims[:rank], *sizes.values()))
        return cls("tiled", tiles.sorted_last() if "replicated" in sizes else tiles, tuple(sizes))

    @property
    def rank(self) -> int | None:
        """The rank of the tensors it fits; None where it fits all."""
        return None if self.tiles is None else len(self.tiles.dims) - len(self.subgroups)

    @property
    def tile_dims(self) -> tuple[int, ...]:
        """The number of tiles along each dimension of the tensor; () where it is not tiled."""
        return () if self.tiles is None else self.tiles.dims[: len(self.tiles.dims) - len(self.subgroups)]

    def digits(self, order: Sequence[int] = ()) -> tuple[Digits, ...] | None:
        """Return of which digits of the device's position each dimension of the tiles consists; see `TileAssignment`.

        Devices that have the same are in no order.
        """
        if self.tiles is None:
            return None
        return self.tiles.digits(order, is_last_sorted="replicated" in self.subgroups)

    def in_group(self, group: ShardGroup | None) -> HloSharding:
        """Return this sharding of a value that is in a shard group."""
        return evolve(self, group=group)

    def __str__(self) -> str:
        if self.kind == "tuple":
            # XLA counts the elements of long tuples.
            marks = [f"/*index={index}*/" if index and index % 5 == 0 else "" for index in range(len(self.elements))]
            return "{" + ", ".join(f"{mark}{item}" for mark, item in zip(marks, self.elements, strict=True)) + "}"
        parts = [self._head()]
        if self.subgroups == ("replicated",):
            parts.append("last_tile_dim_replicate")
        elif self.subgroups:
            parts.append(f"last_tile_dims={{{', '.join(self.subgroups)}}}")
        if self.group is not None:
            parts.append(str(self.group))
        return "{" + " ".join(parts) + "}"

    def _head(self) -> str:
        if self.kind == "tiled":
            return f"devices={self.tiles}"
        return f"maximal device={self.device}" if self.kind == "maximal" else self.kind

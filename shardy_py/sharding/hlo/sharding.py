"""Shardings of HLO as values and as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Literal, get_args

from attrs import evolve

from shardy_py.errors import Diagnostic, ParseError, VerificationError
from shardy_py.sharding.hlo.tiles import Digits, TileAssignment
from shardy_py.sharding.lexer import Cursor
from shardy_py.support.texts import refuse_bad_text, require_text
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
        """Return the sharding of a replicated value."""
        return cls("replicated")

    @classmethod
    def manual(cls) -> HloSharding:
        """Return the sharding of a value that the program itself has cut."""
        return cls("manual")

    @classmethod
    def unreduced(cls) -> HloSharding:
        """Return the sharding of an unreduced value: every device has a summand."""
        return cls("unreduced")

    @classmethod
    def unknown(cls) -> HloSharding:
        """Return the sharding that says nothing."""
        return cls("unknown")

    @classmethod
    def maximal(cls, device: int) -> HloSharding:
        """Return the sharding of a value on a single device."""
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


_KINDS = ("replicated", "manual", "unreduced", "unknown")
_COMMENT = re.compile(r"/\*[^*]*\*/")
_REPLICATE = "last_tile_dim_replicate"


def parse_hlo_sharding(text: str) -> HloSharding:
    """Return the sharding in HLO's notation, as in the attribute ``mhlo.sharding``.

    >>> parse_hlo_sharding("{devices=[2,2,2]<=[4,2]T(1,0) last_tile_dims={manual}}").subgroups
    ('manual',)

    Raises:
        ParseError: it is not a sharding, or one of a form that is not known here.
    """
    require_text(text, "the sharding", code="syntax")
    with refuse_bad_text("the sharding", code="syntax"):
        cursor = Cursor(_COMMENT.sub(lambda match: " " * len(match[0]), text))
        sharding = _sharding(cursor)
        cursor.end()
        return sharding


def _sharding(cursor: Cursor) -> HloSharding:
    cursor.expect("{")
    if cursor.token in ("{", "}"):
        return _tuple(cursor)
    if cursor.token == "mesh":
        cursor.fail("a tile assignment", code="unsupported-hlo-sharding", hint="write the sharding as {devices=[..]..}")
    parts: dict[str, Any] = {}
    while not cursor.accept("}"):
        _part(cursor, parts)
    try:
        return _assembled(cursor, parts)
    except VerificationError as error:
        raise ParseError(*(_at(cursor, item) for item in error.diagnostics)) from None


def _tuple(cursor: Cursor) -> HloSharding:
    elements: list[HloSharding] = []
    while not cursor.accept("}"):
        if elements:
            cursor.expect(",", "}")
        elements.append(_sharding(cursor))
    return HloSharding.tuple_of(elements)


def _part(cursor: Cursor, parts: dict[str, Any]) -> None:
    """Read one of the parts between the braces."""
    word = cursor.token
    if word in parts or (word in _KINDS and "kind" in parts):
        cursor.fail("each part once")
    if word in _KINDS:
        parts["kind"] = cursor.advance()
    elif word in ("maximal", _REPLICATE):
        parts[cursor.advance()] = True
    elif word in ("device", "devices", "last_tile_dims", "metadata"):
        cursor.advance()
        cursor.expect("=")
        parts[word] = _READERS[word](cursor)
    elif word in ("shard_as", "shard_like"):
        cursor.advance()
        parts["group"] = ShardGroup("as" if word == "shard_as" else "like", cursor.integer("the number of a group"))
    else:
        cursor.fail("replicated, manual, maximal, unreduced, unknown or devices=")


def _devices(cursor: Cursor) -> tuple[list[int], list[int] | None, list[int], list[int]]:
    """Read the sizes of the tiles; then those of the devices and their permutation, or a list of devices."""
    dims = _integers(cursor, "[", "]", "the size of a tile dimension")
    if not cursor.accept("<"):
        listed = [cursor.integer("a device")]
        while cursor.accept(","):
            listed.append(cursor.integer("a device"))
        return dims, None, [], listed
    cursor.expect("=")
    reshape = _integers(cursor, "[", "]", "a number of devices")
    if len(reshape) == 1:
        return dims, reshape, [], []
    cursor.expect("T")
    return dims, reshape, _integers(cursor, "(", ")", "the number of a dimension"), []


def _integers(cursor: Cursor, opening: str, closing: str, what: str) -> list[int]:
    cursor.expect(opening)
    integers = [cursor.integer(what)]
    while not cursor.accept(closing):
        cursor.expect(",", closing)
        integers.append(cursor.integer(what))
    return integers


def _subgroups(cursor: Cursor) -> list[Subgroup]:
    cursor.expect("{")
    subgroups: list[Subgroup] = []
    while not cursor.accept("}"):
        if subgroups:
            cursor.expect(",", "}")
        kind = next((kind for kind in SUBGROUPS if kind == cursor.token), None)
        if kind is None:
            cursor.fail("manual, unreduced or replicated")
        subgroups.append(kind)
        cursor.advance()
    return subgroups


def _device(cursor: Cursor) -> int:
    return cursor.integer("a device")


def _metadata(cursor: Cursor) -> None:
    """Skip the metadata about the origin of the sharding."""
    cursor.expect("{")
    depth = 1
    while depth:
        if not cursor.token:
            cursor.fail("'}'")
        depth += {"{": 1, "}": -1}.get(cursor.advance(), 0)


_READERS = {"device": _device, "devices": _devices, "last_tile_dims": _subgroups, "metadata": _metadata}


def _assembled(cursor: Cursor, parts: dict[str, Any]) -> HloSharding:
    group = parts.get("group")
    heads = [name for name in ("kind", "maximal", "devices") if name in parts]
    subgroups: list[Subgroup] = ["replicated"] if _REPLICATE in parts else parts.get("last_tile_dims", [])
    fits = len(heads) == 1 and ("maximal" in parts) == ("device" in parts) and (not subgroups or heads == ["devices"])
    if not fits or (_REPLICATE in parts and "last_tile_dims" in parts):
        cursor.fail("one of replicated, manual, maximal device=, unreduced, unknown and devices=")
    if heads == ["kind"]:
        return HloSharding(parts["kind"], group=group)
    if heads == ["maximal"]:
        return HloSharding.maximal(parts["device"]).in_group(group)
    dims, reshape, permutation, listed = parts["devices"]
    if reshape is None:
        tiles = TileAssignment.of_devices(dims, listed)
    else:
        tiles = TileAssignment.iota(dims, reshape, permutation)
    if len(subgroups) > len(dims):
        cursor.fail(f"at most {len(dims)} subgroups")
    return HloSharding.tiled(tiles, subgroups).in_group(group)


def _at(cursor: Cursor, item: Diagnostic) -> Diagnostic:
    return Diagnostic(item.code, f"{item.message}, in: {cursor.text}", hint=item.hint)

"""The text of shardings of HLO."""

from __future__ import annotations

import re
from typing import Any

from shardy_py.errors import Diagnostic, ParseError, VerificationError
from shardy_py.sharding.hlo.sharding import SUBGROUPS, HloSharding, ShardGroup, Subgroup
from shardy_py.sharding.hlo.tiles import TileAssignment
from shardy_py.sharding.lexer import Cursor
from shardy_py.support.texts import refuse_bad_text, require_text

_KINDS = ("replicated", "manual", "unreduced", "unknown")
_COMMENT = re.compile(r"/\*[^*]*\*/")
_REPLICATE = "last_tile_dim_replicate"


def parse_hlo_sharding(text: str) -> HloSharding:
    """Return the sharding in HLO's notation, as in the attribute ``mhlo.sharding``.

    >>> parse_hlo_sharding("{devices=[2,2,2]<=[4,2]T(1,0) last_tile_dims={manual}}").subgroups
    ('manual',)

    Raises:
        ParseError: it is no sharding, or one of a form that is not known here.
    """
    require_text(text, "the sharding", code="syntax")
    with refuse_bad_text("the sharding", code="syntax"):
        cursor = Cursor(_COMMENT.sub(lambda match: " " * len(match[0]), text))
        found = _sharding(cursor)
        cursor.end()
        return found


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
    found = [cursor.integer(what)]
    while not cursor.accept(closing):
        cursor.expect(",", closing)
        found.append(cursor.integer(what))
    return found


def _subgroups(cursor: Cursor) -> list[Subgroup]:
    cursor.expect("{")
    found: list[Subgroup] = []
    while not cursor.accept("}"):
        if found:
            cursor.expect(",", "}")
        kind = next((kind for kind in SUBGROUPS if kind == cursor.token), None)
        if kind is None:
            cursor.fail("manual, unreduced or replicated")
        found.append(kind)
        cursor.advance()
    return found


def _device(cursor: Cursor) -> int:
    return cursor.integer("a device")


def _metadata(cursor: Cursor) -> None:
    """Skip what is said about the origin of the sharding."""
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

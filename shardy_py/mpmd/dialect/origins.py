"""Origins: which named computation a fragment comes from, and why a mesh is in a use set or a src set."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.sharding.axes import quote
from shardy_py.sharding.lexer import unescape
from shardy_py.values import frozen

_USER_ORIGIN = re.compile(r'^(?:#mpmd\.user_origin<)?"((?:[^"\\]|\\.)*)"(?:\((\d+)\))?>?$')
_MESH = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\[((?:"(?:[^"\\]|\\.)*"(?:, )?)*)\])?')
_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')


@frozen(cache_hash=True)
class UserOrigin:
    """A named computation, and how often it was transposed: 0 is forward, 1 backward.

    >>> str(UserOrigin("f")), str(UserOrigin("f", 1))
    ('"f"', '"f"(1)')
    """

    name: str
    transpose_count: int = 0

    @property
    def attribute(self) -> RawAttribute:
        """The attribute of fragments and named computations."""
        return RawAttribute(f"#mpmd.user_origin<{self}>")

    def __str__(self) -> str:
        return quote(self.name) + (f"({self.transpose_count})" if self.transpose_count else "")


def parse_user_origin(value: object) -> UserOrigin:
    """Return the origin in an attribute.

    Raises:
        ValueError: it is not one.
    """
    match = _USER_ORIGIN.match(str(value))
    if match is None:
        raise ValueError(f"{value} is not a valid origin")
    return UserOrigin(unescape(match[1]) or "", int(match[2] or 0))


@frozen
class MeshSet:
    """Meshes in order of insertion, each with the origins that put it there.

    >>> str(MeshSet.of("m1", "abc").union(MeshSet.of("m2")))
    '#mpmd.meshes_with_origins<"m1"["abc"], "m2">'
    """

    meshes: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, mesh: str, origin: str | None = None) -> MeshSet:
        """Return the set of one mesh."""
        return cls(((mesh, () if origin is None else (origin,)),))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the meshes."""
        return tuple(name for name, _ in self.meshes)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __bool__(self) -> bool:
        return bool(self.meshes)

    def origins(self, name: str) -> tuple[str, ...]:
        """Return the origins of a mesh."""
        return dict(self.meshes).get(name, ())

    def union(self, other: MeshSet) -> MeshSet:
        """Return the meshes of both, those of this one first."""
        result = dict(self.meshes)
        for name, origins in other.meshes:
            result[name] = _joined(result.get(name, ()), origins)
        return MeshSet(tuple(result.items()))

    def intersection(self, other: MeshSet) -> MeshSet:
        """Return the meshes in both, in the order of this one; the wildcard ``*`` stands for every missing mesh.

        `{"*", "m1"}` and `{"m1", "m2"}` have `{"m1", "m2"}` in common.
        """
        mine, others = dict(self.meshes), dict(other.meshes)
        result = {}
        for name, origins in self.meshes:
            if name in others:
                result[name] = _joined(origins, others[name])
            elif "*" in others:
                result[name] = origins
        if "*" in mine:
            result |= {name: origins for name, origins in other.meshes if name not in result}
        return MeshSet(tuple(result.items()))

    @property
    def attribute(self) -> RawAttribute:
        """The attribute of ops, arguments and results."""
        return RawAttribute(str(self))

    def show(self) -> str:
        """Return the text for messages: ``m1[a,b],m2``."""
        return ",".join(name + (f"[{','.join(origins)}]" if origins else "") for name, origins in self.meshes)

    def __str__(self) -> str:
        parts = [
            quote(name) + (f"[{', '.join(map(quote, origins))}]" if origins else "") for name, origins in self.meshes
        ]
        return f"#mpmd.meshes_with_origins<{', '.join(parts)}>"


def _joined(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def parse_mesh_set(value: object) -> MeshSet:
    """Return the set in an attribute."""
    body = str(value).partition("<")[2].removesuffix(">")
    return MeshSet(
        tuple(
            (unescape(mesh) or "", tuple(unescape(name) or "" for name in _NAME.findall(origins)))
            for mesh, origins in _MESH.findall(body)
        )
    )

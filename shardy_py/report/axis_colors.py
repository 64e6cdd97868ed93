"""Colours of mesh axes: one hue for each axis, the same on every page and in every notebook."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

HUES = (215, 32, 150, 310, 265, 185, 62, 340)
"""The hues, in degrees, as far apart as eight can be without red, which stands for what is sent."""

_KNOWN = {
    0: ("data", "batch", "dp", "x"),
    1: ("model", "tensor", "tp", "mp", "y"),
    2: ("seq", "sequence", "sp", "context", "cp"),
    3: ("expert", "experts", "ep"),
    4: ("stage", "pipe", "pipeline", "pp", "z"),
    5: ("fsdp", "replica", "zero"),
}
_NUMBER_OF = {name: number for number, names in _KNOWN.items() for name in names}


def axis_hues(names: Iterable[str]) -> dict[str, int]:
    """Return the hue of each axis.

    Names that many meshes share always have the same hue. Others have one that follows from their letters, or the next
    one where another axis of the mesh has it.

    Args:
        names: The names of the axes of all meshes of a program.

    >>> axis_hues(["data", "model"])
    {'data': 215, 'model': 32}
    """
    distinct = list(dict.fromkeys(names))
    taken: dict[int, str] = {}
    hues: dict[str, int] = {}
    for name in sorted(distinct, key=lambda name: (name not in _NUMBER_OF, distinct.index(name))):
        number = _NUMBER_OF.get(name, crc32(name.encode()) % len(HUES))
        while number in taken and len(taken) < len(HUES):
            number = (number + 1) % len(HUES)
        taken.setdefault(number, name)
        hues[name] = HUES[number]
    return {name: hues[name] for name in distinct}


def tint(hue: int | None, lightness: float = 84) -> str:
    """Return a light colour of a hue, or grey without one, behind black text."""
    return "#e9ecf1" if hue is None else f"hsl({hue} 62% {lightness:.0f}%)"

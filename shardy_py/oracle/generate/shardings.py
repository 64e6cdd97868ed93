"""Random meshes and random valid shardings, as text.

Feature ``sub_axes`` splits axes; ``priorities``, ``replicated``, ``unreduced`` and ``non_divisible`` add those;
``several_meshes`` adds a second mesh and inlined ones; ``maximal`` one-device meshes.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

from shardy_py.oracle.generate.choices import Choices
from shardy_py.values import frozen

_AXIS_NAMES = ("x", "y", "z", "w")
_AXIS_SIZES = ((18, 2), (10, 4), (3, 3), (3, 8), (1, 1), (1, 6), (1, 5), (1, 7))


@frozen
class Axis:
    """A mesh axis."""

    name: str
    size: int


@frozen
class AxisPiece:
    """A full axis, or a part of one (``pre`` is then at least 1)."""

    name: str
    size: int
    pre: int = 0
    position: int = 0

    def __str__(self) -> str:
        return f'"{self.name}":({self.pre}){self.size}' if self.pre else f'"{self.name}"'

    def follows(self, other: AxisPiece) -> bool:
        """True if the two would be written as one axis."""
        return self.name == other.name and self.pre == other.pre * other.size


@frozen
class MeshText:
    """A mesh of the generated module.

    Args:
        reference: How a sharding names it: ``@name``, or the whole mesh inlined.
        axes: Its axes; none for a maximal or empty one.
        body: What stands after the name in the ``sdy.mesh`` op.
    """

    reference: str
    axes: tuple[Axis, ...]
    body: str

    @property
    def is_full(self) -> bool:
        """True if there are axes to shard along."""
        return bool(self.axes)


@frozen
class Style:
    """Frequencies of the forms of shardings in one program, in percent."""

    open_dims: int = 50
    sub_axes: int = 0
    priorities: int = 0
    replicated: int = 0
    unreduced: int = 0
    non_divisible: int = 0


def random_mesh(choices: Choices, name: str, *, device_ids: bool = False) -> MeshText:
    """Return a mesh with one to four axes, in which more than 256 devices are rare."""
    sizes: list[int] = []
    for _ in range(choices.weighted(((3, 2), (3, 3), (1, 1), (2, 4)))):
        size = choices.weighted(_AXIS_SIZES)
        sizes.append(size if prod(sizes) * size <= 256 else 2)
    axes = tuple(Axis(axis, size) for axis, size in zip(_AXIS_NAMES, sizes, strict=False))
    inner = ", ".join(f'"{axis.name}"={axis.size}' for axis in axes)
    devices = reversed_devices(axes) if device_ids else ""
    return MeshText(f"@{name}", axes, f"<[{inner}]{devices}>")


def reversed_devices(axes: tuple[Axis, ...]) -> str:
    """Return device ids in descending order, "" for a single device."""
    total = prod(axis.size for axis in axes)
    return f", device_ids={list(reversed(range(total)))}" if total > 1 else ""


def split_axis(choices: Choices, axis: Axis, position: int) -> list[AxisPiece]:
    """Return two or more sub-axes that together make the axis, or the full axis where its size is prime."""
    divisors = [size for size in range(2, axis.size) if axis.size % size == 0]
    if not divisors:
        return [AxisPiece(axis.name, axis.size, 0, position)]
    cuts = [1, choices.pick(divisors), axis.size]
    larger = [size for size in divisors if size > cuts[1] and size % cuts[1] == 0]
    if larger and choices.chance(40):
        cuts.insert(2, choices.pick(larger))
    return [AxisPiece(axis.name, after // before, before, position) for before, after in pairwise(cuts)]


def pieces_of(choices: Choices, mesh: MeshText, style: Style, without: frozenset[str]) -> list[AxisPiece]:
    """Return the axes of a mesh that may be used, some of them in parts."""
    pieces: list[AxisPiece] = []
    for position, axis in enumerate(mesh.axes):
        if axis.name in without:
            continue
        if choices.chance(style.sub_axes):
            pieces += split_axis(choices, axis, position)
        else:
            pieces.append(AxisPiece(axis.name, axis.size, 0, position))
    return pieces


def _take(choices: Choices, pieces: list[AxisPiece], size: int, style: Style, limit: int) -> list[AxisPiece]:
    """Move up to ``limit`` pieces into the sharding of a dimension of that size."""
    chosen: list[AxisPiece] = []
    for piece in list(pieces):
        if len(chosen) == limit:
            break
        total = prod(item.size for item in chosen) * piece.size
        if size % total and not choices.chance(style.non_divisible):
            continue
        if chosen and piece.follows(chosen[-1]):
            continue
        chosen.append(piece)
        pieces.remove(piece)
    return chosen


def dim_text(axes: list[AxisPiece], *, is_open: bool, priority: int | None = None) -> str:
    """Return one dimension sharding."""
    items = [*map(str, axes), *(["?"] if is_open else [])]
    return f"{{{', '.join(items)}}}" + ("" if priority is None or not items else f"p{priority}")


def _side_list(choices: Choices, pieces: list[AxisPiece], percent: int) -> list[AxisPiece]:
    """Move some of the unused pieces into a list in mesh order."""
    chosen: list[AxisPiece] = []
    for piece in sorted(pieces, key=lambda item: (item.position, item.pre)):
        if choices.chance(percent) and not (chosen and piece.follows(chosen[-1])):
            chosen.append(piece)
            pieces.remove(piece)
    return chosen


def random_sharding(
    choices: Choices,
    mesh: MeshText,
    shape: tuple[int, ...],
    style: Style,
    *,
    without: frozenset[str] = frozenset(),
) -> str:
    """Return the body of a sharding: ``<@mesh, [...]>``.

    Args:
        choices: Where the decisions come from.
        mesh: The mesh it is bound to.
        shape: The shape of the value.
        style: How often to use what.
        without: Names of axes it must not use.
    """
    if not mesh.is_full:
        empty = ", ".join(dim_text([], is_open=choices.chance(50)) for _ in shape)
        return f"<{mesh.reference}, [{'' if 'device_ids' in mesh.body else empty}]>"
    pieces = choices.shuffled(pieces_of(choices, mesh, style, without))
    dims = ["" for _ in shape]
    for dim in choices.shuffled(range(len(shape))):
        axes = _take(choices, pieces, shape[dim], style, choices.weighted(((32, 0), (48, 1), (14, 2), (6, 3))))
        priority = choices.integer(0, 3) if choices.chance(style.priorities) else None
        dims[dim] = dim_text(axes, is_open=choices.chance(style.open_dims), priority=priority)
    replicated = _side_list(choices, pieces, style.replicated)
    unreduced = _side_list(choices, pieces, style.unreduced)
    tail = "".join(
        f", {name}={{{', '.join(map(str, axes))}}}"
        for name, axes in (("replicated", replicated), ("unreduced", unreduced))
        if axes
    )
    return f"<{mesh.reference}, [{', '.join(dims)}]{tail}>"

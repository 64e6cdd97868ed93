"""Groups of arguments that are sharded alike: the same parameter of all layers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from math import prod

from shardy_py.api.main_function import argument_names, arguments_of
from shardy_py.cost.session import Session
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.values import frozen

_NUMBER = re.compile(r"\d+")
_NUMBERED = re.compile(r"arg\d+")

Spec = tuple[tuple[str, ...], ...]
"""The axes of each dimension of an argument."""


@frozen
class ArgumentGroup:
    """Arguments of one type whose names differ in numbers only.

    Args:
        names: Their names.
        slots: Their slots.
        type: Their type.
    """

    names: tuple[str, ...]
    slots: tuple[int, ...]
    type: TensorType

    @property
    def pattern(self) -> str:
        """A glob that matches all names; the name itself where there is one."""
        return self.names[0] if len(self.names) == 1 else _NUMBER.sub("*", self.names[0])

    def shape(self) -> tuple[int, ...]:
        """Return the shape."""
        return tuple(size or 1 for size in self.type.shape)

    def specs(self, axes: tuple[str, ...], mesh: Mesh) -> Iterator[Spec]:
        """Yield all ways to put axes on dimensions, each axis on one or none, such that the sizes divide."""
        shape = self.shape()
        for places in product(range(-1, len(shape)), repeat=len(axes)):
            spec = tuple(
                tuple(axis for axis, place in zip(axes, places, strict=True) if place == dimension)
                for dimension in range(len(shape))
            )
            if divides(shape, spec, mesh):
                yield spec


def divides(shape: tuple[int, ...], spec: Spec, mesh: Mesh) -> bool:
    """Return whether the axes of each dimension divide its size."""
    return all(size % prod(map(mesh.axis_size, axes)) == 0 for size, axes in zip(shape, spec, strict=True))


def closed_sharding(spec: Spec, mesh_name: str) -> TensorSharding:
    """Return the closed sharding of a spec."""
    dims = tuple(DimensionSharding(tuple(map(AxisRef, axes)), is_closed=True) for axes in spec)
    return TensorSharding(mesh_name, dims)


def group_arguments(session: Session) -> tuple[ArgumentGroup, ...]:
    """Return the arguments of the main function that have dimensions, in groups, in their order."""
    found: dict[object, list[tuple[str, int, TensorType]]] = {}
    for name, value in zip(argument_names(session.main), arguments_of(session.main), strict=True):
        slot = session.problem.slot_of.get(value.id)
        if slot is None or not isinstance(value.type, TensorType) or not value.type.rank or None in value.type.shape:
            continue
        # Numbers of arguments without names tell nothing about layers.
        stem = name if _NUMBERED.fullmatch(name) else _NUMBER.sub("", name)
        found.setdefault((stem, str(value.type)), []).append((name, slot, value.type))
    return tuple(
        ArgumentGroup(tuple(one[0] for one in members), tuple(one[1] for one in members), members[0][2])
        for members in found.values()
    )

"""Groups of arguments that are sharded alike: the same parameter of all layers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any, Literal

import attrs

from shardy_py.api.main_function import argument_names, arguments_of
from shardy_py.cost.advice.constraints import partition_spec
from shardy_py.cost.advice.pricing import Figures, Goal
from shardy_py.cost.session import Session
from shardy_py.errors import Diagnostic
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


Role = Literal["data", "fsdp", "tensor"]
"""Role of an axis: ``data`` splits the batch, ``fsdp`` the batch and all parameters, ``tensor`` the parameters only."""

_WORDS: dict[Role, str] = {"data": "data parallel", "fsdp": "fully sharded", "tensor": "tensor parallel"}


@frozen
class ArgumentShardings:
    """Shardings of arguments.

    Args:
        name: Its name, by the roles of axes, such as ``data parallel over data, tensor parallel over model``.
        shardings: The pattern of the names of a group to its sharding; None for one that propagation left without.
        figures: What the program costs with them.
        roles: Axis to role; empty for the shardings that the program came with.
    """

    name: str
    shardings: Mapping[str, TensorSharding | None]
    figures: Figures
    roles: Mapping[str, Role]

    @property
    def specs(self) -> dict[str, str]:
        """The pattern of the names of a group to its sharding as JAX writes it."""
        return {name: partition_spec(sharding) for name, sharding in self.shardings.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the layout as plain data."""
        return {
            "name": self.name,
            "roles": dict(self.roles),
            "specs": self.specs,
            "shardings": {name: None if one is None else str(one) for name, one in self.shardings.items()},
            "figures": attrs.asdict(self.figures),
        }


@frozen
class InputAdvice:
    """Layouts of the inputs of a program.

    Args:
        goal: What was to become small.
        layouts: The best layout of each assignment of roles, the best first; those that do not fit come last.
        tried: How many different outcomes were priced.
        devices: The number of devices.
        machine: The name of the machine, or None.
        warnings: What is worth knowing of the program.
    """

    goal: Goal
    layouts: tuple[ArgumentShardings, ...]
    tried: int
    devices: int
    machine: str | None = None
    warnings: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        """Return what each layout costs, the best first."""
        lines = (f"{number}. {one.name}: {one.figures}" for number, one in enumerate(self.layouts, start=1))
        return "\n".join([self.title, *lines])

    @property
    def title(self) -> str:
        """Heading: the goal, the number of devices and the machine."""
        where = "" if self.machine is None else f", {self.machine}"
        return f"Layouts for {self.goal} on one of {self.devices} devices{where}"

    @property
    def best(self) -> ArgumentShardings:
        """The first layout."""
        return self.layouts[0]

    def to_json(self) -> dict[str, Any]:
        """Return the advice as plain lists, dictionaries and numbers; sizes are in bytes, times in seconds."""
        return {
            "machine": self.machine,
            "devices": self.devices,
            "minimise": self.goal.measure,
            "memory": self.goal.memory,
            "tried": self.tried,
            "layouts": [one.to_json() for one in self.layouts],
        }


def name_roles(roles: Mapping[str, Role]) -> str:
    """Return the name of a layout by its roles.

    >>> name_roles({"x": "data", "y": "tensor"})
    'data parallel over x, tensor parallel over y'
    """
    parts = [(word, [axis for axis, role in roles.items() if role == name]) for name, word in _WORDS.items()]
    return ", ".join(f"{word} over {' and '.join(axes)}" for word, axes in parts if axes)

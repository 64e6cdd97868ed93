"""Groups of arguments that are sharded alike: the same parameter of all layers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any, Literal

import attrs

from shardy_py.api.main_function import argument_names, arguments_of
from shardy_py.cost.advice.pricing import Figures, Goal
from shardy_py.cost.session import Session
from shardy_py.errors import Diagnostic
from shardy_py.frontends.select import WRITTEN_AS_JAX
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.jax_text import axes_text, partition_spec
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.values import frozen

_INDEX = re.compile(r"(?<=\[)\d+(?=\])|(?<=[._])\d+(?=[.\['_]|$)")
"""A number that tells layers apart: an index, or a word of digits in the name of a container."""
_LAST_WORD = re.compile(r"[A-Za-z_]+\d+['\"]?\]?$")
"""The last word of a path with a number, such as ``w1``, which is the name of a parameter."""

Spec = tuple[tuple[str, ...], ...]
"""The axes of each dimension of an argument."""


@frozen
class ArgumentGroup:
    """Arguments of one type whose names differ in the number of the layer only.

    Args:
        pattern: A glob that matches all names, and no other group has; the name itself where there is one.
        names: Their names.
        slots: Their slots.
        type: Their type.
    """

    pattern: str
    names: tuple[str, ...]
    slots: tuple[int, ...]
    type: TensorType

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
    groups: dict[tuple[str, str], list[tuple[str, int, TensorType]]] = {}
    for name, value in zip(argument_names(session.main), arguments_of(session.main), strict=True):
        slot = session.problem.slot_of.get(value.id)
        if slot is None or not isinstance(value.type, TensorType) or not value.type.rank or None in value.type.shape:
            continue
        groups.setdefault((layer_pattern(name), str(value.type)), []).append((name, slot, value.type))
    sizes = Counter(pattern for pattern, _ in groups)
    return tuple(
        ArgumentGroup(
            # Layers with parameters of several types under one pattern are told apart by the first name.
            pattern if len(members) > 1 and sizes[pattern] == 1 else members[0][0],
            tuple(name for name, _, _ in members),
            tuple(slot for _, slot, _ in members),
            members[0][2],
        )
        for (pattern, _), members in groups.items()
    )


def layer_pattern(name: str) -> str:
    """Return the name of an argument with stars for the numbers of layers.

    Numbers in the last word are a part of the name of a parameter, unless the word is an index.

    >>> layer_pattern("params['layer_3']['w1']"), layer_pattern("w[0]['w1']"), layer_pattern("h.11.mlp.fc1.weight")
    ("params['layer_*']['w1']", "w[*]['w1']", 'h.*.mlp.fc1.weight')
    """
    last = _LAST_WORD.search(name)
    end = len(name) if last is None else last.start()
    return _INDEX.sub("*", name[:end] + ("" if last is None else "\0")).replace("\0", "") + name[end:]


Role = Literal["data", "fsdp", "tensor"]
"""Role of an axis: ``data`` splits the batch, ``fsdp`` the batch and all parameters, ``tensor`` the parameters only."""

_WORDS: dict[Role, str] = {"data": "data parallel", "fsdp": "fully sharded", "tensor": "tensor parallel"}
_REPLICATED = "replicated"


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
            "shardings": {
                name: None if sharding is None else str(sharding) for name, sharding in self.shardings.items()
            },
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
        problem: By how much the best exceeds the memory budget; None if it fits.
        warnings: What is worth knowing of the program.
        frontend: The name of the frontend that the program came through.
    """

    goal: Goal
    layouts: tuple[ArgumentShardings, ...]
    tried: int
    devices: int
    machine: str | None = None
    problem: Diagnostic | None = None
    warnings: tuple[Diagnostic, ...] = ()
    frontend: str = "mlir"

    def lines_of(self, layout: ArgumentShardings) -> list[str]:
        """Return the sharding of each argument in a layout, as one writes it for programs of the frontend."""
        write = partition_spec if self.frontend in WRITTEN_AS_JAX else axes_text
        return [f"{name}: {write(sharding)}" for name, sharding in layout.shardings.items()]

    def __str__(self) -> str:
        """Return what each layout costs, the best first."""
        lines = (f"{number}. {layout.name}: {layout.figures}" for number, layout in enumerate(self.layouts, start=1))
        problem = [] if self.problem is None else [self.problem.message]
        return "\n".join([self.title, *lines, *problem])

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
            "problem": None if self.problem is None else self.problem.message,
            "tried": self.tried,
            "layouts": [layout.to_json() for layout in self.layouts],
        }


def name_layout(
    data: Iterable[TensorSharding | None], parameters: Iterable[TensorSharding | None], axes: Iterable[str]
) -> str:
    """Return the name of a layout, by what each axis of the mesh splits.

    Args:
        data: The shardings of the arguments that are not parameters.
        parameters: The shardings of the parameters.
        axes: The axes of the mesh.
    """
    of_batch = _axes_of(data)
    of_parameters = _axes_of(parameters)
    words: dict[str, list[str]] = {word: [] for word in (*_WORDS.values(), _REPLICATED)}
    for axis in axes:
        if axis in of_batch:
            words[_WORDS["fsdp" if axis in of_parameters else "data"]].append(axis)
        else:
            words[_WORDS["tensor"] if axis in of_parameters else _REPLICATED].append(axis)
    return ", ".join(f"{word} over {' and '.join(names)}" for word, names in words.items() if names)


def _axes_of(shardings: Iterable[TensorSharding | None]) -> set[str]:
    return {
        axis.name
        for sharding in shardings
        if sharding is not None
        for dim in sharding.dim_shardings
        for axis in dim.axes
    }

"""Layouts: shardings of all arguments, by the role of each axis of the mesh, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from shardy_py.cost.advice.constraints import partition_spec
from shardy_py.cost.advice.judge import Figures, Goal
from shardy_py.errors import Diagnostic
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

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

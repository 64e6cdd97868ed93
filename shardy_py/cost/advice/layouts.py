"""Layouts: shardings of the arguments of a program, the same parameter of all layers in one row."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from shardy_py.cost.advice.pricing import Figures, Goal
from shardy_py.errors import Diagnostic
from shardy_py.frontends.select import WRITTEN_AS_JAX
from shardy_py.sharding.jax_text import axes_text, partition_spec
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

_INDEX = re.compile(r"(?<=\[)\d+(?=\])|(?<=[._])\d+(?=[.\['_]|$)")
"""A number that tells layers apart: an index, or a word of digits in the name of a container."""
_LAST_WORD = re.compile(r"[A-Za-z_]+\d+['\"]?\]?$")
"""The last word of a path with a number, such as ``w1``, which is the name of a parameter."""


def layer_pattern(name: str) -> str:
    """Return the name of an argument with stars for the numbers of layers.

    Numbers in the last word are a part of the name of a parameter, unless the word is an index.

    >>> layer_pattern("params['layer_3']['w1']"), layer_pattern("w[0]['w1']"), layer_pattern("h.11.mlp.fc1.weight")
    ("params['layer_*']['w1']", "w[*]['w1']", 'h.*.mlp.fc1.weight')
    """
    last = _LAST_WORD.search(name)
    end = len(name) if last is None else last.start()
    return _INDEX.sub("*", name[:end] + ("" if last is None else "\0")).replace("\0", "") + name[end:]


@frozen
class ArgumentShardings:
    """Shardings of arguments.

    Args:
        name: Its name, by what the axes do, such as ``batch over data, tensor (columns) over model``.
        shardings: Argument to its sharding; None for one that has none.
        figures: What the program costs with them.
        constraint_count: The number of constraints inside that it has besides.
        frontend: The name of the frontend that the program came through.
    """

    name: str
    shardings: Mapping[str, TensorSharding | None]
    figures: Figures
    constraint_count: int = 0
    frontend: str = "mlir"

    @property
    def lines(self) -> list[str]:
        """The sharding of each argument as one writes it for programs of the frontend."""
        write = partition_spec if self.frontend in WRITTEN_AS_JAX else axes_text
        return [f"{name}: {spec}" for name, spec in self._written(write).items()]

    @property
    def specs(self) -> dict[str, str]:
        """Argument to its sharding as JAX writes it; layers of equal shardings share a pattern of their names."""
        return self._written(partition_spec)

    def _written(self, write: Callable[[TensorSharding | None], str]) -> dict[str, str]:
        """Return argument to its sharding as text; layers of equal shardings share a pattern of their names."""
        specs: dict[str, dict[str, str]] = defaultdict(dict)
        for name, sharding in self.shardings.items():
            specs[layer_pattern(name)][name] = write(sharding)
        rows: dict[str, str] = {}
        for pattern, members in specs.items():
            rows |= {pattern: next(iter(members.values()))} if len(set(members.values())) == 1 else members
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return the layout as plain data."""
        return {
            "name": self.name,
            "specs": self.specs,
            "shardings": {
                name: None if sharding is None else str(sharding) for name, sharding in self.shardings.items()
            },
            "constraint_count": self.constraint_count,
            "figures": attrs.asdict(self.figures),
        }


@frozen
class InputAdvice:
    """Layouts of the inputs of a program: a plan, and known ones beside it.

    Args:
        goal: What was to become small.
        layouts: The layouts, the best first; those that do not fit come last.
        devices: The number of devices.
        machine: The name of the machine.
        text: The program with the plan and its constraints.
        warnings: What is worth knowing of the program.
    """

    goal: Goal
    layouts: tuple[ArgumentShardings, ...]
    devices: int
    machine: str
    text: str = attrs.field(repr=False)
    warnings: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        """Return what each layout costs, the best first."""
        lines = (f"{number}. {layout.name}: {layout.figures}" for number, layout in enumerate(self.layouts, start=1))
        return "\n".join([self.title, *lines])

    @property
    def title(self) -> str:
        """Heading: the goal, the number of devices and the machine."""
        return f"Layouts for {self.goal} on one of {self.devices} devices, {self.machine}"

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
            "layouts": [layout.to_json() for layout in self.layouts],
        }

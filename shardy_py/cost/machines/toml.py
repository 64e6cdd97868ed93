"""Machines as TOML.

::

    name = "two nodes of four"

    [device]
    memory_bytes = 16e9
    memory_bandwidth = 800e9

    [device.flops]
    bf16 = 200e12
    default = 50e12

    [[link]]
    name = "node"
    size = 2
    topology = "all-to-all"
    bandwidth = 25e9
    latency = 5e-6

    [[link]]
    name = "inside"
    size = 4
    topology = "ring"
    bandwidth = 50e9
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from attrs import NOTHING, fields, fields_dict

from shardy_py.cost.machines.machine import TOPOLOGIES, Link, Machine
from shardy_py.cost.machines.profile import NO_PROFILE, PROFILES
from shardy_py.errors import Diagnostic, OptionError, read_text_file, unknown_name
from shardy_py.support.arguments import checked
from shardy_py.support.element_types import mlir_element_bits
from shardy_py.support.texts import parse_toml

MachineLike = Machine | str | Path
"""A machine, the name of one that comes along, or the path of a TOML file."""

_FOLDER = "specs"
_MOST = 1e30
"""More than any machine has of anything; products of such numbers are still finite."""
_MOST_DEVICES = 2**31


def machine_names() -> tuple[str, ...]:
    """Return the names of the machines that come along."""
    folder = files("shardy_py.cost.machines").joinpath(_FOLDER)
    return tuple(sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")))


@checked
def get_machine(machine: MachineLike) -> Machine:
    """Return a machine as it is, or from its name or its TOML file.

    Args:
        machine: A machine, the name of one that comes along, or a TOML file; a text that ends in ``.toml`` names one.

    Raises:
        OptionError: there is no such machine, or the file holds none.
    """
    if isinstance(machine, Machine):
        return machine
    if isinstance(machine, Path) or (isinstance(machine, str) and machine.endswith(".toml")):
        return read_machine(machine)
    known = machine_names()
    if machine not in known and isinstance(machine, str) and Path(machine).is_file():
        hint = f"rename it to {Path(machine).name}.toml"
        raise OptionError(Diagnostic("unknown-machine", f"the file {machine} does not end in .toml", hint=hint))
    if machine not in known:
        problem = unknown_name("unknown-machine", f"there is no machine {machine!r}", str(machine), known)
        raise OptionError(problem)
    resource = files("shardy_py.cost.machines").joinpath(_FOLDER, f"{machine}.toml")
    return parse_machine(resource.read_text(encoding="utf-8"), source=f"{machine}.toml")


@checked
def read_machine(path: str | Path) -> Machine:
    """Return the machine in a TOML file.

    Raises:
        OptionError: the file cannot be read or holds no machine.
    """
    hint = f"give a TOML file, or one of {', '.join(machine_names())}"
    text = read_text_file(path, code="invalid-machine", what="the machine", hint=hint)
    return parse_machine(text, source=str(path))


def parse_machine(text: str, *, source: str = "") -> Machine:
    """Return the machine of a TOML text.

    Args:
        text: The text.
        source: The name of its file, for errors.

    Raises:
        OptionError: it is no TOML or no machine; all problems are listed.
    """
    data = parse_toml(text, code="invalid-machine", source=source)
    reader = _Reader(source)
    machine = reader.machine(data)
    if reader.problems:
        raise OptionError(*reader.problems)
    return machine


def _number_keys(class_: type) -> tuple[str, ...]:
    """Return the keys of a table that are numbers: the fields of the class of the table that are floats."""
    return tuple(item.name for item in fields(class_) if item.type in ("float", float))


def _shown(value: object, width: int = 60) -> str:
    """Return a value as Python writes it, shortened; numbers of thousands of digits have no decimal form."""
    if isinstance(value, int) and value.bit_length() > 1000:
        return "a number of very many digits"
    text = repr(value)
    return text if len(text) <= width else f"{text[:width]}..."


class _Reader:
    """Makes values of tables; collects what is wrong."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []

    def machine(self, data: Mapping[str, Any]) -> Machine:
        """Return the machine of the whole file."""
        self._known_keys("", data, ("name", "profile", "device", "link"))
        device = self._table("", data, "device")
        self._known_keys("device", device, ("memory_bytes", *_number_keys(Machine), "flops"))
        links = data.get("link", [])
        if not isinstance(links, list) or not all(isinstance(item, dict) for item in links) or not links:
            self._problem("", "there are no links", hint="write [[link]], once for each dimension of the grid")
            links = []
        grid_links = tuple(self._link(f"link {index}", item) for index, item in enumerate(links))
        for name in sorted(
            {link.name for link in grid_links if sum(link.name == other.name for other in grid_links) > 1}
        ):
            self._problem("", f"there are two links {name!r}", hint="give every link a name of its own")
        return Machine(
            self._text("", data, "name"),
            grid_links,
            self._flops(self._table("device", device, "flops")),
            int(self._number("device", device, "memory_bytes")),
            profile=self._profile(data),
            **self._numbers("device", device, Machine),
        )

    def _profile(self, data: Mapping[str, Any]) -> str:
        known = [item.name for item in PROFILES]
        value = data.get("profile", NO_PROFILE.name)
        if value in known:
            return str(value)
        self._problem("", f"profile is {_shown(value)}", hint=f"write one of {', '.join(known)}")
        return NO_PROFILE.name

    def _link(self, place: str, table: Mapping[str, Any]) -> Link:
        self._known_keys(place, table, ("name", "size", "topology", *_number_keys(Link)))
        topology = table.get("topology", "ring")
        if not isinstance(topology, str) or topology not in TOPOLOGIES:
            self._problem(place, f"topology is {_shown(topology)}", hint=f"write one of {', '.join(TOPOLOGIES)}")
        size = table.get("size")
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= _MOST_DEVICES:
            self._problem(place, f"size is {_shown(size)}, not a number of devices")
            size = 1
        numbers = self._numbers(place, table, Link)
        return Link(self._text(place, table, "name"), size, topology=topology, **numbers)

    def _flops(self, table: Mapping[str, Any]) -> dict[str, float]:
        for name in table:
            if name not in ("default", "f8") and mlir_element_bits(name) is None:
                hint = "write element types as MLIR does, such as bf16 or i8, f8 for all of 8 bits, or default"
                self._problem("device.flops", f"{name!r} is not an element type", hint=hint)
        result = {name: self._number("device.flops", table, name) for name in table}
        if "default" not in result:
            self._problem("device.flops", "default is missing", hint="it stands for the types that are not listed")
        return result

    def _table(self, place: str, data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        value = data.get(key)
        if isinstance(value, dict):
            return value
        name = f"{place}.{key}" if place else key
        self._problem("", f"the table {name} is missing" if value is None else f"{name} is not a table")
        return {}

    def _numbers(self, place: str, table: Mapping[str, Any], class_: type) -> dict[str, Any]:
        """Return the fields of a class that are numbers; those with a default may be left out."""
        defaults = {name: fields_dict(class_)[name].default for name in _number_keys(class_)}
        return {
            name: self._number(place, table, name, default=None if default is NOTHING else default)
            for name, default in defaults.items()
        }

    def _number(self, place: str, table: Mapping[str, Any], key: str, *, default: float | None = None) -> float:
        value = table.get(key, default)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        least = 0.0 if default is not None else None
        # A comparison with what is not a number is false, so that nan is refused, too.
        if is_number and (value > 0 or value == least) and value <= _MOST:
            return float(value)
        message = f"{key} is missing" if value is None else f"{key} is {_shown(value)}, not a positive number"
        self._problem(place, message)
        return 1.0

    def _text(self, place: str, table: Mapping[str, Any], key: str) -> str:
        value = table.get(key)
        if isinstance(value, str) and value:
            return value
        self._problem(place, f"{key} is missing" if value is None else f"{key} is {_shown(value)}, not a text")
        return ""

    def _known_keys(self, place: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                self._problem(place, f"unknown key {key!r}", hint=f"the keys are {', '.join(known)}")

    def _problem(self, place: str, message: str, *, hint: str = "") -> None:
        where = f"{place}: " if place else ""
        self.problems.append(Diagnostic("invalid-machine", f"{where}{message}", self.source, hint=hint))

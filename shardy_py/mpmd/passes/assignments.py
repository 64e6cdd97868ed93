"""The text of assignments of names, arguments and results to meshes: ``f@m1/0,g@m2#pinned_host``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.mpmd.dialect.types import MEMORY_KINDS, MeshTensor, Topology
from shardy_py.values import frozen

_ASSIGNMENT = re.compile(r"(.+)@([^@/#]+(?:/cpu)?)(?:#(\w+))?(?:/(\d+))?")


@frozen
class MeshAssignment:
    """The mesh of a name, and perhaps its stage and the kind of memory.

    >>> str(MeshAssignment("m1", 0)), str(MeshAssignment("m1", memory_kind="pinned_host"))
    ('m1/0', 'm1#pinned_host')
    """

    mesh: str
    stage: int | None = None
    memory_kind: str = ""

    def type_of(self, tensor: object) -> MeshTensor:
        """Return the type of a tensor there."""
        return MeshTensor(self.mesh, tensor, memory_kind=self.memory_kind)  # type: ignore[arg-type]

    def __str__(self) -> str:
        memory = f"#{self.memory_kind}" if self.memory_kind else ""
        return f"{self.mesh}{memory}" + (f"/{self.stage}" if self.stage is not None else "")


def parse_assignments(items: Iterable[str]) -> dict[str, MeshAssignment]:
    """Return name to assignment.

    Raises:
        OptionError: an item is not ``name@mesh``, ``name@mesh/stage`` or ``name@mesh#memory``.
    """
    result: dict[str, MeshAssignment] = {}
    for item in items:
        match = _ASSIGNMENT.fullmatch(item.strip())
        if match is None or (match[3] and match[3] not in MEMORY_KINDS):
            hint = "write name@mesh, name@mesh/stage, or name@mesh#pinned_host"
            raise OptionError(Diagnostic("invalid-assignment", f"{item!r} is not a valid assignment", hint=hint))
        result[match[1]] = MeshAssignment(match[2], None if match[4] is None else int(match[4]), match[3] or "")
    return result


def indexed(assignments: Mapping[str, MeshAssignment]) -> dict[int, MeshAssignment]:
    """Return number to assignment of arguments or results.

    Raises:
        OptionError: a name is not a number.
    """
    for name in assignments:
        if not name.isdecimal():
            message, hint = f"{name!r} is not the number of an argument or result", "write 0@mesh"
            raise OptionError(Diagnostic("invalid-assignment", message, hint=hint))
    return {int(name): value for name, value in assignments.items()}


def check_numbers(assignments: Iterable[str], noun: str, count: int) -> None:
    """Check that arguments or results that are assigned by number exist.

    Args:
        assignments: The assignments, such as ``0@m0``.
        noun: What is numbered.
        count: How many there are.

    Raises:
        OptionError: one does not exist.
    """
    for number, value in indexed(parse_assignments(assignments)).items():
        if number >= count:
            message = f"{noun} {number} is assigned to the mesh {value.mesh!r}, but there is none of this number"
            known = f"there are {noun}s 0 to {count - 1}" if count else f"there are no {noun}s"
            raise OptionError(Diagnostic(f"unknown-{noun}", message, hint=known))


def check_meshes(assignments: Mapping[str, MeshAssignment], topology: Topology) -> None:
    """Check that the meshes of assignments are in a topology.

    Raises:
        OptionError: one is not.
    """
    for name, value in assignments.items():
        if value.mesh not in topology.names:
            message = f"{name} is assigned to the mesh {value.mesh!r}, which is not in the topology"
            known = ", ".join(topology.names)
            raise OptionError(Diagnostic("unknown-mesh", message, hint=f"its meshes are {known}"))

"""Bytes that each device sends, counted in the final HLO of a program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_COLLECTIVE = re.compile(r"= (.*?) (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")
_SHAPE = re.compile(r"\b([a-z]+\d*(?:e\dm\d\w*)?)\[([\d,]*)\]")
_CALLED = re.compile(r"(?:body|to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'known_trip_count":\{"n":"(\d+)"')
_GROUPS = re.compile(r"replica_groups=\{\{([\d,]+)\}")
_MESH_GROUPS = re.compile(r"replica_groups=mesh\[([^\]]*)\].*? \{([^}]*)\}")
_AXIS_SIZE = re.compile(r"'([^']+)'=(\d+)")
_AXIS = re.compile(r"'([^']+)'(?::\(\d+\)(\d+))?")
_IOTA_GROUPS = re.compile(r"replica_groups=\[\d+,(\d+)\]")


def moved_bytes(hlo: str) -> float:
    """Return the bytes that a device sends, at least, for the collectives of a program.

    Loops count as often as they run, where that is known, and a branch as the largest one.

    Args:
        hlo: The text of the final module.
    """
    bodies, entry = _computations(hlo)
    done: dict[str, float] = {}
    return _bytes_of(entry, bodies, done)


def _computations(hlo: str) -> tuple[dict[str, list[str]], str]:
    bodies: dict[str, list[str]] = {}
    entry = name = ""
    for line in hlo.splitlines():
        match = _COMPUTATION.match(line)
        if match:
            name = match[1]
            bodies[name] = []
            entry = name if line.startswith("ENTRY") else entry
        elif name:
            bodies[name].append(line)
    return bodies, entry


def _bytes_of(name: str, bodies: Mapping[str, list[str]], done: dict[str, float]) -> float:
    if name in done:
        return done[name]
    done[name] = total = 0.0
    for line in bodies.get(name, ()):
        collective = _COLLECTIVE.search(line)
        if collective:
            total += _sent(collective[2], _size(collective[1]), line)
            continue
        trips = _TRIPS.search(line)
        total += sum(_bytes_of(called, bodies, done) for called in _CALLED.findall(line)) * int(
            trips[1] if trips else 1
        )
        branches = _BRANCHES.search(line)
        if branches:
            names = [item.strip().lstrip("%") for item in branches[1].split(",")]
            total += max(_bytes_of(called, bodies, done) for called in names)
    done[name] = total
    return total


def _size(types: str) -> int:
    return sum(
        _width(element) * prod(map(int, filter(None, sizes.split(",")))) for element, sizes in _SHAPE.findall(types)
    )


def _width(element: str) -> int:
    bits = re.search(r"\d+", element)
    return max(1, int(bits[0]) // 8) if bits else 1


def _sent(kind: str, size: int, line: str) -> float:
    """Return the bytes that a device sends for a collective, by the size of its result."""
    if kind == "collective-permute":
        return size
    count = _group_size(line)
    factors = {
        "all-reduce": 2 * (count - 1) / count,
        "all-gather": (count - 1) / count,
        "reduce-scatter": count - 1,
        "all-to-all": (count - 1) / count,
    }
    return factors[kind] * size


def _group_size(line: str) -> int:
    """Return the number of devices in each group of a collective.

    Raises:
        ValueError: the groups are in another notation.
    """
    groups, iota, mesh = (pattern.search(line) for pattern in (_GROUPS, _IOTA_GROUPS, _MESH_GROUPS))
    if groups:
        return len(groups[1].split(","))
    if iota:
        return int(iota[1])
    if mesh:
        sizes = {name: int(size) for name, size in _AXIS_SIZE.findall(mesh[1])}
        return prod(int(part or sizes[name]) for name, part in _AXIS.findall(mesh[2]))
    raise ValueError(f"unknown groups: {line.strip()}")

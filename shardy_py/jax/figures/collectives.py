"""Collectives of an HLO module, with the bytes that one device sends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod

from shardy_py.jax.figures.hlo_text import HloTextComputation, HloTextInstruction, shape_bytes
from shardy_py.jax.figures.loops import runs_of
from shardy_py.jax.figures.values import XlaCollective

_KINDS = {
    "all-gather": "all_gather",
    "all-reduce": "all_reduce",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "ragged-all-to-all": "all_to_all",
    "collective-permute": "collective_permute",
    "collective-broadcast": "collective_broadcast",
}
_LISTED = re.compile(r"replica_groups=\{(\{[\d,]*\})")
_TILED = re.compile(r"replica_groups=\[\d+,(\d+)\]<=")
_MESH = re.compile(r"replica_groups=@?mesh\w*\[([^\]]*)\].*?\{('[^}]*)\}")
_AXIS = re.compile(r"'(\w+)'(?::\(\d+\)(\d+))?")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")
_OP_NAME = re.compile(r'op_name="([^"]*)"')


def list_collectives(computations: Mapping[str, HloTextComputation], devices: int) -> Iterator[XlaCollective]:
    """Yield the collectives of a module in the order of its text.

    Args:
        computations: The computations of the module.
        devices: The number of devices, for groups that are not written out.
    """
    for name, runs in runs_of(computations).items():
        shapes = {item.name: item.shape for item in computations[name].instructions}
        for item in computations[name].instructions:
            kind = _KINDS.get(item.opcode.removesuffix("-start"))
            if kind is not None:
                yield _collective(item, kind, shapes, devices, runs)


def group_size(rest: str, devices: int) -> int:
    """Return the number of devices in the first group of a collective, in any of the forms that XLA writes.

    >>> group_size("replica_groups={{0,2},{1,3}}", 4), group_size("replica_groups=[2,4]<=[8]", 8)
    (2, 4)
    >>> group_size("replica_groups=mesh['a'=4,'b'=2], device_ids=([4,2]T(1,0)) {'a':(1)2}", 8)
    2
    """
    listed, tiled, mesh = _LISTED.search(rest), _TILED.search(rest), _MESH.search(rest)
    if listed is not None:
        return len(re.findall(r"\d+", listed.group(1)))
    if tiled is not None:
        return int(tiled.group(1))
    if mesh is not None:
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", mesh.group(1))}
        return prod(int(part) if part else sizes[name] for name, part in _AXIS.findall(mesh.group(2)))
    return devices


def _collective(
    item: HloTextInstruction, kind: str, shapes: Mapping[str, str], devices: int, runs: float
) -> XlaCollective:
    operands = [shape_bytes(shapes[name]) for name in item.operand_names]
    is_permute = kind == "collective_permute"
    group = devices if is_permute else group_size(item.rest, devices)
    source = _OP_NAME.search(item.rest)
    # Each operand by itself: XLA combines collectives of which an estimate rounds up the bytes.
    sent = sum(_permuted(item.rest, size, devices) if is_permute else _sent(kind, size, group) for size in operands)
    return XlaCollective(kind, len(operands), group, sent, runs, "" if source is None else source.group(1))


def _permuted(rest: str, before: int, devices: int) -> int:
    """Return the bytes that a device sends in a permutation on average: some send to themselves, or not at all."""
    pairs = _PAIRS.search(rest)
    if pairs is None:
        return before
    moving = sum(source != target for source, target in re.findall(r"(\d+),(\d+)", pairs.group(1)))
    return round(before * moving / devices)


def _sent(kind: str, before: int, group: int) -> int:
    """Return the bytes that one device sends, rounded up, by the formulas of `shardy_py.cost.estimates`."""
    if kind == "all_gather":
        return (group - 1) * before
    if kind == "all_reduce":
        return -(-2 * (group - 1) * before // group)
    return before if kind.startswith("collective") else -(-(group - 1) * before // group)

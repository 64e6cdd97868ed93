"""Bytes that a device sends in collectives, as ring algorithms do, with explicit shardings before and after."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from math import prod

from shardy_py.ir.graph.op_names import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_SLICE,
    ALL_TO_ALL,
    COLLECTIVE_PERMUTE,
    REDUCE_SCATTER,
)
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.interfaces.local_ops import LocalCollective
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import permutation_pairs
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.element_types import mlir_element_bits
from shardy_py.transforms.finish.collectives.plan import plan_collectives

_MOST_DEVICES = 4096
"""The size of a mesh beyond which all devices count as senders of a permutation."""


@lru_cache(maxsize=65536)
def shard_bytes(type_: Type, sharding: TensorSharding | None, mesh: Mesh) -> float:
    """Return the bytes of a shard with its padding; 0 where the type does not tell."""
    if not isinstance(type_, TensorType) or not type_.is_static:
        return 0.0
    bits = mlir_element_bits(type_.element_type) or 32
    shape = type_.shape if sharding is None or not sharding.dim_shardings else sharding.local_shape(type_.shape, mesh)
    return prod(size or 0 for size in shape) * bits / 8


@lru_cache(maxsize=65536)
def reshard_bytes(type_: Type, source: TensorSharding, target: TensorSharding, mesh: Mesh) -> float | None:
    """Return the bytes of the collectives that lead from one sharding to another; None where none do."""
    if source.is_equivalent(target):
        return 0.0
    plan = plan_collectives(source, target, getattr(type_, "shape", ()), mesh)
    if plan is None:
        return None
    total, current = 0.0, source
    for step in plan:
        size = 1
        if step.name == ALL_GATHER:
            size = axes_size(step.value.axes(), mesh)  # type: ignore[union-attr]
        elif step.name == ALL_TO_ALL:
            size = axes_size([axis for item in step.value.params for axis in item.axes], mesh)  # type: ignore[union-attr]
        total += _sent(step.name, shard_bytes(type_, current, mesh), size, (current, step.out_sharding, mesh))
        current = step.out_sharding
    return total if current.is_equivalent(target, ignore_unreduced_axes=True) else None


def is_one_reduce_scatter(
    type_: Type, source: TensorSharding, target: TensorSharding, axes: Collection[AxisRef], mesh: Mesh
) -> bool:
    """Return whether an all-reduce along some axes is one reduce-scatter together with what leads to a target."""
    plan = plan_collectives(source, target, getattr(type_, "shape", ()), mesh)
    if plan is None or len(plan) != 1 or plan[0].name != ALL_SLICE:
        return False
    return set(plan[0].value.axes()) == set(axes)  # type: ignore[union-attr]


def all_reduce_bytes(type_: Type, sharding: TensorSharding | None, axes: tuple[AxisRef, ...], mesh: Mesh) -> float:
    """Return the bytes of an all-reduce."""
    return _sent(ALL_REDUCE, shard_bytes(type_, sharding, mesh), axes_size(axes, mesh), None)


def collective_bytes(op: Op, source: TensorSharding | None, mesh: Mesh) -> float:
    """Return the bytes of a collective of Shardy; 0 for one that sends nothing.

    Args:
        op: The collective.
        source: The sharding of its operand.
        mesh: The mesh.
    """
    before = shard_bytes(op.operands[0].type, source, mesh)
    out = op.program.sharding(op.results[0])
    moved = (source, out, mesh) if source is not None and out is not None else None
    return _sent(op.name, before, axes_size(moved_axes(op), mesh), moved)


def moved_axes(op: Op) -> tuple[AxisRef, ...]:
    """Return the axes along which a collective moves or combines data; () for a permutation and a slice."""
    if op.name == ALL_GATHER:
        return tuple(op.attributes["gathering_axes"].axes())
    if op.name == ALL_REDUCE:
        return tuple(op.attributes["reduction_axes"].axes)
    if op.name == REDUCE_SCATTER:
        return tuple(op.attributes["reduce_scatter_axes"].axes())
    if op.name == ALL_TO_ALL:
        return tuple(axis for item in op.attributes["params"].params for axis in item.axes)
    return ()


def _sent(name: str, before: float, size: int, moved: tuple[TensorSharding, TensorSharding, Mesh] | None) -> float:
    """Return the bytes that one device sends of a shard.

    Args:
        name: The name of the collective.
        before: The bytes of the shard before it.
        size: The number of devices of a group.
        moved: For a permutation the shardings before and after, and the mesh.
    """
    if name == ALL_GATHER:
        return before * (size - 1)
    if name == ALL_REDUCE:
        return 2 * before * (size - 1) / size
    if name in (REDUCE_SCATTER, ALL_TO_ALL):
        return before * (size - 1) / size
    if name == COLLECTIVE_PERMUTE:
        return before * (1.0 if moved is None else _senders(*moved))
    return 0.0


@lru_cache(maxsize=1024)
def _senders(source: TensorSharding, target: TensorSharding, mesh: Mesh) -> float:
    """Return the part of the devices that send to another one in a permutation."""
    if mesh.total_size > _MOST_DEVICES:
        return 1.0
    pairs = permutation_pairs(source, mesh, target, mesh)
    return sum(first != second for first, second in pairs) / max(mesh.total_size, 1)


def sends_of(collective: LocalCollective, devices: int) -> float:
    """Return how often a device sends its operand in a collective, on average, by ring algorithms.

    Args:
        collective: The collective.
        devices: The number of all devices.
    """
    if collective.kind == "collective_permute":
        return sum(source != target for source, target in collective.groups) / devices
    size = max((len(group) for group in collective.groups), default=1)
    if collective.kind == "all_gather":
        return size - 1.0
    return (2.0 if collective.kind == "all_reduce" else 1.0) * (size - 1) / size

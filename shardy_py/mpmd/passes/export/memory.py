"""The attributes of arguments and results of fragments that say where their buffers are and who may overwrite them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Any

from shardy_py.api.summary import local_shape
from shardy_py.ir.graph.program import Op, Value
from shardy_py.mpmd.dialect.calls import attributes_at, block_of
from shardy_py.mpmd.dialect.fragments import is_fragment
from shardy_py.mpmd.dialect.types import PINNED_HOST, MeshTensor, Topology, mesh_tensor_of
from shardy_py.support.element_types import mlir_element_bits

ARGUMENTS, RESULTS = "arg_attrs", "res_attrs"
MEMORY_KIND = "mhlo.memory_kind"
LAYOUT = "mhlo.layout_mode"
DONOR = "jax.buffer_donor"


def argument_attributes(op: Op) -> list[dict[str, Any]]:
    """Return the attributes of the arguments of a fragment."""
    return attributes_at(op, ARGUMENTS, len(op.operands))


def result_attributes(op: Op) -> list[dict[str, Any]]:
    """Return the attributes of the results of a fragment."""
    return attributes_at(op, RESULTS, len(op.results))


def set_fragment_attributes(op: Op, arguments: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]) -> None:
    """Set the attributes of the arguments and results of a fragment, empty ones included."""
    op.attributes[ARGUMENTS] = tuple(dict(item) for item in arguments)
    op.attributes[RESULTS] = tuple(dict(item) for item in results)


def is_on_host(value: Value, attributes: dict[str, Any]) -> bool:
    """Return whether a value is in the memory of the host, by its type or by its attributes."""
    type_ = mesh_tensor_of(value)
    return attributes.get(MEMORY_KIND) == PINNED_HOST or (type_ is not None and type_.is_on_host)


def function_argument_attributes(function: Op) -> dict[int, dict[str, Any]]:
    """Return the id of each argument of a function to its attributes."""
    arguments = block_of(function).arguments
    items = attributes_at(function, ARGUMENTS, len(arguments))
    return {value.id: item for value, item in zip(arguments, items, strict=True)}


def host_values(function: Op) -> set[int]:
    """Return the ids of the arguments of a function, and of the results of its ops, that are on the host."""
    attributes = function_argument_attributes(function)
    ids = {value.id for value in block_of(function).arguments if is_on_host(value, attributes[value.id])}
    for op in block_of(function).ops:
        items = result_attributes(op) if is_fragment(op) else [{} for _ in op.results]
        ids |= {value.id for value, item in zip(op.results, items, strict=True) if is_on_host(value, item)}
    return ids


def bytes_per_device(type_: MeshTensor, topology: Topology) -> Fraction:
    """Return the bytes of a tensor on each device of its mesh; as in the reference, a boolean is one bit."""
    shape = tuple(size or 0 for size in type_.tensor.shape)
    mesh = topology.mesh(type_.mesh)
    known = set() if mesh is None else {axis.name for axis in mesh.axes}
    if type_.sharding is not None and all(axis.name in known for axis in type_.sharding.axes()):
        shape = local_shape(shape, type_.sharding, mesh)
    element = type_.tensor.element_type
    return Fraction(prod(shape) * (1 if element == "i1" else mlir_element_bits(element) or 32), 8)

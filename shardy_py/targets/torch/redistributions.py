"""Redistributions: the communication of a program by node, module and source line."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from attrs import frozen

from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.types import TensorType
from shardy_py.layout.element_types import bit_width
from shardy_py.plugins import Registry
from shardy_py.sharding.collectives import ListOfAxisRefLists
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.targets.reshard_ops import RESHARDS
from shardy_py.targets.torch.explicit import explicit_program
from shardy_py.targets.torch.placements import Placement, placements_of


@frozen
class Redistribution:
    """One communication.

    Args:
        kind: The collective: ``all_gather``, ``all_reduce``, ``reduce_scatter``, ``all_to_all`` and so on.
        node: The node whose tensor is moved.
        module: The path of the module that the node belongs to, or "".
        location: The line of the source, or "".
        before: The placements before; partial where an all-reduce follows.
        after: The placements behind.
        bytes: The bytes of the tensor's shard on one device before.
    """

    kind: str
    node: str
    module: str
    location: str
    before: tuple[Placement, ...]
    after: tuple[Placement, ...]
    bytes: int

    def __str__(self) -> str:
        before, after = (f"({', '.join(map(str, item))})" for item in (self.before, self.after))
        place = " at ".join(part for part in (self.module, self.location) if part)
        return f"{self.kind} of {self.node}: {before} -> {after}, {self.bytes} bytes" + (f", {place}" if place else "")


def list_redistributions(program: Program, registry: Registry, *, is_explicit: bool) -> tuple[Redistribution, ...]:
    """Return all communication of a propagated program, in program order.

    Args:
        program: The program.
        registry: What is known about ops.
        is_explicit: Whether it has its collectives already.

    Raises:
        UnsupportedError: a sharding has no placements.
    """
    explicit = program if is_explicit else explicit_program(program, registry)
    return tuple(_found(explicit))


def _found(program: Program) -> Iterator[Redistribution]:
    for op in program.walk():
        if op.name in RESHARDS and op.name != "sdy.all_slice" and op.results:
            yield _redistribution(program, op)


def _redistribution(program: Program, op: Op) -> Redistribution:
    source = _source(op.operands[0])
    origin = program.origin
    node = origin.node_names.get(source.id, "").partition("/")[0]
    maker = source.defining_op
    before, after = program.shardings.get(op.operands[0].id), program.shardings.get(op.results[0].id)
    return Redistribution(
        op.name.removeprefix("sdy."),
        node,
        origin.module_paths.get(maker.id, "") if maker is not None else "",
        maker.location if maker is not None else "",
        _with_partial(_placements(program, before, node), program, op),
        _placements(program, after, node),
        _shard_bytes(program, op.operands[0], before),
    )


def _source(value: Value) -> Value:
    """Return the tensor that one or several collectives move."""
    while value.defining_op is not None and value.defining_op.name in RESHARDS:
        value = value.defining_op.operands[0]
    return value


def _mesh(program: Program, sharding: TensorSharding | None) -> Mesh:
    if sharding is None:
        return next(iter(program.meshes.values()), Mesh())
    return sharding.mesh if isinstance(sharding.mesh, Mesh) else program.meshes[sharding.mesh]


def _placements(program: Program, sharding: TensorSharding | None, name: str) -> tuple[Placement, ...]:
    return placements_of(sharding, _mesh(program, sharding), name=name)


def _with_partial(found: tuple[Placement, ...], program: Program, op: Op) -> tuple[Placement, ...]:
    """Return the placements before a reduction, partial along its axes."""
    reduced = op.attributes.get("reduction_axes") or op.attributes.get("reduce_scatter_axes")
    if reduced is None:
        return found
    axes = reduced.axes() if isinstance(reduced, ListOfAxisRefLists) else reduced.axes
    names = {axis.name for axis in axes}
    reduction = str(op.attributes.get("reduction_op", "sum"))
    mesh = _mesh(program, program.shardings.get(op.results[0].id))
    return tuple(
        Placement("partial", reduction=reduction) if axis.name in names else item
        for axis, item in zip(mesh.axes, found, strict=True)
    )


def _shard_bytes(program: Program, value: Value, sharding: TensorSharding | None) -> int:
    type_ = value.type
    if not isinstance(type_, TensorType):
        return 0
    shape = type_.shape if sharding is None else sharding.local_shape(type_.shape, _mesh(program, sharding))
    return prod(size or 0 for size in shape) * (bit_width(type_.element_type) or 0) // 8

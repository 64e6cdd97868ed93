"""Redistributions: the communication of a program by node, module and source line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from attrs import field

from shardy_py.api.options import LocalOptions
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.plugins import Registry
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.op_attributes import ListOfAxisRefLists
from shardy_py.sharding.shard_positions import devices_of
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.torch.parallel.explicit import explicit_program
from shardy_py.torch.parallel.localized import Localized, localized, moved_tensor
from shardy_py.torch.parallel.placements import Placement
from shardy_py.torch.parallel.split_meshes import SplitMesh, split_mesh
from shardy_py.transforms.exported_ops import RESHARDS
from shardy_py.values import frozen

_WIDTH = re.compile(r"\d+")


@frozen
class Redistribution:
    """One communication.

    Args:
        kind: The collective: ``all_gather``, ``all_reduce``, ``reduce_scatter``, ``all_to_all`` and so on. Where sizes
            do not divide, an exchange may be a gather or several. An op that cannot run on shards has gathers, too.
        node: The node whose tensor is moved.
        module: The path of the module that the node belongs to, or "".
        location: The line of the source, or "".
        before: The placements before; partial where an all-reduce follows.
        after: The placements behind.
        bytes: The bytes of the tensor's shard on one device before.
        mesh: The mesh whose dimensions the placements go along. Where some tensor is sharded along a part of an axis,
            it is the mesh of the program with that axis split. The order of several axes of one dimension is not shown.
    """

    kind: str
    node: str
    module: str
    location: str
    before: tuple[Placement, ...]
    after: tuple[Placement, ...]
    bytes: int
    mesh: Mesh = field(factory=Mesh, repr=False)

    def __str__(self) -> str:
        before, after = (f"({', '.join(map(str, item))})" for item in (self.before, self.after))
        place = " at ".join(part for part in (self.module, self.location) if part)
        return f"{self.kind} of {self.node}: {before} -> {after}, {self.bytes} bytes" + (f", {place}" if place else "")


def list_redistributions(
    program: Program, registry: Registry, *, is_explicit: bool, optimize: bool = True
) -> tuple[Redistribution, ...]:
    """Return all communication of a propagated program, in program order: the collectives that its devices run.

    Args:
        program: The program.
        registry: What is known about ops.
        is_explicit: Whether it has its collectives already.
        optimize: Whether collectives are moved to where they send the fewest bytes, as `Result.to_torch` does.

    Raises:
        ShardyError: an op has no local form.
    """
    explicit = program if is_explicit else explicit_program(program, registry)
    local = localized(explicit, registry, options=LocalOptions(optimize=optimize))
    return tuple(_each_redistribution(local.moved, local))


def _each_redistribution(program: Program, local: Localized) -> Iterator[Redistribution]:
    mesh = next(iter(program.meshes.values()), Mesh())
    moves = [op for op in program.walk() if op.id in local.collectives]
    values = [value for op in moves for value in (*op.operands, *op.results)]
    shardings = [program.shardings[value.id] for value in values if value.id in program.shardings]
    split = split_mesh(mesh, [axis for op in moves for axis in _reduced_axes(op)] + _all_axes(shardings))
    for op in moves:
        for collective in local.collectives[op.id]:
            yield _redistribution(program, op, collective, local.source(op, collective), split)


def _all_axes(shardings: Sequence[TensorSharding]) -> list[AxisRef]:
    return [axis for sharding in shardings for item in sharding.dim_shardings for axis in item.axes]


def _redistribution(program: Program, op: Op, collective: Op, moved: Value, split: SplitMesh) -> Redistribution:
    source = moved_tensor(moved)
    origin = program.origin
    maker = source.defining_op
    before = program.shardings.get(moved.id)
    placements = _placements(before, split)
    if op.name in RESHARDS:
        after = _placements(program.shardings.get(op.results[0].id), split)
    else:
        after = _gathered(placements, collective, split.mesh)
    kind = collective.name.rpartition(".")[2]
    # A look-up reduces the elements that are looked up, and not the operand that would be gathered.
    is_look_up = kind == "all_reduce" and not _reduced_axes(op)
    return Redistribution(
        kind,
        origin.node_names.get(source.id, "").partition("/")[0],
        origin.module_paths.get(maker.id, "") if maker is not None else "",
        maker.location if maker is not None else "",
        _with_partial(placements, op, split),
        after,
        _shard_bytes(collective.operands[0], None, split.original)
        if is_look_up
        else _shard_bytes(moved, before, split.original),
        split.mesh,
    )


def _placements(sharding: TensorSharding | None, split: SplitMesh) -> tuple[Placement, ...]:
    """Return the placements along the axes of the split mesh."""
    placements = {axis.name: Placement() for axis in split.mesh.axes}
    if sharding is not None:
        for dim, item in enumerate(sharding.dim_shardings):
            placements.update((part, Placement("shard", dim)) for axis in item.axes for part in split.parts(axis))
        partial = Placement("partial", reduction="sum")
        placements.update((part, partial) for axis in sharding.unreduced_axes for part in split.parts(axis))
    return tuple(placements.values())


def _gathered(before: tuple[Placement, ...], collective: Op, mesh: Mesh) -> tuple[Placement, ...]:
    """Return placements without the axes along which the devices of a group of a collective differ."""
    devices = devices_of(mesh)
    places = [devices.index(device) for device in collective.attributes["groups"][0]]
    placements, count = [], mesh.total_size
    for axis, item in zip(mesh.axes, before, strict=True):
        count //= axis.size
        is_moved = len({place // count % axis.size for place in places}) > 1
        placements.append(Placement() if is_moved else item)
    return tuple(placements)


def _with_partial(placements: tuple[Placement, ...], op: Op, split: SplitMesh) -> tuple[Placement, ...]:
    """Return the placements before a reduction, partial along its axes."""
    names = {part for axis in _reduced_axes(op) for part in split.parts(axis)}
    partial = Placement("partial", reduction=str(op.attributes.get("reduction_op", "sum")))
    return tuple(
        partial if axis.name in names else item for axis, item in zip(split.mesh.axes, placements, strict=True)
    )


def _reduced_axes(op: Op) -> Sequence[AxisRef]:
    """Return the axes along which a collective reduces."""
    reduced = op.attributes.get("reduction_axes") or op.attributes.get("reduce_scatter_axes")
    if reduced is None:
        return ()
    return tuple(reduced.axes() if isinstance(reduced, ListOfAxisRefLists) else reduced.axes)


def _shard_bytes(value: Value, sharding: TensorSharding | None, mesh: Mesh) -> int:
    type_ = value.type
    if not isinstance(type_, TensorType):
        return 0
    shape = type_.shape if sharding is None else sharding.local_shape(type_.shape, mesh)
    return prod(size or 0 for size in shape) * _element_bytes(type_.element_type)


def _element_bytes(element_type: str) -> int:
    """Return the bytes of an element in PyTorch's memory, where a boolean takes one."""
    bits = int(_WIDTH.findall(element_type)[0])
    return max(bits // 8, 1) * (2 if element_type.startswith("complex") else 1)

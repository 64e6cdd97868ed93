"""Features ``sharding_constraint``, ``reshard``, ``propagation_barrier``, ``sharding_group``, ``maximal``."""

from __future__ import annotations

from attrs import evolve

from shardy_py.ir.graph.op_names import CONSTRAINT, PROPAGATION_BARRIER, RESHARD, SHARDING_GROUP
from shardy_py.oracle.generate.program import BlockBuilder, GeneratedValue


def constraint(block: BlockBuilder) -> None:
    """A sharding constraint, used later or dangling."""
    value = block.value()
    sharding = block.sharding(value.shape)
    text = f"sdy.sharding_constraint {value.name} {sharding} : {value.type}"
    result = block.raw(CONSTRAINT, [value], [(value.shape, value.dtype)], text)[0]
    if block.choices.chance(40):
        block.values.remove(result)


def reshard(block: BlockBuilder) -> None:
    """A reshard, which does not propagate."""
    value = block.value()
    style = evolve(block.module.style, priorities=0)
    text = f"sdy.reshard {value.name} {block.sharding(value.shape, style)} : {value.type}"
    block.raw(RESHARD, [value], [(value.shape, value.dtype)], text)


def single_device(block: BlockBuilder) -> None:
    """A scalar that goes to a single device, or from there to a mesh; nothing where no mesh is of a single device."""
    single = [mesh for mesh in block.module.meshes if "device_ids" in mesh.body and not mesh.axes]
    if not single or block.without:
        return
    value = block.tensor(())
    moved = block.raw(RESHARD, [value], [((), "f32")], _to(value, f"<{single[0].reference}, []>"))[0]
    if block.choices.chance(70):
        block.raw(RESHARD, [moved], [((), "f32")], _to(moved, f"<{block.module.mesh.reference}, []>"))


def _to(value: GeneratedValue, sharding: str) -> str:
    return f"sdy.reshard {value.name} {sharding} : {value.type}"


def barrier(block: BlockBuilder) -> None:
    """A propagation barrier of any direction, often with its operand used elsewhere, too."""
    value = block.value()
    direction = block.choices.pick(("FORWARD", "BACKWARD", "NONE"))
    text = f"sdy.propagation_barrier {value.name} allowed_direction={direction} : {value.type}"
    block.raw(PROPAGATION_BARRIER, [value], [(value.shape, value.dtype)], text)


def group(block: BlockBuilder) -> None:
    """A value put into a sharding group; the values of a group have one shape.

    Manual computations and groups do not mix: their values are seen with different meshes.
    """
    if block.without:
        return
    groups = block.module.groups
    if groups and block.choices.chance(70):
        number = block.choices.pick(sorted(groups))
        value = block.find(lambda item: item.shape == groups[number])
    else:
        number = len(groups)
        value = block.value(low=1)
    if value is None or value.name in block.module.grouped:
        return
    block.module.grouped.add(value.name)
    groups[number] = value.dims
    text = f"sdy.sharding_group {value.name} group_id={number} : {value.type}"
    block.raw(SHARDING_GROUP, [value], [], text)


EMITTERS = {
    "sharding_constraint": ((4, constraint),),
    "reshard": ((1, reshard),),
    "propagation_barrier": ((2, barrier),),
    "sharding_group": ((3, group),),
    "maximal": ((1, single_device),),
}

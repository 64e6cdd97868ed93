"""Costs of local programs: their collectives as they are written, and their ops on shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from shardy_py.cost.estimates import Cost, Quantity, estimate
from shardy_py.cost.machines.placement import AxisLinks
from shardy_py.cost.machines.profile import Profile
from shardy_py.cost.machines.toml import MachineLike, get_machine
from shardy_py.layout.policies import LayoutPolicy
from shardy_py.plugins import Registry

if TYPE_CHECKING:
    from shardy_py.jax.local import LocalProgram


def estimate_local(
    local: LocalProgram,
    registry: Registry,
    machine: MachineLike | None = None,
    *,
    axes: AxisLinks | None = None,
    layout: str | LayoutPolicy | None = None,
    profile: str | Profile | None = None,
) -> Cost:
    """Return what a local program costs on one device of a machine.

    Args:
        local: The local program.
        registry: The definitions of ops.
        machine: The machine; without one there are no times.
        axes: The links that the axes of the mesh run over, where that is not to follow from names or order.
        layout: A layout policy or its name, to count the bytes that shards take with padding; None for plain bytes.
        profile: The profile of a backend or its name; None for that of the machine.

    Raises:
        OptionError: a mesh does not fit the machine, or there is no such policy or profile.
    """
    program = local.shard_program
    found = None if machine is None else get_machine(machine)
    cost = estimate(program, program.functions["main"], registry, found, axes=axes, layout=layout, profile=profile)
    whole = (cost.flops.value or 0) * local.device_count
    return evolve(
        cost,
        notes=(*cost.notes, *map(str, local.communication)),
        total_flops=Quantity(whole, "FLOP", "the operations of all devices"),
        balance=Quantity(None, "", "a local program does not tell which of its operations are useful"),
    )

"""Costs of local programs: their collectives as they are written, and their ops on shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, get_args

from attrs import evolve

from shardy_py.cost.estimates import Cost, Quantity, estimate
from shardy_py.cost.machines.machine import Machine
from shardy_py.cost.machines.placement import AxisLinks
from shardy_py.cost.machines.profile import Profile, choose_profile
from shardy_py.cost.machines.toml import MachineLike, get_machine
from shardy_py.errors import Diagnostic, OptionError, ShardyError
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.communication import CommunicationChange
from shardy_py.ir.interfaces.local import LocalOps
from shardy_py.layout.policies import LayoutPolicy
from shardy_py.plugins import Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.values import frozen

Partitioner = Literal["shardy_py", "xla"]
"""The partitioner that makes the program of a device: that of this package is counted, that of XLA estimated."""
_HOW = "counted: what one device sends in each collective of the local program, by the formula of its kind"


class CountedProgram(Protocol):
    """A local program of any dialect, as far as its costs are concerned."""

    @property
    def shard_program(self) -> Program:
        """The op graph without shardings: all types are those of shards."""
        ...

    @property
    def mesh(self) -> Mesh:
        """The mesh over all devices."""
        ...

    @property
    def device_count(self) -> int:
        """The number of devices."""
        ...

    @property
    def ops(self) -> LocalOps:
        """The ops for communication."""
        ...

    @property
    def communication(self) -> Sequence[CommunicationChange]:
        """The changes of communication passes."""
        ...

    @property
    def warnings(self) -> Sequence[Diagnostic]:
        """The ops that run on gathered operands."""
        ...


@frozen
class PriceSetting:
    """The machine that programs are priced on, with the options of estimates.

    Args:
        machine: The machine; without one there are no times.
        profile: The profile of the backend.
        axes: The links that the axes of the mesh run over, where that is not to follow from names or order.
        layout: A layout policy or its name; None for plain bytes.
    """

    machine: Machine | None
    profile: Profile
    axes: AxisLinks | None = None
    layout: str | LayoutPolicy | None = None

    @classmethod
    def of(
        cls,
        machine: MachineLike | None,
        *,
        axes: AxisLinks | None = None,
        layout: str | LayoutPolicy | None = None,
        profile: str | Profile | None = None,
    ) -> PriceSetting:
        """Return the setting of a machine and a profile as a caller gives them.

        Raises:
            OptionError: there is no such machine or profile.
        """
        resolved = None if machine is None else get_machine(machine)
        return cls(resolved, choose_profile(profile, resolved), axes, layout)

    def without_partitioner(self) -> PriceSetting:
        """Return the setting for programs whose communication is explicit already."""
        return evolve(self, profile=without_partitioner(self.profile))


def price_local(
    local: CountedProgram,
    registry: Registry,
    machine: MachineLike | None = None,
    *,
    axes: AxisLinks | None = None,
    layout: str | LayoutPolicy | None = None,
    profile: str | Profile | None = None,
    unpartitioned: Quantity | None = None,
) -> Cost:
    """Return what a local program costs on one device of a machine; its collectives are counted, not estimated.

    Args:
        local: The local program.
        registry: The definitions of ops.
        machine: The machine; without one there are no times.
        axes: The links that the axes of the mesh run over, where that is not to follow from names or order.
        layout: A layout policy or its name, to count the bytes that shards take with padding; None for plain bytes.
        profile: The profile of a backend or its name; None for that of the machine. Its partitioner does nothing here.
        unpartitioned: The operations of the program on one device, where they are known.

    Raises:
        OptionError: a mesh does not fit the machine, or there is no such policy or profile.
    """
    setting = PriceSetting.of(machine, axes=axes, layout=layout, profile=profile)
    return count_cost(local, registry, setting, unpartitioned)


def count_cost(
    local: CountedProgram, registry: Registry, setting: PriceSetting, unpartitioned: Quantity | None
) -> Cost:
    """Return what a local program costs under a setting; see `price_local`."""
    program = local.shard_program
    main = program.functions["main"]
    cost = estimate(
        program,
        main,
        registry,
        setting.machine,
        axes=setting.axes,
        layout=setting.layout,
        profile=without_partitioner(setting.profile),
        mesh=local.mesh,
        local_ops=local.ops,
    )
    locations = {op.id: _location(op) for op in program.walk()}
    transfers = (evolve(item, location=locations.get(item.op_id, "")) for item in cost.transfers)
    total, balance = _work_of_all(cost, local.device_count, unpartitioned)
    return evolve(
        cost,
        is_counted=True,
        communication_bytes=evolve(cost.communication_bytes, how=_HOW),
        transfers=tuple(transfers),
        notes=(*cost.notes, *map(str, local.communication)),
        total_flops=total,
        balance=balance,
    )


def without_partitioner(profile: Profile) -> Profile:
    """Return a profile of a compiler that gets programs whose communication is explicit already."""
    return evolve(profile, follows_results=False)


def explicit_setting(machine: MachineLike | None, setting: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an estimate for Shardy's explicit reshards, whatever the compiler does besides."""
    rules = choose_profile(setting["profile"], None if machine is None else get_machine(machine))
    return {**setting, "profile": without_partitioner(rules)}


def add_reason(cost: Cost, error: ShardyError) -> Cost:
    """Return an estimate with a note that says why there is no local program to count in."""
    first = error.diagnostics[0]
    subject = f"{first.location}: " if first.location else ""
    subject += f"'{first.op}' op: " if first.op else ""
    note = f"estimated from shardings, not counted: there is no local program, as {subject}{first.message}"
    return evolve(cost, notes=(*cost.notes, f"{note} [{first.code}]"))


def check_partitioner(name: str) -> None:
    """Check the name of a partitioner.

    Raises:
        OptionError: there is no such partitioner.
    """
    if name not in get_args(Partitioner):
        message = f"{name!r} is not a valid partitioner"
        raise OptionError(Diagnostic("invalid-partitioner", message, hint="give 'shardy_py' or 'xla'"))


def count_operations(program: Program, main: Op, registry: Registry) -> Quantity:
    """Return the operations of a program on one device, whatever its shardings are."""
    return estimate(program, main, registry).total_flops


def _work_of_all(cost: Cost, devices: int, unpartitioned: Quantity | None) -> tuple[Quantity, Quantity]:
    """Return the operations of the whole program, and their share of the operations of all devices."""
    done = (cost.flops.value or 0) * devices
    if unpartitioned is None:
        unknown = Quantity(None, "", "a local program does not tell which of its operations are useful")
        return Quantity(done, "FLOP", "the operations of all devices"), unknown
    ratio = unpartitioned.value / done if done and unpartitioned.value is not None else None
    return unpartitioned, evolve(cost.balance, value=ratio)


def _location(op: Op) -> str:
    """Return the location of an op, or of the first of its users that has one."""
    users = (user for value in op.results for user in value.users)
    return next((item.location for item in (op, *users) if item.location), "")

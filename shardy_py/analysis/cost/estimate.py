"""Estimate of the cost of a finished program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from attrs import define, field

from shardy_py.analysis.cost import flops, liveness, traffic
from shardy_py.analysis.cost.flops import WorkCounter, element_type_of
from shardy_py.analysis.cost.liveness import Liveness
from shardy_py.analysis.cost.runs import RuleOf, Run, Runs
from shardy_py.analysis.cost.sizes import LocalSizes
from shardy_py.analysis.cost.traffic import Traffic
from shardy_py.analysis.cost.transfers import TransferPricer
from shardy_py.analysis.cost.values import Cost, Quantity, Transfer
from shardy_py.analysis.machine.machine import Machine
from shardy_py.analysis.machine.placement import AxisLinks, Placement
from shardy_py.api.memory import policy_of
from shardy_py.ir.graph import Op, Program
from shardy_py.ir.interfaces import ConstantLike, IsTerminator
from shardy_py.ir.op_names import MESH
from shardy_py.layout.policies import LayoutPolicy
from shardy_py.plugins import Registry

_IGNORED = (MESH,)


def estimate(
    program: Program,
    main: Op,
    registry: Registry,
    machine: Machine | None = None,
    *,
    axes: AxisLinks | None = None,
    layout: str | LayoutPolicy | None = None,
    rule_of: RuleOf | None = None,
) -> Cost:
    """Return the cost of a program on one device of a machine.

    Args:
        program: The program, with a sharding for each value and all communication explicit.
        main: Its main function.
        registry: The definitions of ops.
        machine: The machine; without one there are no times.
        axes: The links that the axes of the meshes run over, where that is not to follow from names or order.
        layout: A layout policy or its name, to count the bytes that shards take with padding; None for plain bytes.
        rule_of: Gives the rule of an op; by default the registry does.

    Raises:
        OptionError: a mesh does not fit the machine, or there is no such policy.
        UnsupportedError: functions call each other in a circle.
    """
    policy = None if layout is None else policy_of(layout)
    sizes = LocalSizes(program, registry, policy)
    estimator = _Estimator(
        registry,
        machine,
        rule_of or registry.get_sharding_rule,
        sizes,
        Traffic(sizes, registry),
        WorkCounter(sizes, registry),
        TransferPricer(sizes, registry, None if machine is None else Placement(machine, axes or {})),
    )
    runs = Runs(program, main, registry, estimator.rule_of)
    estimator.add(runs)
    estimator.pricer.check_meshes()
    memory = Liveness(program, registry, sizes, estimator.traffic).measure(main)
    devices = max((prod(axis.size for axis in mesh.axes) for mesh in program.meshes.values()), default=1)
    notes = (*runs.notes, *estimator.notes())
    if machine is not None and memory.peak > machine.memory_bytes:
        notes += (f"the peak of {memory.peak} bytes is more than the {machine.memory_bytes} of a device",)
    return _cost(estimator, memory, devices, machine, policy, notes)


@define
class _Estimator:
    """Sum of the costs of ops."""

    registry: Registry
    machine: Machine | None
    rule_of: RuleOf
    sizes: LocalSizes
    traffic: Traffic
    work: WorkCounter
    pricer: TransferPricer
    transfers: list[Transfer] = field(factory=list)
    whole: float = 0.0
    local: float = 0.0
    moved: float = 0.0
    seconds: float = 0.0
    unknown: dict[str, int] = field(factory=dict)
    peaks: dict[str, float] = field(factory=dict)

    def add(self, runs: Iterable[Run]) -> None:
        """Add ops."""
        for run in runs:
            transfer = self.pricer.price(run)
            if transfer is not None:
                self.transfers.append(transfer)
            elif self._computes(run.op):
                self._add_work(run)

    def _computes(self, op: Op) -> bool:
        traits = self.registry.get_traits(op)
        return op.name not in _IGNORED and IsTerminator not in traits and ConstantLike not in traits

    def _add_work(self, run: Run) -> None:
        op = run.op
        work = self.work.count(op, self.rule_of(op))
        # What an op makes of nothing, such as a counter, costs nothing worth counting.
        if not work.is_known and op.operands:
            self.unknown[op.name] = self.unknown.get(op.name, 0) + 1
        moved = self.traffic.bytes_of(op)
        self.whole += run.count * run.parts * work.whole
        self.local += run.count * work.local
        self.moved += run.count * moved
        if self.machine is not None:
            seconds = work.local / self._peak(self.machine, element_type_of(op) or "")
            self.seconds += run.count * max(seconds, moved / self.machine.memory_bandwidth)

    def _peak(self, machine: Machine, element_type: str) -> float:
        found = self.peaks.get(element_type)
        if found is None:
            found, _ = machine.peak(element_type)
            self.peaks[element_type] = found
        return found

    def notes(self) -> Iterator[str]:
        """Yield a note for each thing that could not be counted."""
        if self.unknown:
            names = ", ".join(f"{name} ({count})" for name, count in sorted(self.unknown.items()))
            yield f"no operations are counted for ops without a rule: {names}"
        if self.sizes.unknown:
            yield f"tensors of unknown size count as nothing: {', '.join(self.sizes.unknown)}"


def _cost(
    found: _Estimator,
    memory: liveness.MainMemory,
    devices: int,
    machine: Machine | None,
    policy: LayoutPolicy | None,
    notes: tuple[str, ...],
) -> Cost:
    sent = sum(item.runs * item.bytes for item in found.transfers)
    communicating = sum(item.runs * (item.seconds or 0.0) for item in found.transfers)
    shards = "every dimension divided by its axes and rounded up"
    laid_out = shards if policy is None else f"{shards}, with padding by the layout policy {policy.name}"
    balance = found.whole / (devices * found.local) if found.local else None

    def seconds(value: float, how: str) -> Quantity:
        return Quantity(None, "s", "no machine was given") if machine is None else Quantity(value, "s", how)

    return Cost(
        machine=None if machine is None else machine.name,
        devices=devices,
        layout=None if policy is None else policy.name,
        seconds=seconds(
            found.seconds + communicating, "the time of computing and of communicating, one after the other"
        ),
        compute_seconds=seconds(
            found.seconds,
            "roofline: for each op the longer one of its operations at the machine's peak and its memory traffic",
        ),
        communication_seconds=seconds(communicating, "the formula of each transfer, one after the other"),
        communication_bytes=Quantity(sent, "B", f"what one device sends by the formula of each transfer; {laid_out}"),
        flops=Quantity(found.local, "FLOP", f"{flops.HOW}; for the largest part that a device has of each factor"),
        total_flops=Quantity(found.whole, "FLOP", f"{flops.HOW}; for the whole program"),
        balance=Quantity(balance, "", "the operations of the whole program by those of all devices together"),
        memory_traffic_bytes=Quantity(found.moved, "B", traffic.HOW),
        argument_bytes=Quantity(memory.arguments, "B", f"exact: {laid_out}"),
        result_bytes=Quantity(memory.results, "B", f"exact: {laid_out}"),
        peak_bytes=Quantity(memory.peak, "B", liveness.HOW),
        transfers=tuple(found.transfers),
        notes=notes,
    )

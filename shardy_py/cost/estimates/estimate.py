"""Estimate of the cost of a finished program."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from attrs import evolve, field

from shardy_py.cost.estimates import flops, liveness, traffic
from shardy_py.cost.estimates.flatten import Flattener
from shardy_py.cost.estimates.flops import NOTHING, Work, WorkCounter, element_type_of
from shardy_py.cost.estimates.fusion import CostFusion, CostKernel
from shardy_py.cost.estimates.graph import Node, RuleOf, Section, walk
from shardy_py.cost.estimates.halos import Halo
from shardy_py.cost.estimates.library_kernels import LibraryKernels, Repeats
from shardy_py.cost.estimates.liveness import Liveness, MainMemory
from shardy_py.cost.estimates.merged_communications import Priced
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.cost.estimates.traffic import Traffic
from shardy_py.cost.estimates.transfers import TransferPricer
from shardy_py.cost.estimates.values import Cost, OpCost, Quantity
from shardy_py.cost.machines.machine import Machine
from shardy_py.cost.machines.placement import AxisLinks, MeshPlacement
from shardy_py.cost.machines.profile import Profile, choose_profile
from shardy_py.cost.memory import policy_of
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.op_names import ALL_SLICE
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.local import LocalOps
from shardy_py.ir.interfaces.ops import ConstantLike
from shardy_py.layout.policies import LayoutPolicy
from shardy_py.plugins import Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.support.identity import identity
from shardy_py.values import define


def estimate(
    program: Program,
    main: Op,
    registry: Registry,
    machine: Machine | None = None,
    *,
    axes: AxisLinks | None = None,
    layout: str | LayoutPolicy | None = None,
    rule_of: RuleOf | None = None,
    profile: str | Profile | None = None,
    mesh: Mesh | None = None,
    local_ops: LocalOps | None = None,
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
        profile: The profile of a backend or its name; None for that of the machine.
        mesh: The mesh of the devices that collectives name in a local program.
        local_ops: The ops for communication of a local program.

    Raises:
        OptionError: a mesh does not fit the machine, axes are given without one, or there is no such policy or profile.
        UnsupportedError: functions are recursive.
    """
    if axes and machine is None:
        message = "axes says over which links of a machine the axes of the mesh run, and there is no machine"
        raise OptionError(Diagnostic("no-machine", message, hint="give a machine, or leave axes out"))
    policy = None if layout is None else policy_of(layout)
    rules = choose_profile(profile, machine)
    flattener = Flattener(program, registry, rule_of or registry.get_sharding_rule, rules)
    section = flattener.flatten(main)
    sizes = LocalSizes(program, registry, policy)
    placement = None if machine is None else MeshPlacement(machine, axes or {})
    pricer = TransferPricer(sizes, registry, flattener.rule_of, placement, rules, mesh, local_ops)
    estimator = _Estimator(main, flattener, machine, rules, sizes, pricer, section)
    estimator.run()
    estimator.pricer.check_meshes()
    memory = Liveness(estimator.fusion, sizes, estimator.traffic, estimator.together).measure(main, section)
    devices = max((prod(axis.size for axis in mesh.axes) for mesh in program.meshes.values()), default=1)
    notes = (*flattener.notes, *estimator.notes())
    if machine is not None and memory.peak > machine.memory_bytes:
        notes += (f"the peak of {memory.peak} bytes is more than the {machine.memory_bytes} of a device",)
    return _cost(estimator, memory, devices, policy, notes)


@define(eq=False)
class _Estimator:
    """Sum of the costs of kernels and transfers."""

    main: Op
    flattener: Flattener
    machine: Machine | None
    profile: Profile
    sizes: LocalSizes
    pricer: TransferPricer
    section: Section
    fusion: CostFusion = field(init=False)
    traffic: Traffic = field(init=False)
    priced: list[Priced] = field(factory=list)
    ops: dict[int, OpCost] = field(factory=dict)
    program_flops: float = 0.0
    unknown: dict[str, set[int]] = field(factory=dict)
    folded: set[int] = field(factory=set)
    sending: set[int] = field(factory=set)
    together: dict[int, list[Node]] = field(factory=dict)
    peaks: dict[str, float] = field(factory=dict)

    def run(self) -> None:
        """Count the work, divide it into kernels and price them."""
        counter = WorkCounter(self.sizes, self.profile)
        moving: dict[int, list[Priced]] = {}
        for node in walk(self.section):
            priced = [] if node.sections else self.pricer.price(node)
            if priced:
                moving.setdefault(identity(node.section), []).extend(priced)
                self.priced += priced
                if any(item.transfer.bytes and item.halo is None for item in priced):
                    self.sending.add(identity(node))
            node.work = self._work(node, counter, priced)
        for transfers in moving.values():
            for part in self.pricer.combine(transfers):
                nodes = [item.node for item in part]
                self.together.update((identity(node), nodes) for node in nodes)
        library = LibraryKernels(self.sizes) if self.profile.has_kernel_library else None
        repeats = Repeats(self.sizes) if self.profile.limits_repeats else None
        self.fusion = CostFusion(self._halo_slices(), library, repeats)
        halos: dict[int, int] = {}
        buffers: dict[int, int] = {}
        for item in self.priced:
            if item.halo is None:
                continue
            key, is_fusible = identity(item.node), self.fusion.is_fusible(item.node)
            buffers[key] = buffers.get(key, 0) + _halo_buffers(item.halo, is_fusible=is_fusible)
            if not is_fusible:
                halos[key] = halos.get(key, 0) + item.transfer.bytes
        self.traffic = Traffic(self.sizes, self.fusion, self.profile, halos, buffers, self.flattener.rule_of)
        self.fusion.add(self.section)
        for kernel in self.fusion:
            self._add(kernel)
        for item in self.priced:
            if item.halo is not None and identity(item.node) not in halos:
                sliced = item.node.inputs[item.halo.operand]
                self._add_copies(item.node.op, item.node.runs, self.traffic.halo_bytes(sliced, item.transfer.bytes))
        end = self.main.regions[0].blocks[0].terminator or self.main
        self._add_copies(end, 1.0, self.traffic.returned_bytes(self.section))

    def _halo_slices(self) -> dict[int, list[Node]]:
        """Return nodes that stand for the slices of halos, by the ids of the tensors that they slice."""
        slices: dict[int, list[Node]] = {}
        if self.profile.follows_results:
            for item in self.priced:
                if item.halo is not None:
                    node, tensor = item.node, item.node.inputs[item.halo.operand]
                    slice_ = Node(node.op, node.kind, node.section, [tensor], runs=node.runs, position=node.position)
                    slices.setdefault(identity(tensor), []).append(slice_)
        return slices

    def _work(self, node: Node, counter: WorkCounter, priced: list[Priced]) -> Work:
        op, kind = node.op, node.kind
        if node.sections or ConstantLike in kind.traits:
            return NOTHING
        if kind.is_shardy:
            return self._moved(node, priced)
        if self._is_folded(node):
            return NOTHING
        transfer_kinds = [item.transfer.kind for item in priced if item.halo is None]
        if "all_reduce" in transfer_kinds or (transfer_kinds and not kind.may_communicate):
            return self._moved(node, priced)
        rule = self.flattener.rule_of(op)
        work = counter.count(op, kind, rule)
        if kind.implements("get_windows") and self.profile.follows_results and (masked := self.pricer.masked(node)):
            work = evolve(work, local=work.local + masked)
        if kind.implements("get_choices") and self.profile.fuses_tables:
            work = self._chosen(node, work)
        # What an op makes of nothing, such as a counter, costs nothing worth counting.
        if not work.is_known and op.operands:
            self.unknown.setdefault(op.name, set()).add(op.id)
        self.program_flops += node.runs * node.parts * work.unpartitioned
        return work

    def _chosen(self, node: Node, work: Work) -> Work:
        """Return the work of a choice between a tensor and an update of it: that of a choice of what is updated.

        As XLA's algebraic_simplifier.cc writes the chosen slice into the tensor, if nothing else takes the update.
        """
        choices = None if node.kind.cost is None else node.kind.cost.get_choices(node.op)
        for one, other in () if choices is None else (choices, choices[::-1]):
            tensor, maker = node.inputs[one], node.inputs[one].maker
            if maker is None or maker.kind.cost is None or len(tensor.users) != 1 or maker.section is not node.section:
                continue
            target, elements = maker.kind.cost.get_updated_operand(maker.op), maker.work.writes.get(0)
            if target is None or elements is None or maker.inputs[target] is not node.inputs[other]:
                continue
            if not any(tensor is result for result in node.section.results):
                # What the update reads of the place is read once.
                reads = {other: elements - maker.work.reads.get(target, 0.0)}
                masks = (number for number, item in enumerate(node.inputs) if item.value.shape)
                reads |= {number: elements for number in masks if number not in (one, other)}
                return evolve(work, local=elements, reads=reads, writes={0: elements}, targets={0: other})
        return work

    def _is_folded(self, node: Node) -> bool:
        """Return whether an op computes the same from constants for all elements, as in constant_folding.cc."""
        if not node.inputs or not node.kind.is_folding:
            return False
        for tensor in node.inputs:
            maker = tensor.maker
            if maker is None or not (ConstantLike in maker.kind.traits or identity(maker) in self.folded):
                return False
        self.folded.add(identity(node))
        return True

    def _moved(self, node: Node, priced: list[Priced]) -> Work:
        """Return the work of an op that moves data between devices: an all-reduce adds each element once."""
        elements = float(prod(self.sizes.shape(node.op.results[0])) if node.op.results else 0)
        if any(item.transfer.kind == "all_reduce" for item in priced):
            return Work(local=float(sum(prod(self.sizes.shape(value)) for value in node.op.operands)))
        return Work(reads={0: elements}) if node.op.name == ALL_SLICE else NOTHING

    def _add(self, kernel: CostKernel) -> None:
        root = kernel.root
        if root.carried:
            self._add_copies(root.op, root.runs, self.traffic.carried_bytes(root))
        if root.sections or ConstantLike in root.kind.traits:
            return
        works = [node.work for node in kernel.nodes]
        moved = self.traffic.read_bytes(kernel) if kernel.is_halo else self.traffic.bytes_of(kernel)
        operations = sum([work.local for work in works]) * self.traffic.slices_of(root)
        if self.profile.widens_bfloat16:
            operations += sum(prod(self.sizes.shape(tensor.value)) for tensor in self.traffic.converted(root))
            operations += self.traffic.converted_elements(kernel)
        transcendental = sum([work.transcendentals for work in works])
        seconds = self._seconds(kernel, operations + transcendental, moved)
        op_cost = OpCost(
            root.op.id,
            root.op.name,
            str(root.op.results[0].type) if root.op.results else "",
            root.runs,
            root.runs * operations,
            root.runs * transcendental,
            root.runs * moved,
            None if seconds is None else root.runs * seconds,
            root.op.location,
        )
        earlier = self.ops.get(root.op.id)
        self.ops[root.op.id] = op_cost if earlier is None else _sum(earlier, op_cost)

    def _add_copies(self, op: Op, runs: float, moved: float) -> None:
        """Add what copies of values cost, once for all runs of the op that they are made for."""
        if not moved:
            return
        seconds = None if self.machine is None else moved / self.machine.memory_bandwidth
        op_cost = OpCost(op.id, op.name, "", runs, 0.0, 0.0, moved, seconds, op.location)
        earlier = self.ops.get(op.id)
        self.ops[op.id] = op_cost if earlier is None else _sum(earlier, op_cost)

    def _seconds(self, kernel: CostKernel, operations: float, moved: float) -> float | None:
        """Return the time of one run of a kernel: a roofline; for a collective, that of the copies besides it."""
        if self.machine is None:
            return None
        if identity(kernel.root) in self.sending:
            return self.traffic.added_bytes(kernel.root) / self.machine.memory_bandwidth
        element_type = element_type_of(kernel.root.op) or ""
        peak = self.peaks.get(element_type)
        if peak is None:
            peak = self.peaks[element_type] = self.machine.peak(element_type)[0]
        return max(operations / peak, moved / self.machine.memory_bandwidth)

    def notes(self) -> Iterator[str]:
        """Yield a note for each thing that could not be counted or was assumed."""
        if self.unknown:
            names = ", ".join(f"{name} ({len(ops)})" for name, ops in sorted(self.unknown.items()))
            yield f"no operations are counted for ops without a rule: {names}"
        if self.sizes.unknown:
            yield f"tensors of unknown size count as nothing: {', '.join(self.sizes.unknown)}"
        transfers = [item.transfer for item in self.priced if item.transfer.bytes]
        hoisted = sum(item.is_hoisted for item in transfers)
        if hoisted:
            yield f"{hoisted} transfers run once before their loop, as {self.profile.name} moves them there"
        combined = sum(item.combined > 1 for item in transfers)
        if combined:
            groups = sum(item.combined > 1 and item.combined_with < 0 for item in transfers)
            yield f"{combined} all-reduces become {groups}, as {self.profile.name} combines them"


def _sum(first: OpCost, second: OpCost) -> OpCost:
    """Return the cost of an op that runs in two places."""
    seconds = None if first.seconds is None or second.seconds is None else first.seconds + second.seconds
    return OpCost(
        first.op_id,
        first.name,
        first.result,
        first.runs + second.runs,
        first.flops + second.flops,
        first.transcendentals + second.transcendentals,
        first.bytes + second.bytes,
        seconds,
        first.location,
    )


def _cost(
    estimator: _Estimator, memory: MainMemory, devices: int, policy: LayoutPolicy | None, notes: tuple[str, ...]
) -> Cost:
    machine, ops = estimator.machine, tuple(estimator.ops.values())
    transfers = tuple(item.transfer for item in estimator.priced)
    sent = sum(item.runs * item.bytes for item in transfers)
    communicating = sum(item.runs * (item.seconds or 0.0) for item in transfers)
    computing = sum(item.seconds or 0.0 for item in ops)
    local = sum(item.flops for item in ops)
    shards = "every dimension divided by its axes and rounded up"
    laid_out = shards if policy is None else f"{shards}, with padding by the layout policy {policy.name}"
    # The additions of all-reduces are no part of the program's work.
    useful = sum(item.flops for item in ops if not item.name.startswith("sdy."))
    balance = estimator.program_flops / (devices * useful) if useful else None

    def seconds(value: float, how: str) -> Quantity:
        return Quantity(None, "s", "no machine was given") if machine is None else Quantity(value, "s", how)

    return Cost(
        machine=None if machine is None else machine.name,
        devices=devices,
        layout=None if policy is None else policy.name,
        seconds=seconds(computing + communicating, "the time of computing and of communicating, one after the other"),
        compute_seconds=seconds(
            computing,
            "roofline: for each kernel the longer one of its operations at the machine's peak and its memory traffic",
        ),
        communication_seconds=seconds(communicating, "the formula of each transfer, one after the other"),
        communication_bytes=Quantity(sent, "B", f"what one device sends by the formula of each transfer; {laid_out}"),
        flops=Quantity(local, "FLOP", f"{flops.HOW}; for the largest part that a device has"),
        transcendentals=Quantity(
            sum(item.transcendentals for item in ops), "FLOP", "1 for each element of an op such as an exponential"
        ),
        total_flops=Quantity(estimator.program_flops, "FLOP", f"{flops.HOW}; for the whole program"),
        balance=Quantity(balance, "", "the operations of the whole program by those of all devices together"),
        memory_traffic_bytes=Quantity(sum(item.bytes for item in ops), "B", traffic.HOW),
        argument_bytes=Quantity(memory.arguments, "B", f"exact: {laid_out}"),
        result_bytes=Quantity(memory.results, "B", f"exact: {laid_out}"),
        peak_bytes=Quantity(memory.peak, "B", liveness.HOW),
        transfers=transfers,
        notes=notes,
        profile=estimator.profile.name,
        ops=ops,
        peak_op=memory.peak_op,
        timeline=memory.timeline,
    )


def _halo_buffers(halo: Halo, *, is_fusible: bool) -> int:
    """Return the bytes of a halo in memory beside the shard that is joined with what comes in for an op of its own.

    Of what is gathered, an op of its own reads a slice. A kernel that takes the op reads what is joined of a slice of
    the shard and what comes in.
    """
    if is_fusible:
        return halo.bytes if halo.is_gathered else 2 * (halo.bytes + halo.read_bytes)
    return halo.read_bytes if halo.is_gathered else 0

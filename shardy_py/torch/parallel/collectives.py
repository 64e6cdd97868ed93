"""Collectives over tensors: of simulated devices in one process, and of the processes of ``torch.distributed``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from attrs import field

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.values import define, frozen

Groups = Sequence[Sequence[int]]


class Devices(Protocol):
    """The devices that run a local program; a value is one tensor for each of those that this process has.

    Attributes:
        numbers: The numbers of the devices that this process has.
    """

    numbers: Sequence[int]

    def gather(self, values: Sequence[Any], groups: Groups) -> list[list[Any]]:
        """Return, for each device of this process, the tensors of its group in the order of the group."""
        ...

    def reduce(self, values: Sequence[Any], groups: Groups, combiner: str) -> list[Any]:
        """Return, for each device of this process, the combination of the tensors of its group."""
        ...

    def exchange(self, values: Sequence[Any], groups: Groups, dim: int) -> list[list[Any]]:
        """Return, for each device of this process, its own part of the tensors of its group, in the group's order."""
        ...

    def reduce_scatter(self, values: Sequence[Any], groups: Groups, combiner: str, dim: int) -> list[Any]:
        """Return, for each device of this process, its own part of the combination of the tensors of its group."""
        ...

    def permute(self, values: Sequence[Any], pairs: Groups) -> list[Any]:
        """Return the tensor of the source of each device of this process; zeros where it has none."""
        ...


def _combine(tensors: Sequence[Any], combiner: str) -> Any:
    import torch

    by_name = {"add": torch.add, "mul": torch.mul, "max": torch.maximum, "min": torch.minimum}
    by_name |= {"and": torch.bitwise_and, "or": torch.bitwise_or}
    result = tensors[0]
    for tensor in tensors[1:]:
        result = torch.logical_or(result, tensor) if _is_or(result, combiner) else by_name[combiner](result, tensor)
    return result


def _positions(groups: Groups) -> dict[int, int]:
    """Return the position of each device in its group."""
    return {device: number for group in groups for number, device in enumerate(group)}


def _is_or(tensor: Any, combiner: str) -> bool:
    return _is_bool(tensor) and combiner == "add"


@frozen
class SimulatedDevices(Devices):
    """All devices in this process, one after the other.

    Args:
        count: The number of devices.
    """

    count: int

    @property
    def numbers(self) -> Sequence[int]:  # type: ignore[override]
        """The numbers of all devices."""
        return range(self.count)

    def gather(self, values: Sequence[Any], groups: Groups) -> list[list[Any]]:
        """Return, for each device, the tensors of its group in the order of the group."""
        gathered = {device: [values[other] for other in group] for group in groups for device in group}
        return [gathered[device] for device in self.numbers]

    def reduce(self, values: Sequence[Any], groups: Groups, combiner: str) -> list[Any]:
        """Return, for each device, the combination of the tensors of its group."""
        return [_combine(tensors, combiner) for tensors in self.gather(values, groups)]

    def exchange(self, values: Sequence[Any], groups: Groups, dim: int) -> list[list[Any]]:
        """Return, for each device, its own part of the tensors of its group, in the group's order."""
        position = _positions(groups)
        gathered = self.gather(values, groups)
        return [
            [tensor.chunk(len(tensors), dim)[position[device]] for tensor in tensors]
            for device, tensors in zip(self.numbers, gathered, strict=True)
        ]

    def reduce_scatter(self, values: Sequence[Any], groups: Groups, combiner: str, dim: int) -> list[Any]:
        """Return, for each device, its own part of the combination of the tensors of its group."""
        position, count = _positions(groups), len(groups[0])
        reduced = self.reduce(values, groups, combiner)
        return [tensor.chunk(count, dim)[position[number]] for number, tensor in enumerate(reduced)]

    def permute(self, values: Sequence[Any], pairs: Groups) -> list[Any]:
        """Return the tensor of the source of each device; zeros where it has none."""
        source = {target: origin for origin, target in pairs}
        return [
            values[source[device]].clone() if device in source else values[device].new_zeros(values[device].shape)
            for device in self.numbers
        ]


@define
class ProcessDevices(Devices):
    """One device per process of ``torch.distributed``.

    Attributes:
        device_mesh: The devices.
        ranks: Device number to rank.
        device: The number of the device of this process.
        counts: Kind of collective to how often it ran.
    """

    device_mesh: Any
    ranks: Sequence[int]
    device: int
    counts: dict[str, int] = field(factory=dict)
    _groups: dict[tuple[int, ...], Any] = field(factory=dict, init=False)

    @property
    def numbers(self) -> Sequence[int]:  # type: ignore[override]
        """The number of the device of this process."""
        return (self.device,)

    def prepare(self, groups: Groups) -> None:
        """Make the process groups of a collective; every process must do so in the same order."""
        by_rank = dict.fromkeys(tuple(sorted(self.ranks[device] for device in group)) for group in groups)
        missing = [ranks for ranks in by_rank if ranks not in self._groups]
        if missing:
            self._groups |= new_process_groups(missing, self.device_mesh)

    def gather(self, values: Sequence[Any], groups: Groups) -> list[list[Any]]:
        """Return the tensors of the group of this device in its order."""
        import torch
        import torch.distributed as dist

        group = self._own_group(groups)
        ranks, process_group = self._process_group(group)
        self._count("all_gather")
        value = values[0].contiguous()
        gathered = [torch.empty_like(value) for _ in ranks]
        dist.all_gather(gathered, value, group=process_group)
        return [[gathered[ranks.index(self.ranks[device])] for device in group]]

    def reduce(self, values: Sequence[Any], groups: Groups, combiner: str) -> list[Any]:
        """Return the combination of the tensors of the group of this device."""
        import torch.distributed as dist

        value = values[0]
        _, process_group = self._process_group(self._own_group(groups))
        self._count("all_reduce")
        reduced = _as_numbers(value).clone()
        dist.all_reduce(reduced, op=_reduce_op(combiner, value), group=process_group)
        return [reduced.to(value.dtype)]

    def exchange(self, values: Sequence[Any], groups: Groups, dim: int) -> list[list[Any]]:
        """Return this device's part of the tensors of its group, in the group's order."""
        import torch
        import torch.distributed as dist

        group, process_group, parts = self._parts(values[0], groups, dim)
        self._count("all_to_all")
        received = torch.empty_like(parts)
        dist.all_to_all_single(received, parts, group=process_group)
        return [list(received[self._order(group)].unbind())]

    def reduce_scatter(self, values: Sequence[Any], groups: Groups, combiner: str, dim: int) -> list[Any]:
        """Return this device's part of the combination of the tensors of its group."""
        import torch
        import torch.distributed as dist

        _, process_group, parts = self._parts(values[0], groups, dim)
        self._count("reduce_scatter")
        numbers = _as_numbers(parts)
        reduced = torch.empty_like(numbers[0])
        # Releases before 2.13 know the older name only.
        scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
        # Parts come one behind the other along the first dimension.
        scatter(reduced, numbers.flatten(0, 1), op=_reduce_op(combiner, parts), group=process_group)
        return [reduced.to(parts.dtype)]

    def _parts(self, value: Any, groups: Groups, dim: int) -> tuple[Sequence[int], Any, Any]:
        """Return the group of this device, its process group, and the parts of a tensor in the order of the ranks."""
        import torch

        group = self._own_group(groups)
        ranks, process_group = self._process_group(group)
        chunks = value.chunk(len(group), dim)
        devices = sorted(range(len(group)), key=lambda number: ranks.index(self.ranks[group[number]]))
        return group, process_group, torch.stack([chunks[number] for number in devices]).contiguous()

    def _order(self, group: Sequence[int]) -> list[int]:
        """Return the position among the ranks of each device of a group."""
        ranks = sorted(self.ranks[device] for device in group)
        return [ranks.index(self.ranks[device]) for device in group]

    def permute(self, values: Sequence[Any], pairs: Groups) -> list[Any]:
        """Return the tensor of the source of this device; zeros where it has none."""
        import torch
        import torch.distributed as dist

        self._count("collective_permute")
        value = values[0].contiguous()
        received = torch.zeros_like(value)
        requests = []
        for source, target in pairs:
            if source == target == self.device:
                received = value.clone()
            elif source == self.device:
                requests.append(dist.P2POp(dist.isend, value, self.ranks[target]))
            elif target == self.device:
                requests.append(dist.P2POp(dist.irecv, received, self.ranks[source]))
        for request in dist.batch_isend_irecv(requests) if requests else ():
            request.wait()
        return [received]

    def _own_group(self, groups: Groups) -> Sequence[int]:
        return next(group for group in groups if self.device in group)

    def _process_group(self, group: Sequence[int]) -> tuple[tuple[int, ...], Any]:
        ranks = tuple(sorted(self.ranks[device] for device in group))
        return ranks, self._groups[ranks]

    def _count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1


def new_process_groups(groups: Iterable[tuple[int, ...]], device_mesh: Any) -> dict[tuple[int, ...], Any]:
    """Return new process groups by their ranks; processes outside of the mesh need not ask for them.

    Args:
        groups: The ranks of each.
        device_mesh: The devices, all of whose processes ask for the same groups in the same order.

    Raises:
        OptionError: the processes of the mesh are in different numbers of process groups.
    """
    import torch.distributed as dist

    check_groups_can_be_made(device_mesh)
    is_part = device_mesh.mesh.numel() < dist.get_world_size()
    return {ranks: dist.new_group(list(ranks), use_local_synchronization=is_part) for ranks in groups}


def check_groups_can_be_made(device_mesh: Any) -> None:
    """Check that the processes of a mesh that is a part of all can make a process group without the others.

    PyTorch names such a group after its ranks and after the number of groups that a process has: where this number
    differs, the processes would wait for each other forever.

    Raises:
        OptionError: the processes of the mesh are in different numbers of process groups.
    """
    import torch
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import _world

    if device_mesh.mesh.numel() == dist.get_world_size():
        return
    count = len(_world.pg_names)
    bounds = torch.tensor([count, -count], device=device_mesh.device_type)
    for dim in range(device_mesh.ndim):
        dist.all_reduce(bounds, op=dist.ReduceOp.MAX, group=device_mesh.get_group(dim))
    most, least = int(bounds[0]), -int(bounds[1])
    if most != least:
        message = f"the processes of the mesh are in {least} to {most} process groups, and can make no further one"
        hint = "use meshes that do not overlap, or place each tensor along single dimensions of the mesh"
        raise OptionError(Diagnostic("overlapping-meshes", message, hint=hint))


def _as_numbers(tensor: Any) -> Any:
    """Return a tensor as collectives take it: truth values as bytes."""
    return tensor.byte() if _is_bool(tensor) else tensor


def _is_bool(tensor: Any) -> bool:
    return str(tensor.dtype) == "torch.bool"


def _reduce_op(combiner: str, tensor: Any) -> Any:
    """Return the operation that combines tensors; that of truth values is a limit of bytes."""
    import torch.distributed as dist

    if _is_bool(tensor) or combiner in ("and", "or"):
        return dist.ReduceOp.MAX if combiner in ("add", "or", "max") else dist.ReduceOp.MIN
    ops = {"add": dist.ReduceOp.SUM, "mul": dist.ReduceOp.PRODUCT, "max": dist.ReduceOp.MAX}
    return (ops | {"min": dist.ReduceOp.MIN})[combiner]


def collective(devices: Devices, kind: str, values: Sequence[Any], attributes: Mapping[str, Any]) -> list[Any]:
    """Run a collective of a local program.

    Args:
        devices: The devices.
        kind: Its kind, such as ``all_gather``.
        values: One tensor for each device of this process.
        attributes: The attributes of its op.
    """
    import torch

    groups = attributes["groups"]
    if values[0].is_complex() and attributes.get("combiner", "add") == "add":
        # Backends take complex numbers as pairs of real ones.
        pairs = [torch.view_as_real(value.resolve_conj()) for value in values]
        return [torch.view_as_complex(each.contiguous()) for each in collective(devices, kind, pairs, attributes)]
    if kind == "all_gather":
        return [torch.cat(tensors, attributes["dim"]) for tensors in devices.gather(values, groups)]
    if kind == "all_reduce":
        return devices.reduce(values, groups, attributes["combiner"])
    if kind == "collective_permute":
        return devices.permute(values, groups)
    if kind == "reduce_scatter":
        return devices.reduce_scatter(values, groups, attributes["combiner"], attributes["dim"])
    parts = devices.exchange(values, groups, attributes["split_dim"])
    return [torch.cat(tensors, attributes["concat_dim"]) for tensors in parts]

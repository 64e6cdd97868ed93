"""Collectives over tensors: of simulated devices in one process, and of the processes of ``torch.distributed``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from attrs import field

from shardy_py.torch.parallel.process_groups import Groups, ProcessGroups
from shardy_py.values import define, frozen


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
        groups: The process groups.
        counts: Kind of collective to how often it ran.
    """

    groups: ProcessGroups
    counts: dict[str, int] = field(factory=dict)

    @property
    def numbers(self) -> Sequence[int]:  # type: ignore[override]
        """The number of the device of this process."""
        return (self.groups.device,)

    def gather(self, values: Sequence[Any], groups: Groups) -> list[list[Any]]:
        """Return the tensors of the group of this device in its order."""
        import torch
        import torch.distributed as dist

        self._count("all_gather")
        value = values[0].contiguous()
        gathered = [torch.empty_like(value) for _ in groups[0]]
        dist.all_gather(gathered, value, group=self.groups.group(groups))
        return [[gathered[position] for position in self.groups.positions(groups)]]

    def reduce(self, values: Sequence[Any], groups: Groups, combiner: str) -> list[Any]:
        """Return the combination of the tensors of the group of this device."""
        import torch.distributed as dist

        value = values[0]
        self._count("all_reduce")
        reduced = _as_numbers(value).clone()
        dist.all_reduce(reduced, op=_reduce_op(combiner, value), group=self.groups.group(groups))
        return [reduced.to(value.dtype)]

    def exchange(self, values: Sequence[Any], groups: Groups, dim: int) -> list[list[Any]]:
        """Return this device's part of the tensors of its group, in the group's order."""
        import torch
        import torch.distributed as dist

        parts = self._parts(values[0], groups, dim)
        self._count("all_to_all")
        received = torch.empty_like(parts)
        dist.all_to_all_single(received, parts, group=self.groups.group(groups))
        return [list(received[self.groups.positions(groups)].unbind())]

    def reduce_scatter(self, values: Sequence[Any], groups: Groups, combiner: str, dim: int) -> list[Any]:
        """Return this device's part of the combination of the tensors of its group."""
        import torch
        import torch.distributed as dist

        parts = self._parts(values[0], groups, dim)
        self._count("reduce_scatter")
        numbers = _as_numbers(parts)
        reduced = torch.empty_like(numbers[0])
        # Releases before 2.13 know the older name only.
        scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
        # Parts come one behind the other along the first dimension.
        scatter(reduced, numbers.flatten(0, 1), op=_reduce_op(combiner, parts), group=self.groups.group(groups))
        return [reduced.to(parts.dtype)]

    def _parts(self, value: Any, groups: Groups, dim: int) -> Any:
        """Return the parts of a tensor for the processes of the group of this device, in the order of the ranks."""
        import torch

        positions = self.groups.positions(groups)
        chunks = value.chunk(len(positions), dim)
        return torch.stack([chunks[positions.index(rank)] for rank in range(len(positions))]).contiguous()

    def permute(self, values: Sequence[Any], pairs: Groups) -> list[Any]:
        """Return the tensor of the source of this device; zeros where it has none."""
        import torch
        import torch.distributed as dist

        self._count("collective_permute")
        value = values[0].contiguous()
        received = torch.zeros_like(value)
        requests = []
        own, ranks = self.groups.device, self.groups.ranks
        for source, target in pairs:
            if source == target == own:
                received = value.clone()
            elif source == own:
                requests.append(dist.P2POp(dist.isend, value, ranks[target]))
            elif target == own:
                requests.append(dist.P2POp(dist.irecv, received, ranks[source]))
        for request in dist.batch_isend_irecv(requests) if requests else ():
            request.wait()
        return [received]

    def _count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1


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

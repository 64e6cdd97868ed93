"""Collectives over tensors: of simulated devices in one process, and of the processes of ``torch.distributed``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from attrs import define, field, frozen

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


def _is_or(tensor: Any, combiner: str) -> bool:
    return str(tensor.dtype) == "torch.bool" and combiner == "add"


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
        found = {device: [values[other] for other in group] for group in groups for device in group}
        return [found[device] for device in self.numbers]

    def reduce(self, values: Sequence[Any], groups: Groups, combiner: str) -> list[Any]:
        """Return, for each device, the combination of the tensors of its group."""
        return [_combine(tensors, combiner) for tensors in self.gather(values, groups)]

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
        ranks: Device number to rank.
        device: The number of the device of this process.
        counts: Kind of collective to how often it ran.
    """

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
        import torch.distributed as dist

        for group in groups:
            ranks = tuple(sorted(self.ranks[device] for device in group))
            if ranks not in self._groups:
                self._groups[ranks] = dist.new_group(ranks)

    def gather(self, values: Sequence[Any], groups: Groups) -> list[list[Any]]:
        """Return the tensors of the group of this device in its order."""
        import torch
        import torch.distributed as dist

        own = self._own(groups)
        ranks, process_group = self._process_group(own)
        self._count("all_gather")
        value = values[0].contiguous()
        found = [torch.empty_like(value) for _ in ranks]
        dist.all_gather(found, value, group=process_group)
        return [[found[ranks.index(self.ranks[device])] for device in own]]

    def reduce(self, values: Sequence[Any], groups: Groups, combiner: str) -> list[Any]:
        """Return the combination of the tensors of the group of this device."""
        import torch.distributed as dist

        ops = {"add": dist.ReduceOp.SUM, "mul": dist.ReduceOp.PRODUCT, "max": dist.ReduceOp.MAX}
        ops |= {"min": dist.ReduceOp.MIN}
        value = values[0]
        is_bool = str(value.dtype) == "torch.bool"
        if combiner in ("and", "or"):
            return [_combine(self.gather(values, groups)[0], combiner)]
        _, process_group = self._process_group(self._own(groups))
        self._count("all_reduce")
        reduced = value.byte() if is_bool else value.clone()
        dist.all_reduce(reduced, op=ops[combiner], group=process_group)
        return [reduced.bool() if is_bool else reduced]

    def permute(self, values: Sequence[Any], pairs: Groups) -> list[Any]:
        """Return the tensor of the source of this device; zeros where it has none."""
        import torch
        import torch.distributed as dist

        self._count("collective_permute")
        value = values[0].contiguous()
        found = torch.zeros_like(value)
        requests = []
        for source, target in pairs:
            if source == target == self.device:
                found = value.clone()
            elif source == self.device:
                requests.append(dist.P2POp(dist.isend, value, self.ranks[target]))
            elif target == self.device:
                requests.append(dist.P2POp(dist.irecv, found, self.ranks[source]))
        for request in dist.batch_isend_irecv(requests) if requests else ():
            request.wait()
        return [found]

    def _own(self, groups: Groups) -> Sequence[int]:
        return next(group for group in groups if self.device in group)

    def _process_group(self, own: Sequence[int]) -> tuple[tuple[int, ...], Any]:
        ranks = tuple(sorted(self.ranks[device] for device in own))
        return ranks, self._groups[ranks]

    def _count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1


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
    if kind == "all_gather":
        return [torch.cat(tensors, attributes["dim"]) for tensors in devices.gather(values, groups)]
    if kind == "all_reduce":
        return devices.reduce(values, groups, attributes["combiner"])
    if kind == "collective_permute":
        return devices.permute(values, groups)
    position = {device: number for group in groups for number, device in enumerate(group)}
    count = len(groups[0])
    if kind == "reduce_scatter":
        reduced = devices.reduce(values, groups, attributes["combiner"])
        return [
            tensor.chunk(count, attributes["dim"])[position[device]]
            for device, tensor in zip(devices.numbers, reduced, strict=True)
        ]
    gathered = devices.gather(values, groups)
    return [
        torch.cat(
            [tensor.chunk(count, attributes["split_dim"])[position[device]] for tensor in tensors],
            attributes["concat_dim"],
        )
        for device, tensors in zip(devices.numbers, gathered, strict=True)
    ]

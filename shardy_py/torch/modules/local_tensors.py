"""Tensors of the whole program and their shards: DTensors or whole tensors in, shards to run on, DTensors out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field

from shardy_py.torch.parallel.distribute import distributed
from shardy_py.values import frozen


@frozen(eq=False)
class ModulePort:
    """An input, a parameter, a buffer or an output of a program on shards.

    Args:
        name: What errors call it.
        shape: The whole shape.
        device_mesh: The devices.
        placements: Its placements, of PyTorch.
        parts: By sharded dimension, the number of parts and that of this device's part.
        cuts: By dimension that does not divide, the size of this device's part and that of padded parts.
        starts: By sharded dimension, where this device's part begins and how long it is.
    """

    name: str
    shape: tuple[int, ...]
    device_mesh: Any = field(repr=False)
    placements: tuple[Any, ...]
    parts: Mapping[int, tuple[int, int]]
    cuts: dict[int, tuple[int, int]]
    starts: dict[int, tuple[int, int]]

    def resized(self, shape: tuple[int, ...]) -> ModulePort:
        """Return the port of a tensor of another shape, placed as this one."""
        if shape == self.shape:
            return self
        return _port_of(self.name, shape, self.device_mesh, self.placements, self.parts)

    def shard(self, tensor: Any) -> Any:
        """Return the shard of this device, padded; gradients pass."""
        from torch.distributed.tensor import DTensor

        if isinstance(tensor, DTensor):
            local = _moved(tensor, lambda item: distributed(item, self.device_mesh, self.placements).to_local())
        elif tensor.requires_grad and self.starts:
            local = self._replicated(tensor).redistribute(self.device_mesh, self.placements).to_local()
        else:
            local = tensor
            for dim, (start, length) in self.starts.items():
                local = local.narrow(dim, start, length)
        return self.padded(local)

    def padded(self, local: Any) -> Any:
        """Return a shard with zeros at the ends of dimensions that do not divide."""
        import torch

        for dim, (length, size) in self.cuts.items():
            if length != size:
                local = torch.nn.functional.pad(local, [0, 0] * (len(self.shape) - 1 - dim) + [0, size - length])
        return local

    def unpadded(self, local: Any) -> Any:
        """Return a shard without the padding."""
        for dim, (length, size) in self.cuts.items():
            if length != size:
                local = local.narrow(dim, 0, length)
        return local

    def distributed(self, local: Any) -> Any:
        """Return the DTensor of a padded shard; gradients pass."""
        from torch.distributed.tensor import DTensor

        shape, stride = self.shape, _strides(self.shape)
        local = self.unpadded(local)
        return DTensor.from_local(
            local, self.device_mesh, self.placements, run_check=False, shape=_size(shape), stride=stride
        )

    def whole(self, local: Any) -> Any:
        """Return the whole tensor of padded shards; gradients pass."""
        return _moved(local, lambda shard: self.distributed(shard).full_tensor()) if self.starts else local

    def _replicated(self, tensor: Any) -> Any:
        from torch.distributed.tensor import DTensor, Replicate

        everywhere = [Replicate()] * self.device_mesh.ndim
        return DTensor.from_local(tensor, self.device_mesh, everywhere, run_check=False)


def _moved(tensor: Any, move: Callable[[Any], Any]) -> Any:
    """Return what a function makes of a tensor by collectives; truth values go as bytes, as Inductor gathers them."""
    import torch

    return move(tensor.to(torch.uint8)).to(torch.bool) if tensor.dtype == torch.bool else move(tensor)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _size(shape: tuple[int, ...]) -> Any:
    import torch

    return torch.Size(shape)


def make_port(name: str, shape: tuple[int, ...], sharding: Any, mesh: Any, device_mesh: Any, device: int) -> ModulePort:
    """Return the port of a value.

    Args:
        name: What errors call it.
        shape: Its whole shape.
        sharding: Its sharding, which placements can say; None is replicated.
        mesh: The mesh.
        device_mesh: The devices.
        device: The number of this device.
    """
    from shardy_py.torch.parallel.placements import placements_of, to_torch_placements
    from shardy_py.torch.parallel.shards import TensorPort

    parts = TensorPort(shape, sharding, mesh).cuts(device)
    placements = to_torch_placements(placements_of(sharding, mesh, name=name))
    return _port_of(name, shape, device_mesh, placements, parts)


def _port_of(
    name: str,
    shape: tuple[int, ...],
    device_mesh: Any,
    placements: tuple[Any, ...],
    parts: Mapping[int, tuple[int, int]],
) -> ModulePort:
    starts, cuts = {}, {}
    for dim, (count, position) in parts.items():
        size = -(-shape[dim] // count)
        start, stop = min(position * size, shape[dim]), min((position + 1) * size, shape[dim])
        starts[dim] = start, stop - start
        if shape[dim] % count:
            cuts[dim] = stop - start, size
    return ModulePort(name, shape, device_mesh, placements, parts, cuts, starts)

"""Shards of tensors of PyTorch: cut from whole tensors, and put together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import shard_positions
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen


@frozen
class TensorPort:
    """An argument or result of a local program.

    Args:
        shape: The shape of the whole tensor.
        sharding: Its sharding; None is replicated.
        mesh: The mesh.
    """

    shape: tuple[int, ...]
    sharding: TensorSharding | None
    mesh: Mesh

    @property
    def placements(self) -> TensorSharding | None:
        """Sharding of the tensor, which is the same at all sizes."""
        return self.sharding

    def resized(self, shape: tuple[int, ...]) -> TensorPort:
        """Return the port of a tensor of another shape, placed as this one."""
        return self if shape == self.shape else evolve(self, shape=shape)

    @property
    def is_cut(self) -> bool:
        """True where devices have parts of the tensor only."""
        return bool(self.cuts(0))

    def part(self, tensor: Any, device: int) -> Any:
        """Return the shard of a device; dimensions that do not divide are padded with zeros at the high end."""
        import torch

        for dim, (parts, position) in self.cuts(device).items():
            size = -(-self.shape[dim] // parts)
            start, stop = min(position * size, self.shape[dim]), min((position + 1) * size, self.shape[dim])
            tensor = tensor.narrow(dim, start, stop - start)
            if stop - start < size:
                missing = list(tensor.shape)
                missing[dim] = size - (stop - start)
                tensor = torch.cat([tensor, tensor.new_zeros(missing)], dim)
        return tensor.contiguous()

    def whole(self, shards: Sequence[Any]) -> Any:
        """Return the whole tensor of the shards of all devices, by device number."""
        tensor = shards[0].new_empty(self.shape)
        for device, shard in enumerate(shards):
            target = tensor
            for dim, (parts, position) in self.cuts(device).items():
                size = -(-self.shape[dim] // parts)
                start, stop = min(position * size, self.shape[dim]), min((position + 1) * size, self.shape[dim])
                target = target.narrow(dim, start, stop - start)
                shard = shard.narrow(dim, 0, stop - start)
            target.copy_(shard)
        return tensor

    def cuts(self, device: int) -> Mapping[int, tuple[int, int]]:
        """Return, by dimension, the number of parts and that of the device's own part."""
        if self.sharding is None:
            return {}
        return {
            dim: (item.sharded_size(self.mesh), shard_positions(self.mesh, item.axes)[device])
            for dim, item in enumerate(self.sharding.dim_shardings)
            if item.sharded_size(self.mesh) > 1
        }

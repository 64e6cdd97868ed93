"""Parameters and buffers as DTensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.sharding.mesh import Mesh
from shardy_py.support.identity import identity
from shardy_py.torch.parallel.placements import Placement, to_torch_placements


def distribute(
    module: Any, device_mesh: Any, placements: Mapping[str, Sequence[Placement]], mesh: Mesh
) -> dict[str, Any]:
    """Return the parameters and buffers of a module as DTensors, by their fully qualified names.

    Args:
        module: The module; it stays as it is. ``load_state_dict(..., assign=True)`` puts them into it.
        device_mesh: The devices, with the dimensions of the mesh.
        placements: The placements by name; tied parameters become one DTensor under all of their names.
        mesh: The mesh of the propagation.

    Raises:
        OptionError: the device mesh has other dimensions, or the module lacks a name.
    """
    check_device_mesh(device_mesh, mesh)
    state = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    missing = [name for name in placements if name not in state]
    if missing:
        message = f"the module has no parameter or buffer {missing[0]!r}"
        raise OptionError(Diagnostic("unknown-parameter", message, hint="give the module that was exported"))
    dtensors: dict[tuple[int, tuple[Placement, ...]], Any] = {}
    by_name = {}
    for name, tensor_placements in placements.items():
        key = identity(state[name]), tuple(tensor_placements)
        if key not in dtensors:
            dtensors[key] = distributed(state[name].detach(), device_mesh, to_torch_placements(tensor_placements))
        by_name[name] = dtensors[key]
    return by_name


def distributed(tensor: Any, device_mesh: Any, placements: Sequence[Any] | None) -> Any:
    """Return a tensor as a DTensor with some placements; of a tensor that is none, that of the first process counts.

    Args:
        tensor: A tensor, or a DTensor.
        device_mesh: The devices.
        placements: The placements; None is replicated.
    """
    from torch.distributed.tensor import DTensor, Replicate, distribute_tensor

    everywhere = [Replicate()] * device_mesh.ndim
    if isinstance(tensor, DTensor):
        if placements is None or tuple(placements) == tensor.placements:
            return tensor
        if is_strided(placements) or is_strided(tensor.placements):
            # PyTorch has no way from parts to strided parts.
            tensor = tensor.redistribute(device_mesh, everywhere)
        return tensor.redistribute(device_mesh, placements)
    if placements is None or not is_strided(placements):
        return distribute_tensor(tensor, device_mesh, placements)
    return distribute_tensor(tensor, device_mesh, everywhere).redistribute(device_mesh, placements)


def is_strided(placements: Sequence[Any]) -> bool:
    """Return whether some dimension is sharded along axes in another order than the mesh's."""
    return any(type(item).__name__ == "_StridedShard" for item in placements)


def check_device_mesh(device_mesh: Any, mesh: Mesh) -> None:
    """Check that a device mesh has the dimensions of the mesh.

    Raises:
        OptionError: it has not.
    """
    names, sizes = tuple(device_mesh.mesh_dim_names or ()), tuple(device_mesh.shape)
    expected = tuple(axis.name for axis in mesh.axes), tuple(axis.size for axis in mesh.axes)
    if sizes != expected[1] or (names and names != expected[0]):
        device_dims = ", ".join(f"{name}={size}" for name, size in zip(names or ["?"] * len(sizes), sizes, strict=True))
        hint = f"make one of shape {expected[1]} with mesh_dim_names={expected[0]}"
        raise OptionError(Diagnostic("mesh-mismatch", f"the device mesh is {device_dims}, the mesh {mesh}", hint=hint))

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
    from torch.distributed.tensor import distribute_tensor

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
    distributed = {}
    for name, tensor_placements in placements.items():
        key = identity(state[name]), tuple(tensor_placements)
        if key not in dtensors:
            dtensors[key] = distribute_tensor(state[name].detach(), device_mesh, to_torch_placements(tensor_placements))
        distributed[name] = dtensors[key]
    return distributed


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

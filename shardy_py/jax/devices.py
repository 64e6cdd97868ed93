"""Devices that a module runs on, and those that a mesh means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.support.arguments import shown
from shardy_py.support.identity import identity

_HOST_DEVICES = (
    "for host devices give the command --devices {0}, or set XLA_FLAGS=--xla_force_host_platform_device_count={0} "
    "before JAX starts"
)


def device_count(meshes: Iterable[Mesh]) -> int:
    """Return the number of devices that a program with some meshes runs on: those of its largest mesh.

    Raises:
        UnsupportedError: a mesh cannot be repeated over these devices, or names others.
    """
    meshes = list(meshes)
    count = max((mesh.total_size for mesh in meshes), default=1)
    for mesh in meshes:
        if count % mesh.total_size:
            message = f"the mesh {mesh} cannot be repeated over the {count} devices of the largest mesh"
            hint = "the meshes of one program are over the same devices"
            raise UnsupportedError(Diagnostic("meshes-do-not-fit", message, hint=hint))
        if any(not 0 <= device < count for device in mesh.device_ids):
            message = f"the mesh {mesh} names devices beyond the {count} of the largest mesh"
            raise UnsupportedError(Diagnostic("meshes-do-not-fit", message, hint="number the devices from 0"))
    return count


def extend_mesh(mesh: Mesh, count: int) -> Mesh:
    """Return a mesh over all devices: one of fewer devices gets another axis, along which everything is replicated.

    >>> str(extend_mesh(Mesh.of(x=2), 4))
    '<["x"=2, "rest"=2], device_ids=[0, 2, 1, 3]>'
    """
    size = mesh.total_size
    if not mesh.axes or size == count:
        return mesh
    name = "rest"
    while mesh.has_axis(name):
        name += "_"
    first = mesh.device_ids or tuple(range(size))
    others = sorted(set(range(count)) - set(first))
    groups = [first, *(others[start : start + size] for start in range(0, len(others), size))]
    devices = tuple(group[position] for position in range(size) for group in groups)
    return Mesh((*mesh.axes, MeshAxis(name, count // size)), devices)


def choose_devices(count: int, devices: Sequence[Any] | None, meshes: Mapping[str, Mesh]) -> list[Any]:
    """Return the devices to run on: the first of the given ones, or of ``jax.devices()``.

    Raises:
        OptionError: there are too few, one stands there twice, or they belong to different platforms.
    """
    import jax
    import numpy

    available = list(jax.devices() if devices is None else numpy.asarray(devices, dtype=object).ravel())
    wrong = next((item for item in available if not isinstance(item, jax.Device)), None)
    if wrong is not None:
        message = f"{shown(wrong)} is not a device of JAX"
        raise OptionError(Diagnostic("no-device", message, hint="give some of jax.devices()"))
    if len(available) < count:
        meant = next((f"the mesh {mesh}" for mesh in meshes.values() if mesh.total_size == count), "the module")
        whose = "JAX has" if devices is None else "given are"
        message = f"{meant} has {count} devices, {whose} {len(available)}"
        raise OptionError(Diagnostic("too-few-devices", message, hint=_HOST_DEVICES.format(count)))
    chosen = available[:count]
    if len({device.id for device in chosen}) < count or len({identity(device.client) for device in chosen}) > 1:
        message = "the devices are not different devices of one platform"
        raise OptionError(Diagnostic("devices-do-not-fit", message, hint="give some of jax.devices(), each once"))
    return chosen

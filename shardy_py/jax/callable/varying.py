"""Axes of a ``shard_map`` along which values vary, which types of JAX say inside of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def result_type(result: Any, spec: Any, arguments: Sequence[Any]) -> Any:
    """Return the type of a result that varies along the same axes as the arguments.

    Args:
        result: Its shape, dtype and whether its type is weak, as a `jax.ShapeDtypeStruct`.
        spec: Its ``PartitionSpec``, which counts where types say shardings.
        arguments: The types of the arguments, which vary alike.
    """
    import jax

    if not arguments or arguments[0].sharding.mesh.empty:
        return jax.core.ShapedArray(result.shape, result.dtype, weak_type=result.weak_type)
    entries = (*spec, *(None,) * (len(result.shape) - len(spec)))
    sharding = jax.sharding.NamedSharding(arguments[0].sharding.mesh, jax.sharding.PartitionSpec(*entries))
    return arguments[0].update(shape=result.shape, dtype=result.dtype, weak_type=result.weak_type, sharding=sharding)


def varying_alike(values: Sequence[Any]) -> list[Any]:
    """Return values that vary along the same axes, those along which one of them does."""
    import jax

    axes = [_varying_axes(jax.typeof(value)) for value in values]
    union: frozenset[Any] = frozenset().union(*axes)
    return [
        value if varying_axes == union else _varying(value, tuple(sorted(union - varying_axes)))
        for value, varying_axes in zip(values, axes, strict=True)
    ]


def _varying(value: Any, axes: tuple[Any, ...]) -> Any:
    import jax

    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axes, to="varying")
    # The name of JAX 0.8.1.
    return jax.lax.pvary(value, axes)


def _varying_axes(type_: Any) -> frozenset[Any]:
    known = getattr(type_, "manual_axis_type", None)
    return frozenset(getattr(type_, "vma", ()) if known is None else known.varying)

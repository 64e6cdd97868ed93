"""Shardings that arrays are committed to, also behind the values that JAX traces for derivatives and batches."""

from __future__ import annotations

from typing import Any


def committed_sharding(value: Any) -> Any:
    """Return the `NamedSharding` that an array is committed to, or None.

    The sharding of a traced value is known where its type has explicit axes, and where `jax.grad` or `jax.vmap` trace
    an array outside of `jax.jit`; there it is that of the array, without the dimension of the batch.

    Args:
        value: An array, or a value that JAX traces.
    """
    import jax

    if isinstance(value, jax.core.Tracer):
        return _of_type(value) or _of_traced(value)
    sharding = getattr(value, "sharding", None)
    is_committed = getattr(value, "committed", True)
    return sharding if is_committed and isinstance(sharding, jax.sharding.NamedSharding) else None


def spec_entry(sharding: Any, dim: int) -> tuple[str, ...]:
    """Return the axes that a `NamedSharding` of JAX has along a dimension."""
    entries = tuple(sharding.spec)
    entry = entries[dim] if dim < len(entries) else None
    if entry is None:
        return ()
    return (entry,) if isinstance(entry, str) else tuple(entry)


def _of_type(value: Any) -> Any:
    import jax

    sharding = getattr(jax.typeof(value), "sharding", None)
    types = () if sharding is None or sharding.mesh.empty else sharding.mesh.axis_types
    return sharding if jax.sharding.AxisType.Explicit in types else None


def _of_traced(value: Any) -> Any:
    """Return the sharding of the array that a value traced for a derivative or a batch stands for."""
    import jax

    primal = getattr(value, "primal", None)
    if primal is not None:
        return committed_sharding(primal)
    inner, dim = getattr(value, "val", None), getattr(value, "batch_dim", None)
    sharding = None if inner is None else committed_sharding(inner)
    if sharding is None or not isinstance(dim, int):
        return sharding if dim is None else None
    entries = list(sharding.spec)
    del entries[dim : dim + 1]
    spec = jax.sharding.PartitionSpec(*entries)
    return jax.sharding.NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)

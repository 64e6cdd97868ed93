"""The context of JAX in which a function is lowered: of the mesh around the call, only what is free there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any


@contextmanager
def in_context(mesh: Any, *, has_x64: bool) -> Iterator[None]:
    """Enter the context in which a function is lowered.

    Args:
        mesh: The abstract mesh of the free axes; None leaves the mesh of the context.
        has_x64: Whether JAX has 64-bit types.
    """
    import jax

    with ExitStack() as stack:
        stack.enter_context(jax.enable_x64(has_x64))
        if mesh is not None:
            # JAX changes the size of a mesh only by way of none.
            stack.enter_context(jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())))
            stack.enter_context(jax.sharding.use_abstract_mesh(mesh))
        yield


def free_mesh() -> Any:
    """Return the axes of the mesh of the context that no ``shard_map`` around has, as an abstract mesh.

    None where there is no ``shard_map`` around.
    """
    import jax

    context = jax.sharding.get_abstract_mesh()
    if context.empty or not context.manual_axes:
        return None
    axes = [
        (name, size, type_)
        for name, size, type_ in zip(context.axis_names, context.axis_sizes, context.axis_types, strict=True)
        if name not in context.manual_axes
    ]
    names, sizes, types = zip(*axes, strict=True) if axes else ((), (), ())
    return jax.sharding.AbstractMesh(sizes, names, axis_types=types)


@contextmanager
def over_mesh(mesh: Any) -> Iterator[None]:
    """Enter a context in which a ``shard_map`` may be over a mesh: without the mesh of ``jax.set_mesh`` if it differs.

    Args:
        mesh: The mesh of JAX; None for that of the context.
    """
    import jax

    context = jax.sharding.get_abstract_mesh()
    with ExitStack() as stack:
        if mesh is not None and not context.empty and not context.manual_axes and context != mesh.abstract_mesh:
            stack.enter_context(jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())))
        yield


def concrete_context_mesh() -> Any:
    """Return the mesh that ``jax.set_mesh`` has set; None where there is none, or JAX does not say, as it traces."""
    import jax

    try:
        mesh = jax.sharding.get_mesh()
    except (AttributeError, ValueError):
        return None
    return mesh if isinstance(mesh, jax.sharding.Mesh) and mesh.size else None


def has_x64() -> bool:
    """Return whether JAX has 64-bit types."""
    import jax

    return bool(jax.config.jax_enable_x64)


def is_disabled() -> bool:
    """Return whether functions run op by op, as under ``jax.disable_jit()``."""
    import jax

    return bool(jax.config.jax_disable_jit)


def is_not_finite(error: Exception) -> bool:
    """Return whether JAX raised an error as a result is not finite, under ``jax.debug_nans`` or ``jax.debug_infs``."""
    return type(error).__name__ == "InternalFloatingPointError"


def trace_context() -> Hashable:
    """Return all settings of JAX that the program of a function depends on: its mesh, its types, its precision.

    It is what `jax.jit` tells its programs apart by.
    """
    return _trace_context()()


@cache
def _trace_context() -> Callable[[], Hashable]:
    from jax._src import config, mesh

    # Meshes of the same axes over other devices are alike to what is traced, and not to what is compiled.
    return lambda: (config.trace_context(), mesh.get_concrete_mesh())

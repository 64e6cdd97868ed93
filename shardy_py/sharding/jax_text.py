"""Shardings as users write them: those of JAX, and those who give them to `propagate` for any other program."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.sharding.tensor import TensorSharding


def jax_constraint(sharding: TensorSharding | None) -> str:
    """Return the line that constrains a tensor ``x`` in a program of JAX."""
    return f"x = jax.lax.with_sharding_constraint(x, {partition_spec(sharding)})"


def partition_spec(sharding: TensorSharding | None) -> str:
    """Return a sharding as JAX writes it.

    >>> from shardy_py.sharding.axes import AxisRef
    >>> from shardy_py.sharding.tensor import DimensionSharding
    >>> dims = (DimensionSharding((AxisRef("x"), AxisRef("y")), is_closed=True), DimensionSharding((), is_closed=True))
    >>> partition_spec(TensorSharding("mesh", dims))
    'P(("x", "y"), None)'
    """
    dims = () if sharding is None else sharding.dim_shardings
    return f"P({', '.join(_entry([axis.name for axis in dim.axes]) for dim in dims)})"


def axes_text(sharding: TensorSharding | None) -> str:
    """Return a sharding as `propagate` takes it: the axes of each dimension.

    >>> from shardy_py.sharding.axes import AxisRef
    >>> from shardy_py.sharding.tensor import DimensionSharding
    >>> axes_text(TensorSharding("mesh", (DimensionSharding((AxisRef("x"), AxisRef("y"))), DimensionSharding(()))))
    "(('x', 'y'), None)"
    """
    dims = [] if sharding is None else [tuple(axis.name for axis in dim.axes) for dim in sharding.dim_shardings]
    return str(tuple(None if not axes else axes[0] if len(axes) == 1 else axes for axes in dims))


def _entry(names: Sequence[str]) -> str:
    if not names:
        return "None"
    quoted = [repr(name).replace("'", '"') for name in names]
    return quoted[0] if len(names) == 1 else f"({', '.join(quoted)})"

"""Counted costs beside the collectives of the compiled program, on eight devices; see test_eight_devices.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardy_py as sdy
from shardy_py.jax.figures import measure


def _array(*shape: int, dtype: str = "float32") -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def megatron(x, up, down):
    """Two products, the first over the devices by columns and the second by rows."""
    return jax.nn.gelu(x @ up) @ down


def scanned(x, weights):
    """Five layers in a loop, each with a sum over devices."""
    return jax.lax.scan(lambda y, w: (jnp.tanh(y @ w @ w.T), jnp.sum(y)), x, weights)


def normalised(x):
    """Rows over devices are normalised by sums over them."""
    return (x - jnp.mean(x, 0)) / jnp.sqrt(jnp.var(x, 0) + 1e-3)


def looked_up(table, rows):
    """Rows of a table over devices are looked up."""
    return table[rows] * 2


def turned(x):
    """What is sharded by rows is wanted by columns."""
    return jnp.sin(x).T


def converged(x):
    """The condition of a loop of unknown length sums over devices."""
    return jax.lax.while_loop(lambda y: jnp.sum(y * y) > 1e-3, lambda y: y / 2, x)


def repeated(x):
    """A loop reads one place of a tensor over devices in each iteration, always the same."""
    return jax.lax.scan(lambda total, row: (total + x[0, 1] * row, jnp.sum(total)), jnp.zeros(8), x[:, 3])


def narrow(x, w):
    """Products in a narrow type are summed over devices."""
    return x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)


def trained(x, up, down):
    """Gradients of weights over two axes."""
    return jax.grad(lambda *weights: jnp.sum(megatron(x, *weights) ** 2), (0, 1))(up, down)


Program = tuple[Callable[..., Any], tuple[Any, ...], tuple[P, ...], Any]
PROGRAMS: dict[str, Program] = {
    "megatron": (
        megatron,
        (_array(16, 32), _array(32, 64), _array(64, 32)),
        (P("data"), P(None, "model"), P("model")),
        P("data"),
    ),
    "scanned": (scanned, (_array(16, 32), _array(5, 32, 64)), (P("data"), P(None, None, "model")), None),
    "normalised": (normalised, (_array(64, 16),), (P("data"),), P("data")),
    "looked_up": (looked_up, (_array(64, 16), _array(8, dtype="int32")), (P("model"), P()), P()),
    "converged": (converged, (_array(32, 64),), (P("data"),), None),
    "repeated": (repeated, (_array(8, 8, 8),), (P("data", "model"),), None),
    "narrow": (narrow, (_array(16, 32), _array(32, 8)), (P(None, "data"), P("data")), P()),
    "turned": (turned, (_array(32, 64),), (P("data"),), P("data")),
    "trained": (
        trained,
        (_array(16, 32), _array(32, 64), _array(64, 32)),
        (P("data"), P("data", "model"), P("model", "data")),
        (P("data", "model"), P("model", "data")),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_bytes_by_kind_are_those_of_the_compiled_program(name: str) -> None:
    """A device sends in collectives of each kind what it sends in those that XLA compiles."""
    function, shapes, ins, outs = PROGRAMS[name]
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    def place(spec: P) -> NamedSharding:
        return NamedSharding(mesh, spec)

    out_shardings = None if outs is None else jax.tree.map(place, outs, is_leaf=lambda item: isinstance(item, P))
    lowered = sdy.jit(function, in_shardings=tuple(map(place, ins)), out_shardings=out_shardings).lower(*shapes)
    cost = lowered.cost()
    assert cost.is_counted
    compiled: dict[str, float] = defaultdict(float)
    for item in measure(lowered.compile()).collectives:
        compiled[item.kind] += item.bytes * item.runs
    assert {item.kind: item.bytes for item in cost.kinds if item.bytes} == dict(compiled)
    assert compiled

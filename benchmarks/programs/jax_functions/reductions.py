"""Reductions, norms, scans, and loops."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.programs.jax_functions.case import normal

_X = normal(32, 64)
_Z = normal(32, 64, seed=1)
_ZERO = np.float32(0)


def _sum_and_max(a: Any, b: Any) -> Any:
    return a[0] + b[0], jnp.maximum(a[1], b[1])


CASES: tuple[tuple[Any, ...], ...] = (
    ("cumsum", lambda x: jnp.cumsum(x, axis=1), _X),
    ("cumsum_reversed", lambda x: lax.cumsum(x, axis=0, reverse=True), _X),
    ("cumsum_all", lambda x: jnp.cumsum(x), _X),
    ("cumprod", lambda x: jnp.cumprod(x, axis=0), _X),
    ("cummax", lambda x: lax.cummax(x, axis=1), _X),
    ("cumlogsumexp", lambda x: lax.cumlogsumexp(x, axis=0), _X),
    ("associative_scan", lambda x: lax.associative_scan(jnp.maximum, x, axis=0), _X),
    ("argmax", lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), _X),
    ("argmax_all", jnp.argmax, _X),
    ("nanmax", lambda x: jnp.nanmax(jnp.where(x > 1, jnp.nan, x), axis=1), _X),
    ("variance", lambda x: (jnp.var(x, 0), jnp.std(x, 1)), _X),
    ("logsumexp", lambda x: jax.nn.logsumexp(x, axis=(0, 1)), _X),
    ("softmax", lambda x: jax.nn.softmax(x, axis=0), _X),
    ("standardize", lambda x: jax.nn.standardize(x, axis=-1), _X),
    ("norms", lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1), jnp.linalg.norm(x, ord=1)), _X),
    ("predicates", lambda x, z: (jnp.all(x < 9), jnp.any(x > 2, axis=0), jnp.array_equal(x, z)), _X, _Z),
    ("trapezoid", lambda x: jnp.trapezoid(x, axis=1), _X),
    ("trace", jnp.trace, _X),
    ("reduce_pairs", lambda x, z: lax.reduce((x, z), (_ZERO, _ZERO), _sum_and_max, (0,)), _X, _Z),
    ("scan_rows", lambda x: lax.scan(lambda carry, row: (carry + row, carry * row), jnp.zeros(64), x), _X),
    ("scan_reversed", lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), jnp.zeros(32), x.T, reverse=True), _X),
    ("fori_loop", lambda x: lax.fori_loop(0, 4, lambda i, c: c.at[i].add(c[i + 1]), x), _X),
    (
        "while_loop",
        lambda x: lax.while_loop(lambda c: c[1] < 5, lambda c: (jnp.sin(c[0]) @ c[0].T @ c[0] / 100, c[1] + 1), (x, 0)),
        _X,
    ),
    ("cond", lambda x, p: lax.cond(p, jnp.sin, lambda a: a.sum(0, keepdims=True) + a, x), _X, np.bool_(True)),
    ("switch", lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, lambda a: a[::-1]], x), _X, np.int32(2)),
    ("map_rows", lambda x: lax.map(jnp.sort, x), _X),
    ("hessian", jax.hessian(lambda v: jnp.sum(jnp.tanh(v) ** 3)), normal(32)),
    ("checkpointed", jax.grad(lambda x: jnp.sum(jax.checkpoint(lambda a: jnp.tanh(a @ a.T) @ a)(x))), _X),
)

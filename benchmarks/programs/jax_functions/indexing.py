"""Reads and writes at computed indices, sorts, and counts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.programs.jax_functions.case import integers, normal

_X = normal(32, 64)
_V = normal(64)
_ROWS = integers(32, 24)
_COLUMNS = integers(64, 24)

CASES: tuple[tuple[Any, ...], ...] = (
    ("take_rows", lambda x, i: jnp.take(x, i, axis=0), _X, _ROWS),
    ("take_columns", lambda x, i: jnp.take(x, i, axis=1, mode="clip"), _X, _COLUMNS),
    ("take_along_axis", lambda x, i: jnp.take_along_axis(x, i, axis=1), _X, integers(64, 32, 8)),
    ("index_pairs", lambda x, i, j: x[i, j], _X, _ROWS, _COLUMNS),
    ("index_outer", lambda x, i, j: x[i[:, None], j[None]], _X, _ROWS, _COLUMNS),
    ("set_rows", lambda x, i, u: x.at[i].set(u), _X, np.array([1, 5, 3, 0], np.int32), normal(4, 64)),
    ("add_to_columns", lambda x, i, u: x.at[:, i].add(u), _X, _COLUMNS, normal(32, 24)),
    ("max_at", lambda x, i: x.at[i, 2].max(3.0), _X, _ROWS),
    ("multiply_rows", lambda x, i: x.at[i].multiply(2.0), _X, _ROWS),
    ("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, num_segments=8), _X, integers(8, 32)),
    ("segment_max", lambda x, i: jax.ops.segment_max(x, i, num_segments=8), _X, integers(8, 32)),
    ("bincount", lambda i: jnp.bincount(i, length=16), integers(16, 256)),
    ("histogram", lambda x: jnp.histogram(x, bins=16, range=(-3, 3))[0], _X),
    ("digitize", lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])), _X),
    ("searchsorted", lambda v, x: jnp.searchsorted(jnp.sort(v), x), _V, _X),
    ("unique", lambda i: jnp.unique(i, size=8, fill_value=-1), integers(8, 64)),
    ("nonzero", lambda x: jnp.nonzero(x > 0, size=64), _X),
    ("one_hot", lambda i: jax.nn.one_hot(i, 64), integers(64, 32)),
    ("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, i), (8, 16)), _X, np.int32(3)),
    ("dynamic_update", lambda x, i: lax.dynamic_update_slice(x, jnp.ones((3, 5)), (i, i + 1)), _X, np.int32(3)),
    (
        "update_columns",
        lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 1),
        _X,
        normal(32, 8),
        np.int32(40),
    ),
    ("fill_diagonal", lambda x: jnp.fill_diagonal(x, 9.0, inplace=False), _X),
    ("insert", lambda v: jnp.insert(v, 3, 5.0), _V),
    ("delete", lambda v: jnp.delete(v, 3), _V),
    ("sort_rows", lambda x: jnp.sort(x, axis=1), _X),
    ("sort_columns", lambda x: jnp.sort(x, axis=0), _X),
    ("argsort", lambda x: jnp.argsort(x, axis=1), _X),
    ("sort_pairs", lambda x, z: lax.sort((x, z), dimension=1, num_keys=1), _X, normal(32, 64, seed=1)),
    ("lexsort", lambda i, v: jnp.lexsort((v, i)), integers(3, 64), _V),
    ("median", lambda x: jnp.median(x, axis=1), _X),
    ("quantile", lambda x: jnp.quantile(x, 0.3, axis=0), _X),
    ("top_k", lambda x: lax.top_k(x, 3), _X),
    ("is_in", lambda i: jnp.isin(i, jnp.array([1, 3])), integers(8, 32, 64)),
    ("toeplitz", jax.scipy.linalg.toeplitz, _V),
)

"""Elementwise functions, joins, pads, windows, and random numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.programs.jax_functions.case import integers, normal

_X = normal(32, 64)
_Z = normal(32, 64, seed=1)
_V = normal(64)
_IMAGES = normal(8, 4, 16, 16)
_CHANNELS_LAST = normal(8, 16, 16, 4)
_WINDOW = (1, 1, 2, 2)


def _max_pool(images: Any) -> Any:
    return lax.reduce_window(images, -jnp.inf, lax.max, _WINDOW, _WINDOW, "VALID")


def _laplacian(x: Any) -> Any:
    return x[1:-1, 1:-1] * 4 - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:]


CASES: tuple[tuple[Any, ...], ...] = (
    ("roll", lambda x: jnp.roll(x, 3, axis=1), _X),
    ("roll_by_argument", lambda x, k: jnp.roll(x, k, axis=0), _X, np.int32(3)),
    ("roll_both", lambda x: jnp.roll(x, (1, -2), axis=(0, 1)), _X),
    ("flip", lambda x: jnp.flip(x, 0), _X),
    ("rot90", jnp.rot90, _X),
    ("pad", lambda x: jnp.pad(x, ((1, 2), (0, 3))), _X),
    ("pad_wrap", lambda x: jnp.pad(x, ((1, 2), (2, 3)), mode="wrap"), _X),
    ("pad_reflect", lambda x: jnp.pad(x, ((1, 2), (2, 3)), mode="reflect"), _X),
    ("pad_between", lambda x: lax.pad(x, 0.0, ((1, -1, 1), (0, 2, 0))), _X),
    ("concatenate", lambda x, z: jnp.concatenate([x, z, x], 0), _X, _Z),
    ("stack", lambda x, z: jnp.stack([x, z], axis=1), _X, _Z),
    ("tile", lambda x: jnp.tile(x, (2, 3)), _X),
    ("repeat", lambda x: jnp.repeat(x, 3, axis=0), _X),
    ("split", lambda x: jnp.split(x, 4, axis=1), _X),
    ("reshape_and_sum", lambda x: x.reshape(16, 2, 2, 32).sum(1), _X),
    ("reshape_odd", lambda x: x.reshape(-1)[:2046].reshape(66, 31), _X),
    ("diagonals", lambda x: (jnp.diag(x), jnp.diagonal(x, offset=2)), _X),
    ("triangles", lambda x: jnp.tril(x) + jnp.triu(x, 2), _X),
    ("stencil", _laplacian, _X),
    ("strided", lambda x: x[::2, 1::3], _X),
    ("reversed_stride", lambda x: x[::-2], _X),
    ("gradient", jnp.gradient, _X),
    ("difference", lambda x: jnp.diff(x, axis=1), _X),
    ("select", lambda x: jnp.select([x > 1, x < -1], [x, -x], 0.0), _X),
    ("piecewise", lambda x: jnp.piecewise(x, [x < 0, x >= 0], [lambda a: -a, lambda a: a * 2]), _X),
    ("meshgrid", jnp.meshgrid, _V, normal(32)),
    ("fft", lambda x: jnp.abs(jnp.fft.fft(x)), _X),
    ("rfft_of_columns", lambda x: jnp.abs(jnp.fft.rfft(x, axis=0)), _X),
    ("fft2", lambda x: jnp.abs(jnp.fft.fft2(x)), _X),
    ("exp_of_complex", lambda x, z: jnp.exp(lax.complex(x, z)).real, _X, _Z),
    ("bits", lambda x: lax.bitcast_convert_type(x, jnp.uint8), _X),
    ("packed_bits", lambda i: jnp.packbits(i > 4, axis=1), integers(8, 32, 64)),
    ("population_count", lambda i: lax.population_count(i) + lax.clz(i), integers(999, 32, 64)),
    ("gamma_functions", lambda x: jax.scipy.special.gammaln(abs(x) + 1) + jax.scipy.special.digamma(abs(x) + 1), _X),
    ("erfinv", lambda x: jax.scipy.special.erfinv(jnp.tanh(x)), _X),
    ("random_normal", lambda key: jax.random.normal(key, (32, 64)), np.array([0, 7], np.uint32)),
    ("permutation", lambda x: jax.random.permutation(jax.random.key(0), x), _X),
    ("categorical", lambda x: jax.random.categorical(jax.random.key(1), x), _X),
    ("dropout", lambda x: jnp.where(jax.random.bernoulli(jax.random.key(1), 0.5, x.shape), x, 0), _X),
    ("max_pool", _max_pool, _IMAGES),
    ("max_pool_gradient", jax.grad(lambda images: (_max_pool(images) ** 2).sum()), _IMAGES),
    (
        "average_pool",
        lambda images: lax.reduce_window(images, 0.0, lax.add, (1, 1, 3, 3), (1, 1, 1, 1), "SAME"),
        _IMAGES,
    ),
    ("resize_bilinear", lambda images: jax.image.resize(images, (8, 32, 32, 4), "bilinear"), _CHANNELS_LAST),
    ("resize_cubic", lambda images: jax.image.resize(images, (8, 8, 8, 4), "cubic"), _CHANNELS_LAST),
    (
        "map_coordinates",
        lambda x: jax.scipy.ndimage.map_coordinates(x, [jnp.linspace(0, 31, 9), jnp.linspace(0, 63, 9)], order=1),
        _X,
    ),
    ("interpolate", lambda v: jnp.interp(jnp.linspace(0, 63, 32), jnp.arange(64.0), v), _V),
)

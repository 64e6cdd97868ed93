"""Products, convolutions, and factorizations."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.programs.jax_functions.case import integers, normal

_X = normal(32, 64)
_Y = normal(64, 32)
_Z = normal(32, 64, seed=1)
_IMAGES = normal(8, 4, 16, 16)
_CHANNELS_LAST = normal(8, 16, 16, 4)
_KERNEL = normal(3, 3, 4, 8)
_LAYOUT = ("NHWC", "HWIO", "NHWC")
_HEADS = normal(4, 16, 4, 8)


def _positive(x: Any) -> Any:
    return x @ x.T + 10 * jnp.eye(x.shape[0])


CASES: tuple[tuple[Any, ...], ...] = (
    ("matmul_transposed", lambda x, y: jnp.einsum("ij,jk->ki", x, y), _X, _Y),
    ("matmul_chain", lambda x, y, z: jnp.einsum("ij,jk,kl->il", x, y, z), _X, _Y, _Z),
    ("tensordot", lambda x, z: jnp.tensordot(x, z, axes=[[0, 1], [0, 1]]), _X, _Z),
    ("vecdot", jnp.vecdot, _X, _Z),
    ("outer", lambda x, y: jnp.outer(x.ravel(), y[0]), _X, _Y),
    ("kron", lambda x: jnp.kron(x, jnp.ones((2, 2))), _X),
    ("batched_matmul", lambda a, b: jnp.einsum("bij,bjk->bik", a, b), normal(8, 16, 32), normal(8, 32, 16)),
    ("mapped_matmul", lambda x, y: jax.vmap(lambda row: row @ y)(x), _X, _Y),
    ("bfloat16_matmul", lambda x, y: (x.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16)).astype(jnp.float32), _X, _Y),
    (
        "int8_matmul",
        lambda i, j: lax.dot(i.astype(jnp.int8), j.astype(jnp.int8), preferred_element_type=jnp.int32),
        integers(9, 32, 64),
        integers(9, 64, 32),
    ),
    ("ragged_matmul", lambda x, w: lax.ragged_dot(x, w, jnp.array([12, 20], jnp.int32)), _X, normal(2, 64, 32)),
    ("jacobian_vector", lambda x, z: jax.jvp(lambda a: jnp.sin(a) @ a.T, (x,), (z,)), _X, _Z),
    ("attention", lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), _HEADS, _HEADS, _HEADS),
    ("convolve", lambda v: jnp.convolve(v, jnp.array([1.0, 2.0, 3.0])), normal(64)),
    ("conv", lambda a, k: lax.conv_general_dilated(a, k, (1, 1), "SAME"), _IMAGES, normal(8, 4, 3, 3)),
    (
        "conv_strided",
        lambda a, k: lax.conv_general_dilated(a, k, (2, 2), "VALID", dimension_numbers=_LAYOUT),
        _CHANNELS_LAST,
        _KERNEL,
    ),
    (
        "conv_dilated",
        lambda a, k: lax.conv_general_dilated(a, k, (1,), [(2, 2)], lhs_dilation=(2,), rhs_dilation=(2,)),
        normal(8, 4, 16),
        normal(8, 4, 3),
    ),
    (
        "conv_grouped",
        lambda a, k: lax.conv_general_dilated(a, k, (1, 1), "SAME", feature_group_count=4),
        _IMAGES,
        normal(8, 1, 3, 3),
    ),
    (
        "conv_transposed",
        lambda a, k: lax.conv_transpose(a, k, (2, 2), "SAME", dimension_numbers=_LAYOUT),
        _CHANNELS_LAST,
        _KERNEL,
    ),
    ("cholesky", lambda x: jnp.linalg.cholesky(_positive(x)), _X),
    ("solve", lambda x, z: jnp.linalg.solve(_positive(x), z), _X, _Z),
    ("inverse", lambda x: jnp.linalg.inv(_positive(x)), _X),
    ("eigenvalues", lambda x: jnp.linalg.eigh(_positive(x))[0], _X),
    ("singular_values", lambda x: jnp.linalg.svd(x, compute_uv=False), _X),
    ("qr", lambda x: jnp.abs(jnp.linalg.qr(x)[1]), _X),
    ("log_determinant", lambda x: jnp.linalg.slogdet(_positive(x)), _X),
    ("solve_triangular", lambda x, z: jax.scipy.linalg.solve_triangular(_positive(x), z, lower=True), _X, _Z),
    ("expm", lambda x: jax.scipy.linalg.expm(x @ x.T / 100), _X),
    ("matrix_power", lambda x: jnp.linalg.matrix_power(x @ x.T / 100, 5), _X),
    ("covariance", jnp.cov, _X),
    ("correlation", jnp.corrcoef, _X),
)

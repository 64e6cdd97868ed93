"""Small programs of JAX, from many fields, whose pieces are kernels of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Model = tuple[Callable[..., Any], tuple[Any, ...]]

X = np.linspace(-3, 3, 24 * 32, dtype=np.float32).reshape(24, 32)
ROW = X[0]
IMAGES = np.linspace(-1, 1, 2 * 12 * 12 * 4, dtype=np.float32).reshape(2, 12, 12, 4)
FILTERS = np.linspace(-1, 1, 3 * 3 * 4 * 8, dtype=np.float32).reshape(3, 3, 4, 8)
INTEGERS = (np.arange(24 * 32, dtype=np.int32) * 37 % 101 - 50).reshape(24, 32)
ROWS = np.array([3, 0, 17, 3, 23, 8], np.int32)
KEY = np.array([0, 42], np.uint32)


def attention(queries: Any, keys: Any, values: Any) -> Any:
    """Attention with a causal mask, in heads."""
    heads = [item.reshape(24, 4, 8).transpose(1, 0, 2) for item in (queries, keys, values)]
    scores = jnp.einsum("hqd,hkd->hqk", *heads[:2]) / np.sqrt(8).astype(np.float32)
    scores = jnp.where(jnp.tril(jnp.ones((24, 24), bool)), scores, -1e9)
    return jnp.einsum("hqk,hkd->qhd", jax.nn.softmax(scores, axis=-1), heads[2]).reshape(24, 32)


def rotary(x: Any) -> Any:
    """Rotary positions on halves of the features."""
    angles = jnp.arange(24.0)[:, None] / 100 ** (jnp.arange(16.0) / 16)
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate(
        [first * jnp.cos(angles) - second * jnp.sin(angles), first * jnp.sin(angles) + second * jnp.cos(angles)], -1
    )


def convolution(images: Any, filters: Any, bias: Any) -> Any:
    """A convolution with bias, activation, a normalization over the batch and pooling."""
    y = lax.conv_general_dilated(images, filters, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias
    y = jax.nn.relu6(y)
    y = (y - y.mean((0, 1, 2))) * lax.rsqrt(y.var((0, 1, 2)) + 1e-3)
    return lax.reduce_window(y, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") / 9


def adam(weights: Any, gradient: Any, first: Any, second: Any, step: Any) -> Any:
    """A step of Adam with decay and clipping."""
    norm = jnp.sqrt((gradient**2).sum())
    gradient = gradient * jnp.minimum(1.0, 1.0 / (norm + 1e-6))
    first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
    corrected = first / (1 - 0.9**step) / (jnp.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights - 1e-3 * (corrected + 0.01 * weights), first, second, norm


def cross_entropy(logits: Any, labels: Any) -> Any:
    """The mean loss of labels, with smoothing, and how many are right."""
    chosen = jax.nn.one_hot(labels, 32) * 0.9 + 0.1 / 32
    right = (jnp.argmax(logits, -1) == labels).sum()
    return -(chosen * jax.nn.log_softmax(logits)).sum(-1).mean(), right


def experts(x: Any, gate: Any) -> Any:
    """The two best of four experts of each row, and the load of each."""
    weights, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
    load = jnp.zeros(4).at[chosen.reshape(-1)].add(1.0)
    return weights / weights.sum(-1, keepdims=True), load / load.sum(), jnp.cumsum(jax.nn.one_hot(chosen, 4), 0)


def gated_unit(state: Any, inputs: Any) -> Any:
    """A scan of a gated unit."""

    def step(hidden: Any, item: Any) -> Any:
        reset, update = jax.nn.sigmoid(item + hidden), jax.nn.sigmoid(item - hidden)
        candidate = jnp.tanh(item + reset * hidden)
        hidden = update * hidden + (1 - update) * candidate
        return hidden, (hidden, candidate.max())

    return lax.scan(step, state, inputs)


def state_space(x: Any, decay: Any) -> Any:
    """A linear recurrence as an associative scan."""

    def combine(left: Any, right: Any) -> Any:
        return left[0] * right[0], left[1] * right[0] + right[1]

    return lax.associative_scan(combine, (jax.nn.sigmoid(x) * decay, x))[1]


def quantized(x: Any) -> Any:
    """Rows as integers of 8 and 4 bits with scales, and back."""
    scale = jnp.abs(x).max(-1, keepdims=True) / 127 + 1e-6
    wide = jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8)
    narrow = jnp.clip(jnp.round(x), -8, 7).astype(jnp.int4)
    return wide, scale, wide.astype(jnp.float32) * scale - x, narrow, narrow.astype(jnp.float32) * 0.5


def short_floats(x: Any) -> Any:
    """Floats of 16 and 8 bits, and sums in f32."""
    half, brain = x.astype(jnp.float16), x.astype(jnp.bfloat16)
    eight, wide = x.astype(jnp.float8_e4m3fn), (x * 3).astype(jnp.float8_e5m2)
    total = (brain * brain).astype(jnp.float32).sum(-1)
    return half * 2 + 1, jax.nn.silu(brain), total, eight.astype(jnp.float32) * wide.astype(jnp.float32), half.max(0)


def random_numbers(key: Any) -> Any:
    """Uniform, normal and categorical numbers, and a dropout."""
    first, second, third = jax.random.split(key, 3)
    normal = jax.random.normal(first, (12, 16))
    kept = jax.random.bernoulli(second, 0.8, (12, 16))
    others = jax.random.uniform(third, (48,), minval=-1), jax.random.gumbel(third, (16,))
    return jnp.where(kept, normal / 0.8, 0), *others


def scatters(x: Any, rows: Any) -> Any:
    """Updates of rows by sums, maxima and products, and of a window."""
    updates = jnp.cos(x[:6])
    return (
        x.at[rows].add(updates),
        x.at[rows, 3].max(2.0),
        x.at[rows].mul(0.5, unique_indices=False),
        x.at[4:12, 8:16].set(0.25),
    )


def gathers(x: Any, rows: Any) -> Any:
    """Rows, elements, windows, and elements along an axis."""
    order = jnp.argsort(x, axis=1)
    windows = jax.vmap(lambda start: lax.dynamic_slice(ROW, (start,), (4,)))(rows)
    return x[rows] * 2, x[rows, rows], windows, jnp.take_along_axis(x, order, 1), x[:, ::-1][::2, 1::3]


def moments(x: Any) -> Any:
    """Mean, variance, covariance, quantities of rows and columns."""
    centered = x - x.mean(0)
    return (
        centered.var(1),
        (centered**3).mean(0) / (centered**2).mean(0) ** 1.5,
        x.std(),
        jax.nn.logsumexp(x, axis=0),
        jnp.linalg.norm(x, axis=1),
        x.prod(1),
    )


def integers(x: Any) -> Any:
    """Arithmetic of integers: quotients, remainders, powers, bits, shifts."""
    y = jnp.flip(x, 1)
    unsigned = x.astype(jnp.uint32)
    return (
        x // jnp.where(y == 0, 1, y),
        jnp.remainder(x, 7) ** 3,
        (unsigned * jnp.uint32(2654435761)) >> 16,
        lax.population_count(unsigned) + lax.clz(unsigned),
        jnp.bitwise_xor(x << 2, y) & 255,
        jnp.sign(x) * jnp.abs(y),
    )


def special(x: Any) -> Any:
    """Functions of statistics."""
    positive = jnp.abs(x) + 0.5
    return (
        jax.scipy.special.gammaln(positive),
        jax.scipy.special.erfinv(jnp.tanh(x) * 0.9),
        jax.scipy.special.digamma(positive),
        jax.scipy.stats.norm.logpdf(x),
        jax.nn.gelu(x, approximate=False),
        jax.scipy.special.expit(x) * jnp.log1p(positive),
    )


def complex_numbers(x: Any) -> Any:
    """Complex arithmetic."""
    z = lax.complex(x, x[::-1])
    return jnp.abs(z), jnp.angle(z), jnp.exp(z * 1j), (z * jnp.conj(z)).sum(0), z / (z + 2)


def elections(x: Any) -> Any:
    """Largest elements and where they are, ranks, counts."""
    return (
        jnp.argmax(x, 1),
        jnp.argmin(x, 0),
        jnp.cumsum(x, 1),
        lax.cummax(x, 0),
        (x > 0).sum(1),
        jnp.any(x > 2.9, 0),
        jnp.histogram(x, 5, (-3, 3))[0],
    )


def shapes(x: Any) -> Any:
    """Moves: pads, rolls, tiles, transposes, stacks, repeats."""
    return (
        jnp.pad(x, ((1, 2), (0, 3)), mode="edge") * 2,
        jnp.roll(x, (3, -5), (0, 1)) + 1,
        jnp.tile(x[:4], (2, 3)).T,
        jnp.stack([x, -x], 1).reshape(48, 32).T,
        jnp.repeat(x[:, :4], 3, axis=1) ** 2,
        x.reshape(4, 6, 32).transpose(2, 0, 1) + 1,
    )


def stencil(x: Any) -> Any:
    """Steps of a heat equation in a loop, with borders."""

    def step(_: Any, field: Any) -> Any:
        inner = field[1:-1, 1:-1]
        around = field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]
        return field.at[1:-1, 1:-1].set(inner + 0.1 * (around - 4 * inner))

    return lax.fori_loop(0, 3, step, x)


def newton(x: Any) -> Any:
    """A loop that ends by a condition."""
    state = lax.while_loop(
        lambda item: jnp.abs(item[0] ** 2 - jnp.abs(x) - 1).max() > 1e-3,
        lambda item: (0.5 * (item[0] + (jnp.abs(x) + 1) / item[0]), item[1] + 1),
        (jnp.ones_like(x), 0),
    )
    return state[0], state[1]


def cache_step(keys: Any, new: Any, at: Any) -> Any:
    """A key-value cache with a mask of the positions behind the last one."""
    keys = lax.dynamic_update_slice(keys, new[None], (at, 0))
    is_known = lax.broadcasted_iota(jnp.int32, (24, 1), 0) <= at
    scores = jnp.where(is_known, (keys * new).sum(-1, keepdims=True), -jnp.inf)
    return keys, (jax.nn.softmax(scores, 0) * keys).sum(0)


def distances(x: Any) -> Any:
    """Pairwise distances, their neighbours, and a kernel of them."""
    squares = (x**2).sum(-1)
    apart = squares[:, None] + squares[None] - 2 * x @ x.T
    return jnp.exp(-jnp.maximum(apart, 0) / 8), jnp.argsort(apart, -1)[:, :3], apart.min(1)


def spectrum(x: Any) -> Any:
    """Power of frequencies with a window."""
    window = 0.5 - 0.5 * jnp.cos(2 * jnp.pi * jnp.arange(32) / 31)
    frequencies = jnp.fft.rfft(x * window)
    return jnp.log(jnp.abs(frequencies) ** 2 + 1e-6), jnp.real(frequencies).sum(0)


def gradient_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of the sum of what a function returns, by its first argument."""

    def total(*arguments: Any) -> Any:
        leaves = jax.tree.leaves(function(*arguments))
        return sum(leaf.astype(jnp.float32).sum() for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating))

    return jax.grad(total)


JAX_MODELS: Mapping[str, Model] = MappingProxyType(
    {
        "attention": (attention, (X, X[::-1], X * 0.5)),
        "attention_gradient": (gradient_of(attention), (X, X[::-1], X * 0.5)),
        "rotary": (rotary, (X,)),
        "rotary_gradient": (gradient_of(rotary), (X,)),
        "convolution": (convolution, (IMAGES, FILTERS, ROW[:8])),
        "convolution_gradient": (gradient_of(convolution), (IMAGES, FILTERS, ROW[:8])),
        "adam": (adam, (X, X[::-1], X * 0.1, X**2, np.float32(3))),
        "cross_entropy": (cross_entropy, (X, np.arange(24, dtype=np.int32))),
        "cross_entropy_gradient": (gradient_of(cross_entropy), (X, np.arange(24, dtype=np.int32))),
        "experts": (experts, (X, X[:4].T)),
        "gated_unit": (gated_unit, (ROW, X)),
        "gated_unit_gradient": (gradient_of(gated_unit), (ROW, X)),
        "state_space": (state_space, (X, ROW)),
        "quantized": (quantized, (X,)),
        "short_floats": (short_floats, (X,)),
        "random_numbers": (random_numbers, (KEY,)),
        "scatters": (scatters, (X, ROWS)),
        "scatters_gradient": (gradient_of(lambda x, rows: scatters(x, rows)[:2]), (X, ROWS)),
        "gathers": (gathers, (X, ROWS)),
        "gathers_gradient": (gradient_of(lambda x, rows: gathers(x, rows)[:2]), (X, ROWS)),
        "moments": (moments, (X,)),
        "moments_gradient": (gradient_of(lambda x: moments(x)[:5]), (X,)),
        "integers": (integers, (INTEGERS,)),
        "short_integers": (integers, (INTEGERS.astype(np.int16),)),
        "special": (special, (X,)),
        "special_gradient": (gradient_of(special), (X,)),
        "complex_numbers": (complex_numbers, (X,)),
        "elections": (elections, (X,)),
        "shapes": (shapes, (X,)),
        "shapes_gradient": (gradient_of(shapes), (X,)),
        "stencil": (stencil, (X,)),
        "stencil_gradient": (gradient_of(stencil), (X,)),
        "newton": (newton, (X,)),
        "cache_step": (cache_step, (X, ROW, np.int32(5))),
        "distances": (distances, (X,)),
        "distances_gradient": (gradient_of(distances), (X,)),
        "spectrum": (spectrum, (X,)),
    }
)

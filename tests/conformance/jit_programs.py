"""Programs of JAX whose shardings `jax.jit` decides, in the styles in which models, optimizers and solvers are written.

Each is small, leaves its results open, and needs nothing but JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def _mesh(**axes: int) -> Mesh:
    count = int(np.prod(list(axes.values())))
    devices = np.array(jax.devices()[:count]).reshape(tuple(axes.values()))
    return Mesh(devices, tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


D8, D42, D222 = _mesh(d=8), _mesh(data=4, model=2), _mesh(a=2, b=2, c=2)


class JitProgram(NamedTuple):
    """A function, the shapes of its arguments with their shardings, and its options for `jax.jit`."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]


PROGRAMS: dict[str, JitProgram] = {}


def shape(*sizes: int, by: Any = None, over: Mesh = D42, dtype: str = "float32") -> jax.ShapeDtypeStruct:
    """Return the shape of an argument with its sharding."""
    return jax.ShapeDtypeStruct(sizes, dtype, sharding=NamedSharding(over, P() if by is None else by))


def program(*arguments: Any, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function among the programs."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = JitProgram(function, arguments, options)
        return function

    return enter


def variant(name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Enter a function with other arguments among the programs."""
    PROGRAMS[name] = JitProgram(function, arguments, options)


# Layers in the style of flax.
def dense(p, x):
    """A dense layer with a bias."""
    return x @ p["kernel"] + p["bias"]


def layer_norm(p, x):
    """Layer normalization with variance by squares."""
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) - jnp.square(mean) + 1e-6) * p["scale"]


DENSE = {"kernel": shape(32, 64, by=P(None, "model")), "bias": shape(64, by=P("model"))}


@program(
    {"up": DENSE, "down": {"kernel": shape(64, 32, by=P("model")), "bias": shape(32)}, "norm": {"scale": shape(32)}},
    shape(16, 8, 32, by=P("data")),
)
def flax_block(p, x):
    """A feed-forward block with a residual."""
    return x + dense(p["down"], jax.nn.gelu(dense(p["up"], layer_norm(p["norm"], x))))


variant("flax_block_exact_gelu", lambda p, x: jax.nn.gelu(dense(p, x), approximate=False), DENSE, shape(16, 32))
variant(
    "flax_block_gradient",
    jax.grad(lambda p, x: jnp.mean(jax.nn.silu(dense(p, x)) ** 2)),
    DENSE,
    shape(16, 32, by=P("data")),
)


@program(shape(3, 3, 8, 16, by=P(None, None, None, "model")), shape(8, 12, 12, 8, by=P("data")))
def flax_conv_group_norm(kernel, x):
    """A convolution and normalization of groups of channels."""
    y = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    g = y.reshape(8, 12, 12, 4, 4)
    g = (g - g.mean((1, 2, 4), keepdims=True)) * lax.rsqrt(g.var((1, 2, 4), keepdims=True) + 1e-5)
    return jax.nn.relu(g.reshape(y.shape))


@program(shape(3, 3, 3, 8), shape(8, 16, 16, 3, by=P("data")), shape(8, 10))
def flax_conv_pool_classifier(kernel, x, head):
    """A convolution, pooling of windows, and a classifier."""
    y = jax.nn.relu(lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jax.nn.log_softmax(y.mean((1, 2)) @ head)


def attention(p, x, mask):
    """Multi-head attention."""
    q, k, v = (jnp.einsum("btd,dnh->btnh", x, p[name]) for name in "qkv")
    scores = jnp.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[-1])
    weights = jax.nn.softmax(jnp.where(mask, scores, jnp.finfo(scores.dtype).min))
    return jnp.einsum("bnts,bsnh,nhd->btd", weights, v, p["o"])


HEADS = {name: shape(32, 4, 8, by=P(None, "model")) for name in "qkv"} | {"o": shape(4, 8, 32, by=P("model"))}


@program(HEADS, shape(8, 12, 32, by=P("data")))
def flax_attention(p, x):
    """Causal attention."""
    return attention(p, x, jnp.tri(12, dtype=bool))


@program(HEADS, shape(8, 12, 32, by=P("data")))
def flax_attention_gradient(p, x):
    """Gradients of causal attention, with rematerialization."""
    body = jax.checkpoint(lambda p, x: attention(p, x, jnp.tri(12, dtype=bool)))
    return jax.grad(lambda p: jnp.sum(body(p, x) ** 2))(p)


@program(shape(2, dtype="uint32"), shape(32, 16, by=P("data", "model")))
def flax_dropout(key, x):
    """Dropout with a key."""
    return jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, x.shape), x / 0.9, 0)


@program(shape(16, 8, by=P("data")), shape(8), shape(8))
def flax_batch_norm(x, mean, var):
    """Batch normalization with running statistics."""
    m, v = x.mean(0), x.var(0)
    return (x - m) * lax.rsqrt(v + 1e-5), 0.9 * mean + 0.1 * m, 0.9 * var + 0.1 * v


# Optimizers in the style of optax.
W = {"a": shape(32, 16, by=P("data", "model")), "b": shape(16, by=P("model"))}


def tree(function, *trees):
    """Map over leaves."""
    return jax.tree.map(function, *trees)


@program(W, W, W, W, shape(dtype="int32"))
def optax_adam(p, g, m, v, step):
    """Adam with bias correction."""
    m = tree(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = tree(lambda v, g: 0.999 * v + 0.001 * jnp.square(g), v, g)
    t = step.astype(jnp.float32) + 1
    return tree(lambda p, m, v: p - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), p, m, v), m, v


@program(W, W)
def optax_clip_by_global_norm(p, g):
    """Gradients with a bounded norm."""
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(x)) for x in jax.tree.leaves(g)))
    return tree(lambda p, g: p - 0.1 * jnp.where(norm < 1, g, g / norm), p, g)


@program(shape(32, 16, by=P("data", "model")), shape(32), shape(16))
def optax_adafactor(g, rows, columns):
    """Factored second moments."""
    rows = 0.9 * rows + 0.1 * jnp.square(g).mean(1)
    columns = 0.9 * columns + 0.1 * jnp.square(g).mean(0)
    return g * lax.rsqrt(rows / rows.mean())[:, None] * lax.rsqrt(columns), rows, columns


@program(W, W, W)
def optax_lion(p, g, m):
    """Updates by sign, with decay."""
    return tree(lambda p, g, m: p - 1e-3 * (jnp.sign(0.9 * m + 0.1 * g) + 0.1 * p), p, g, m)


@program(shape(dtype="int32"))
def optax_cosine_schedule(step):
    """A learning rate with warm-up."""
    t = step / 100
    return jnp.where(t < 0.1, t * 10, 0.5 * (1 + jnp.cos(np.pi * jnp.clip(t, 0, 1))))


@program({"w": shape(32, 16, by=P("data"))}, shape(64, 32, by=P("data")), shape(64, 16), donate_argnums=(0,))
def optax_train_step(p, x, y):
    """A step of gradient descent with several micro-batches; the parameters are donated."""

    def loss(p, x, y):
        return jnp.mean(optax_huber(x @ p["w"] - y))

    def one(total, batch):
        return tree(jnp.add, total, jax.grad(loss)(p, *batch)), None

    total, _ = lax.scan(one, tree(jnp.zeros_like, p), (x.reshape(4, 16, 32), y.reshape(4, 16, 16)))
    return tree(lambda p, g: p - 0.1 * g / 4, p, total)


def optax_huber(error):
    """A loss that is square near zero."""
    size = jnp.abs(error)
    quadratic = jnp.minimum(size, 1)
    return 0.5 * quadratic**2 + size - quadratic


# Pytrees of functions, in the style of equinox.
@program([shape(16, 32, by=P(None, "model")), shape(32, 8, by=P("model"))], shape(24, 16, by=P("data")))
def equinox_mlp(weights, x):
    """A network over a batch by vmap."""

    def network(x):
        for w in weights[:-1]:
            x = jax.nn.leaky_relu(w.T @ x)
        return weights[-1].T @ x

    return jax.vmap(network)(x)


@program(shape(4, 16, 16, by=P("model")), shape(8, 16, by=P("data")))
def equinox_ensemble(weights, x):
    """Several networks at once."""
    return jax.vmap(lambda w: jnp.tanh(x @ w).mean(0))(weights)


@program(shape(16, 16), shape(8, 16, by=P("data")))
def equinox_jacobian(w, x):
    """Jacobians of a function, forwards."""
    return jax.vmap(jax.jacfwd(lambda x: jnp.tanh(w @ x)))(x)


@program(shape(16, 16, by=P("model")), shape(8, 16, by=P("data")))
def equinox_hessian_product(w, x):
    """A product with a matrix of second derivatives."""

    def loss(w):
        return jnp.sum(jnp.sin(x @ w) ** 2)

    return jax.jvp(jax.grad(loss), (w,), (jnp.ones_like(w),))[1]


# Recurrent networks in the style of haiku.
def lstm_step(p, carry, x):
    """One step of an LSTM."""
    h, c = carry
    i, g, f, o = jnp.split(jnp.concatenate([x, h], -1) @ p["w"] + p["b"], 4, -1)
    c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


LSTM = {"w": shape(24, 64, by=P(None, "model")), "b": shape(64)}


@program(LSTM, shape(6, 16, 8, by=P(None, "data")))
def haiku_lstm(p, x):
    """An LSTM over time."""
    zero = jnp.zeros((16, 16))
    return lax.scan(lambda c, x: lstm_step(p, c, x), (zero, zero), x)


variant(
    "haiku_lstm_gradient",
    jax.grad(lambda p, x: jnp.sum(haiku_lstm(p, x)[1] ** 2)),
    {"w": shape(24, 64), "b": shape(64)},
    shape(6, 16, 8, by=P(None, "data")),
)


@program(shape(16, 48), shape(16, 48), shape(5, 8, 16, by=P(None, "data")))
def haiku_gru(wi, wh, x):
    """A GRU, forwards and backwards in time."""

    def step(h, x):
        (rx, zx, nx), (rh, zh, nh) = jnp.split(x @ wi, 3, -1), jnp.split(h @ wh, 3, -1)
        r, z = jax.nn.sigmoid(rx + rh), jax.nn.sigmoid(zx + zh)
        h = (1 - z) * jnp.tanh(nx + r * nh) + z * h
        return h, h

    zero = jnp.zeros((8, 16))
    forward, backward = lax.scan(step, zero, x)[1], lax.scan(step, zero, x, reverse=True)[1]
    return jnp.concatenate([forward, backward], -1)


@program(shape(64, 16, by=P("model")), shape(8, 12, by=P("data"), dtype="int32"), shape(16, 16))
def haiku_embedding_rnn(table, tokens, w):
    """Embeddings into a recurrence whose length varies."""
    x = jnp.swapaxes(table[tokens], 0, 1)
    return lax.fori_loop(0, 12, lambda t, h: jnp.tanh(x[t] + h @ w), jnp.zeros((8, 16)))


# Decoders in the style of MaxText.
def rms_norm(x, scale):
    """Normalization by the root of the mean of squares."""
    return x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * scale


def rope(x):
    """Rotary positions."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * 1e4 ** (-jnp.arange(half) / half)
    sin, cos = jnp.sin(angle)[:, None], jnp.cos(angle)[:, None]
    left, right = jnp.split(x, 2, -1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], -1)


def decoder_layer(x, p):
    """Grouped-query attention with rotary positions, and a gated feed-forward network."""
    y = rms_norm(x, p["n1"])
    q, k, v = (jnp.einsum("btd,dnh->btnh", y, p[name]) for name in "qkv")
    q, k = rope(q), rope(k)
    q = q.reshape(*q.shape[:2], 2, 2, 8)
    scores = jnp.einsum("btgnh,bsgh->bgnts", q, k)
    weights = jax.nn.softmax(jnp.where(jnp.tri(x.shape[1], dtype=bool), scores, -1e9))
    x = x + jnp.einsum("bgnts,bsgh,gnhd->btd", weights, v, p["o"].reshape(2, 2, 8, 32))
    y = rms_norm(x, p["n2"])
    return x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"], None


def layers(count: int | None, model: Any = "model", data: Any = None) -> dict[str, Any]:
    """Return the weights of decoder layers, stacked or not."""
    first = [] if count is None else [count]
    lead = [None] * len(first)
    return {
        "n1": shape(*first, 32),
        "n2": shape(*first, 32),
        "q": shape(*first, 32, 4, 8, by=P(*lead, data, model)),
        "k": shape(*first, 32, 2, 8, by=P(*lead, data, model)),
        "v": shape(*first, 32, 2, 8, by=P(*lead, data, model)),
        "o": shape(*first, 4, 8, 32, by=P(*lead, model, None, data)),
        "gate": shape(*first, 32, 64, by=P(*lead, data, model)),
        "up": shape(*first, 32, 64, by=P(*lead, data, model)),
        "down": shape(*first, 64, 32, by=P(*lead, model, data)),
    }


@program(layers(None), shape(8, 12, 32, by=P("data")))
def maxtext_layer(p, x):
    """One decoder layer."""
    return decoder_layer(x, p)[0]


@program(layers(3), shape(8, 12, 32, by=P("data")))
def maxtext_scanned_layers(p, x):
    """Decoder layers in a loop."""
    return lax.scan(decoder_layer, x, p)[0]


def scanned_loss(p, x):
    """The loss of layers in a loop, with rematerialization."""
    return jnp.mean(lax.scan(jax.checkpoint(decoder_layer), x, p)[0] ** 2)


variant("maxtext_gradient_tensor_parallel", jax.grad(scanned_loss), layers(2), shape(8, 12, 32, by=P("data")))
variant(
    "maxtext_gradient_fsdp",
    jax.value_and_grad(scanned_loss),
    layers(2, None, "data"),
    shape(8, 12, 32, by=P("data")),
)
variant("maxtext_gradient_both", jax.grad(scanned_loss), layers(2, "model", "data"), shape(8, 12, 32, by=P("data")))


@program(shape(8, 6, 32, by=P("data")), shape(32, 64, by=P(None, "model")), shape(8, 6, by=P("data"), dtype="int32"))
def maxtext_vocabulary_loss(x, table, targets):
    """Cross entropy over a sharded vocabulary, with a penalty on the normalizer."""
    logits = x @ table
    z = jax.nn.logsumexp(logits, -1)
    picked = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
    return jnp.mean(z - picked + 1e-4 * jnp.square(z))


variant(
    "maxtext_vocabulary_gradient",
    jax.grad(maxtext_vocabulary_loss, (0, 1)),
    *PROGRAMS["maxtext_vocabulary_loss"].arguments,
)


@program(
    shape(8, 32, 2, 8, by=P("data", None, "model")),
    shape(8, 1, 2, 8, by=P("data")),
    shape(dtype="int32"),
)
def maxtext_decode(cache, key, position):
    """A step of decoding with a cache."""
    cache = lax.dynamic_update_slice(cache, key, (0, position, 0, 0))
    scores = jnp.einsum("bqhd,bkhd->bhqk", key, cache)
    weights = jax.nn.softmax(jnp.where(jnp.arange(32) <= position, scores, -1e9))
    return cache, jnp.einsum("bhqk,bkhd->bqhd", weights, cache)


@program(shape(8, 24, 32, by=P("data", "model")), shape(32, 32))
def maxtext_sequence_parallel(x, w):
    """Constraints that move a sharding from the sequence to the features and back."""
    y = lax.with_sharding_constraint(rms_norm(x, 1.0) @ w, NamedSharding(D42, P("data", None, "model")))
    return lax.with_sharding_constraint(jax.nn.relu(y) @ w.T, NamedSharding(D42, P("data", "model")))


# Mixtures of experts.
EXPERTS = {"router": shape(32, 4), "up": shape(4, 32, 64, by=P("model")), "down": shape(4, 64, 32, by=P("model"))}


@program(EXPERTS, shape(64, 32, by=P("data")))
def moe_top_two(p, x):
    """Two experts a token, with one-hot dispatch."""
    weights, chosen = lax.top_k(jax.nn.softmax(x @ p["router"]), 2)
    dispatch = jnp.einsum("nk,nke->ne", weights, jax.nn.one_hot(chosen, 4))
    y = jnp.einsum("ef,nef->nef", jnp.ones((4, 64)), jax.nn.gelu(jnp.einsum("nd,edf->nef", x, p["up"])))
    return jnp.einsum("ne,nef,efd->nd", dispatch, y, p["down"])


variant("moe_gradient", jax.grad(lambda p, x: jnp.mean(moe_top_two(p, x) ** 2)), EXPERTS, shape(64, 32, by=P("data")))


@program(EXPERTS, shape(64, 32, by=P("data")))
def moe_expert_choice(p, x):
    """Experts choose tokens, which are gathered and scattered back."""
    weights, chosen = lax.top_k(jax.nn.softmax(x @ p["router"]).T, 16)
    y = jax.nn.relu(jnp.einsum("ecd,edf->ecf", x[chosen], p["up"]))
    y = jnp.einsum("ecf,efd->ecd", y, p["down"]) * weights[..., None]
    return jnp.zeros_like(x).at[chosen.reshape(-1)].add(y.reshape(-1, 32))


@program(EXPERTS, shape(64, 32, by=P("data")))
def moe_capacity(p, x):
    """Tokens in the order of their experts, up to a capacity."""
    gate = jnp.argmax(x @ p["router"], -1)
    place = jnp.cumsum(jax.nn.one_hot(gate, 4, dtype=jnp.int32), 0)[jnp.arange(64), gate] - 1
    buffer = jnp.zeros((4, 20, 32)).at[gate, place].set(x, mode="drop")
    return jnp.einsum("ecd,edf,efg->ecg", buffer, p["up"], p["down"])[gate, place]


# State-space models.
@program(shape(8, 32, 16, by=P("data", None, "model")), shape(8, 32, 16, by=P("data")))
def ssm_associative_scan(a, x):
    """A linear recurrence by an associative scan."""
    return lax.associative_scan(lambda x, y: (x[0] * y[0], x[1] * y[0] + y[1]), (jax.nn.sigmoid(a), x), axis=1)[1]


@program(shape(16, 4), shape(16, 4), shape(8, 24, 16, by=P("data", None, "model")))
def ssm_selective(a, b, x):
    """A selective scan in the style of Mamba."""

    def step(h, x):
        delta = jax.nn.softplus(x)[..., None]
        h = jnp.exp(-delta * jnp.exp(a)) * h + delta * b * x[..., None]
        return h, h.sum(-1)

    return jnp.swapaxes(lax.scan(step, jnp.zeros((8, 16, 4)), jnp.swapaxes(x, 0, 1))[1], 0, 1)


@program(shape(16, 32), shape(8, 16, 32, by=P("data", "model")))
def ssm_long_convolution(kernel, x):
    """A long convolution by Fourier transforms."""
    return jnp.fft.irfft(jnp.fft.rfft(x, 64) * jnp.fft.rfft(kernel, 64), 64)[..., :32]


@program(shape(8, 4, 16, 8, by=P("data", "model")), shape(8, 4, 16, 8, by=P("data")))
def ssm_retention(q, k):
    """Retention with decay by distance."""
    distance = jnp.arange(16)[:, None] - jnp.arange(16)
    decay = jnp.where(distance >= 0, 0.9 ** jnp.maximum(distance, 0), 0)
    return jnp.einsum("bhts,bhsd->bhtd", jnp.einsum("bhtd,bhsd->bhts", q, k) * decay, k)


# Diffusion.
@program(shape(16, by=P("data"), dtype="int32"), shape(32, 64, by=P(None, "model")))
def diffusion_time_embedding(t, w):
    """Embeddings of time steps."""
    frequencies = jnp.exp(-np.log(1e4) * jnp.arange(16) / 16)
    angle = t[:, None] * frequencies
    return jax.nn.silu(jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1) @ w)


@program(shape(3, 3, 8, 8), shape(32, 8), shape(8, 8, 8, 8, by=P("data")), shape(8, 32, by=P("data")))
def diffusion_residual_block(kernel, w, x, time):
    """A residual block of a U-Net: down, and up again."""

    def conv(x):
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    y = conv(jax.nn.silu(x)) + (time @ w)[:, None, None]
    down = y.reshape(8, 4, 2, 4, 2, 8).mean((2, 4))
    up = jnp.repeat(jnp.repeat(conv(down), 2, 1), 2, 2)
    return jnp.concatenate([x + up, y], -1)


@program(shape(16, 16), shape(8, 16, by=P("data")), shape(10))
def diffusion_sampler(w, x, alphas):
    """A deterministic sampler, backwards in time."""

    def step(x, pair):
        now, before = pair
        noise = jnp.tanh(x @ w)
        clean = (x - jnp.sqrt(1 - now) * noise) / jnp.sqrt(now)
        return jnp.sqrt(before) * clean + jnp.sqrt(1 - before) * noise, None

    return lax.scan(step, x, (alphas[1:], alphas[:-1]), reverse=True)[0]


@program(shape(2, dtype="uint32"), shape(8, 16, by=P("data")), shape(16, 16))
def diffusion_loss(key, x, w):
    """A denoising loss with random noise and times."""
    first, second = jax.random.split(jax.random.wrap_key_data(key))
    noise, t = jax.random.normal(first, x.shape), jax.random.uniform(second, (8, 1))
    return jax.value_and_grad(lambda w: jnp.mean((jnp.tanh((t * x + (1 - t) * noise) @ w) - noise) ** 2))(w)


# Graphs.
EDGES = shape(96, by=P("data"), dtype="int32")


@program(shape(32, 16, by=P("data")), EDGES, EDGES, shape(16, 16, by=P(None, "model")))
def gnn_message_passing(nodes, senders, receivers, w):
    """Messages along edges, summed up at their ends."""
    return jax.nn.relu(jax.ops.segment_sum(nodes[senders] @ w, receivers, num_segments=32))


@program(shape(32, 16, by=P("data")), EDGES, EDGES, shape(32))
def gnn_attention(nodes, senders, receivers, w):
    """Attention over the edges of each node."""
    logits = jax.nn.leaky_relu(jnp.concatenate([nodes[senders], nodes[receivers]], -1) @ w)
    largest = jax.ops.segment_max(logits, receivers, num_segments=32)
    weights = jnp.exp(logits - largest[receivers])
    total = jax.ops.segment_sum(weights, receivers, num_segments=32)
    return jax.ops.segment_sum(nodes[senders] * (weights / total[receivers])[:, None], receivers, num_segments=32)


@program(shape(32, 32, by=P("data")), shape(32, 16, by=P(None, "model")), shape(16, 16))
def gnn_dense_layers(adjacency, x, w):
    """Layers over a normalized dense graph."""
    degree = lax.rsqrt(adjacency.sum(1) + 1)
    normal = degree[:, None] * adjacency * degree
    return lax.fori_loop(0, 3, lambda _, x: jax.nn.relu(normal @ x @ w), x)


variant(
    "gnn_gradient",
    jax.grad(lambda n, s, r, w: jnp.sum(gnn_message_passing(n, s, r, w) ** 2), (0, 3)),
    *PROGRAMS["gnn_message_passing"].arguments,
)


# Solvers.
@program(shape(32, 32, by=P("data", "model")), shape(32, by=P("data")))
def solver_conjugate_gradient(a, b):
    """Conjugate gradients until the residual is small."""

    def step(state):
        x, r, p, i = state
        ap = a @ p
        alpha = (r @ r) / (p @ ap)
        new = r - alpha * ap
        return x + alpha * p, new, new + (new @ new) / (r @ r) * p, i + 1

    return lax.while_loop(lambda s: (jnp.linalg.norm(s[1]) > 1e-3) & (s[3] < 20), step, (jnp.zeros(32), b, b, 0))[0]


@program(shape(64, 64, by=P("data")))
def solver_jacobi_grid(x):
    """Relaxation on a grid with its neighbours."""

    def step(x, _):
        shifted = [jnp.roll(x, by, axis) for axis in (0, 1) for by in (1, -1)]
        return 0.25 * sum(shifted), None

    return lax.scan(step, x, None, length=5)[0]


@program(shape(16, 8, by=P("data")), shape(8, 8))
def solver_runge_kutta(y, w):
    """A step of the classical method, in a loop."""

    def f(y):
        return jnp.sin(y @ w)

    def step(y, _):
        k1 = f(y)
        k2 = f(y + 0.05 * k1)
        k3 = f(y + 0.05 * k2)
        k4 = f(y + 0.1 * k3)
        return y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), y

    return lax.scan(step, y, None, length=4)


@program(shape(16, 6, 6, by=P("data")), shape(16, 6, by=P("data")))
def solver_newton(a, b):
    """Newton steps with a linear solve for each of a batch."""
    a = a @ jnp.swapaxes(a, 1, 2) + 6 * jnp.eye(6)

    def step(_, x):
        residual = jnp.einsum("bij,bj->bi", a, jnp.tanh(x)) - b
        return x - jnp.linalg.solve(a * (1 - jnp.tanh(x) ** 2)[:, None], residual[..., None])[..., 0]

    return lax.fori_loop(0, 3, step, jnp.zeros_like(b))


@program(shape(8, 12, 6, by=P("data")))
def solver_least_squares(a):
    """Factors by QR and Cholesky of a batch."""
    q, r = jnp.linalg.qr(a)
    return q, jnp.linalg.cholesky(jnp.swapaxes(r, 1, 2) @ r + jnp.eye(6))


@program(shape(5, 32, by=P(None, "data")), shape(5, 32, by=P(None, "data")), shape(32))
def solver_two_loops(steps, changes, gradient):
    """The two loops of limited-memory BFGS."""
    rho = 1 / jnp.sum(steps * changes, -1)

    def back(q, item):
        s, y, r = item
        alpha = r * (s @ q)
        return q - alpha * y, alpha

    q, alphas = lax.scan(back, gradient, (steps, changes, rho), reverse=True)
    return lax.scan(lambda q, i: (q + i[0] * (i[3] - i[2] * (i[1] @ q)), None), q, (steps, changes, rho, alphas))[0]


@program(shape(64, 8, by=P("data")), shape(8, 8, by=P("model")))
def solver_k_means(x, centers):
    """Rounds of k-means."""

    def step(_, c):
        nearest = jax.nn.one_hot(jnp.argmin(jnp.sum((x[:, None] - c) ** 2, -1), -1), 8)
        return (nearest.T @ x) / jnp.maximum(nearest.sum(0), 1)[:, None]

    return lax.fori_loop(0, 4, step, centers)


# Samplers.
KEYS = shape(16, 2, by=P("data"), dtype="uint32")


@program(KEYS, shape(16, 4, by=P("data")))
def sampler_metropolis(keys, x):
    """Chains of Metropolis steps, one for each key."""

    def density(x):
        return -jnp.sum(x**4 - x**2)

    def chain(key, x):
        def step(x, key):
            first, second = jax.random.split(key)
            proposal = x + 0.1 * jax.random.normal(first, x.shape)
            accept = jnp.log(jax.random.uniform(second)) < density(proposal) - density(x)
            return jnp.where(accept, proposal, x), accept

        return lax.scan(step, x, jax.random.split(jax.random.wrap_key_data(key), 3))

    return jax.vmap(chain)(keys, x)


@program(shape(16, 8, by=P("data")), shape(16, 8, by=P("data")), shape(8, 8))
def sampler_leapfrog(x, momentum, w):
    """Leapfrog steps of Hamiltonian Monte Carlo."""
    gradient = jax.grad(lambda x: jnp.sum(jax.nn.logsumexp(x @ w, -1)))

    def step(state, _):
        x, p = state
        p = p - 0.05 * gradient(x)
        x = x + 0.1 * p
        return (x, p - 0.05 * gradient(x)), None

    return lax.scan(step, (x, momentum), None, length=4)[0]


@program(shape(2, dtype="uint32"), shape(8, 64, by=P("data", "model")))
def sampler_nucleus(key, logits):
    """Tokens from the most probable ones."""
    ordered = jnp.sort(jax.nn.softmax(logits))[:, ::-1]
    cutoff = jnp.take_along_axis(ordered, jnp.sum(jnp.cumsum(ordered, -1) < 0.9, -1, keepdims=True), -1)
    top_logits = jnp.where(jax.nn.softmax(logits) >= cutoff, logits, -jnp.inf)
    return jax.random.categorical(jax.random.wrap_key_data(key), top_logits)


@program(shape(8, 4, by=P("data")), shape(8, 4, 32, by=P("data", None, "model")))
def sampler_beam_step(scores, log_probabilities):
    """A step of beam search."""
    total = (scores[..., None] + log_probabilities).reshape(8, -1)
    best, index = lax.top_k(total, 4)
    return best, index // 32, index % 32


@program(shape(64, 4, by=P("data")), shape(64, by=P("data")))
def sampler_resampling(particles, weights):
    """Systematic resampling of particles."""
    edges = jnp.cumsum(weights / weights.sum())
    return particles[jnp.searchsorted(edges, (jnp.arange(64) + 0.5) / 64)]


# Calls, branches and meshes of three axes.
@jax.jit
def shared(x, w):
    """A function that is called several times."""
    return jax.nn.silu(x @ w) * jnp.square(x @ w)


variant(
    "calls_with_different_shardings",
    lambda x, y, w: (shared(x, w), shared(y, w)),
    shape(16, 32, by=P("data")),
    shape(16, 32, by=P(None, "model")),
    shape(32, 64),
)
variant(
    "branches",
    lambda p, x, w: lax.cond(p, lambda: jnp.sinh(x @ w), lambda: jnp.flip(x, 0) @ w),
    shape(dtype="bool"),
    shape(16, 32, by=P("data")),
    shape(32, 64, by=P(None, "model")),
)
variant(
    "switch_in_loop",
    lambda x: lax.fori_loop(0, 3, lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x.T], x), x),
    shape(16, 16, by=P("d"), over=D8),
)
variant(
    "joined_rows",
    lambda x, y: jnp.tanh(jnp.concatenate([x, y])),
    shape(16, 4, by=P("data")),
    shape(6, 4, by=P("model")),
)
variant(
    "three_axes",
    lambda x, y: jnp.einsum("ijk,kjl->il", x, y),
    shape(8, 4, 16, by=P("a", "b", "c"), over=D222),
    shape(16, 4, 8, by=P("c", None, "b"), over=D222),
)
variant(
    "special_functions",
    lambda x: (jax.scipy.special.gammaln(x), jnp.arctan2(x, 2), jax.scipy.special.erf(x), jnp.arccosh(x + 1)),
    shape(16, 8, by=P("d"), over=D8),
)
variant(
    "shards_in_a_loop",
    lambda x: lax.fori_loop(
        0,
        2,
        lambda _, x: jax.shard_map(
            lambda x: lax.ppermute(x, "d", [(i, (i + 1) % 8) for i in range(8)]) * 2,
            mesh=D8,
            in_specs=P("d"),
            out_specs=P("d"),
        )(x),
        x,
    ),
    shape(16, 8, by=P("d"), over=D8),
)

"""Layers and models with their gradients, in the style of libraries for neural networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.programs.jax_functions.case import integers, normal

_LAYOUT = ("NHWC", "HWIO", "NHWC")
_X = normal(32, 64)
_SEQUENCES = normal(8, 16, 32)
_IMAGES = normal(8, 16, 16, 4)
_TOKENS = integers(64, 8, 16)


def _weights(*shape: int, seed: int = 0) -> np.ndarray:
    return normal(*shape, seed=seed, scale=shape[-2] ** -0.5)


def _step(model: Callable[..., Any]) -> Callable[..., Any]:
    """Return the mean square of what a model computes, and its gradients by the parameters."""
    return jax.value_and_grad(lambda parameters, *inputs: jnp.mean(model(parameters, *inputs) ** 2))


def _norm(x: Any, scale: Any = 1.0) -> Any:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale


def _rms_norm(x: Any) -> Any:
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def _conv(x: Any, kernel: Any, stride: int = 1, groups: int = 1) -> Any:
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=_LAYOUT, feature_group_count=groups
    )


def _mlp(parameters: Any, x: Any) -> Any:
    for weight in parameters[:-1]:
        x = jax.nn.gelu(x @ weight)
    return x @ parameters[-1]


def _gated(parameters: Any, x: Any) -> Any:
    gate, up, down = parameters
    return (jax.nn.silu(x @ gate) * (x @ up)) @ down


def _attend(parameters: Any, x: Any, *, is_causal: bool = True) -> Any:
    projections, output = parameters
    q, k, v = (jnp.einsum("bsd,dhk->bshk", x, weight) for weight in projections)
    scores = jnp.einsum("bqhk,bshk->bhqs", q, k) * q.shape[-1] ** -0.5
    if is_causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    return jnp.einsum("bhqs,bshk,hkd->bqd", jax.nn.softmax(scores), v, output)


def _block(parameters: Any, x: Any) -> Any:
    x = x + _attend(parameters["attention"], _norm(x))
    return x + _mlp(parameters["mlp"], _norm(x))


def _rotated(x: Any) -> Any:
    """Rotary positions: pairs of features turn with their place."""
    angles = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(x.shape[-1] // 2) / 8)
    first, second = jnp.split(x, 2, axis=-1)
    sine, cosine = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def _grouped_attention(parameters: Any, x: Any) -> Any:
    """Four heads that share two keys and values."""
    query, keys, values = parameters
    q = _rotated(jnp.einsum("bsd,dhk->bshk", x, query))
    k = _rotated(jnp.einsum("bsd,dhk->bshk", x, keys))
    v = jnp.einsum("bsd,dhk->bshk", x, values)
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def _lstm(parameters: Any, x: Any) -> Any:
    def cell(state: Any, inputs: Any) -> Any:
        hidden, memory = state
        gates = inputs @ parameters[0] + hidden @ parameters[1]
        enter, keep, leave, new = jnp.split(gates, 4, axis=-1)
        memory = jax.nn.sigmoid(keep) * memory + jax.nn.sigmoid(enter) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(leave) * jnp.tanh(memory)
        return (hidden, memory), hidden

    start = jnp.zeros((x.shape[0], 32)), jnp.zeros((x.shape[0], 32))
    return lax.scan(cell, start, x.swapaxes(0, 1))[1]


def _gru(parameters: Any, x: Any) -> Any:
    def cell(hidden: Any, inputs: Any) -> Any:
        reset, update = jnp.split(jax.nn.sigmoid(inputs @ parameters[0] + hidden @ parameters[1]), 2, axis=-1)
        new = jnp.tanh(inputs @ parameters[2] + (reset * hidden) @ parameters[3])
        hidden = update * hidden + (1 - update) * new
        return hidden, hidden

    return lax.scan(cell, jnp.zeros((x.shape[0], 32)), x.swapaxes(0, 1))[1]


def _residual_net(parameters: Any, x: Any) -> Any:
    first, second, third, head = parameters
    x = _conv(x, first)
    x = x + _conv(jax.nn.relu(_norm(x)), second)
    return _conv(jax.nn.relu(x), third, stride=2).mean((1, 2)) @ head


def _batch_norm_net(parameters: Any, x: Any) -> Any:
    kernel, scale, head = parameters
    x = _conv(x, kernel)
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return jax.nn.relu((x - mean) * lax.rsqrt(variance + 1e-5) * scale).mean((1, 2)) @ head


def _group_norm_net(parameters: Any, x: Any) -> Any:
    kernel, head = parameters
    x = _conv(x, kernel)
    grouped = x.reshape(*x.shape[:3], 4, -1)
    mean, variance = grouped.mean((1, 2, 4), keepdims=True), grouped.var((1, 2, 4), keepdims=True)
    return jax.nn.silu((grouped - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape).mean((1, 2)) @ head


def _separable_net(parameters: Any, x: Any) -> Any:
    depthwise, pointwise, head = parameters
    return jax.nn.relu(_conv(_conv(x, depthwise, groups=4), pointwise)).max((1, 2)) @ head


def _encoder_decoder(parameters: Any, x: Any) -> Any:
    down, up = parameters
    small = jax.nn.relu(_conv(x, down, stride=2))
    return _conv(jnp.concatenate([jax.image.resize(small, (*x.shape[:3], 8), "nearest"), x], -1), up)


def _experts(parameters: Any, x: Any) -> Any:
    """A mixture of four experts, each token weighted over all of them."""
    router, up, down = parameters
    weights = jax.nn.softmax(x @ router)
    return jnp.einsum("te,teh,ehd->td", weights, jax.nn.gelu(jnp.einsum("td,edh->teh", x, up)), down)


def _routed_experts(parameters: Any, x: Any) -> Any:
    """A mixture of four experts with room for eight tokens each."""
    router, up, down = parameters
    choice = jax.nn.one_hot((x @ router).argmax(-1), 4)
    place = jnp.cumsum(choice, axis=0) * choice - 1
    dispatch = choice[..., None] * jax.nn.one_hot(place, 8)
    inputs = jnp.einsum("tec,td->ecd", dispatch, x)
    outputs = jnp.einsum("ech,ehd->ecd", jax.nn.relu(jnp.einsum("ecd,edh->ech", inputs, up)), down)
    return jnp.einsum("tec,ecd->td", dispatch, outputs)


def _language_model(parameters: Any, tokens: Any) -> Any:
    x = parameters["embedding"][tokens] + parameters["positions"]
    x = lax.scan(lambda x, layer: (_block(layer, x), None), x, parameters["layers"])[0]
    logits = jnp.einsum("bsd,vd->bsv", _norm(x), parameters["embedding"])
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), tokens[:, 1:, None], axis=-1)
    return -picked.mean()


def _layers(count: int) -> Any:
    return {
        "attention": (
            tuple(_weights(count, 32, 4, 8, seed=seed) for seed in range(3)),
            _weights(count, 4, 8, 32),
        ),
        "mlp": (_weights(count, 32, 64), _weights(count, 64, 32)),
    }


def language_model_parameters() -> Any:
    """Return the parameters of a small language model with two layers."""
    return {"embedding": normal(64, 32), "positions": normal(16, 32), "layers": _layers(2)}


def language_model_loss(parameters: Any, tokens: Any) -> Any:
    """Return the loss of a small language model."""
    return _language_model(parameters, tokens)


def _remat_model(parameters: Any, x: Any) -> Any:
    return lax.scan(lambda x, layer: (jax.checkpoint(_block)(layer, x), None), x, parameters)[0]


def _graph_net(parameters: Any, nodes: Any, senders: Any, receivers: Any) -> Any:
    edge, node = parameters
    messages = jnp.tanh(jnp.concatenate([nodes[senders], nodes[receivers]], -1) @ edge)
    return jax.nn.relu(jax.ops.segment_sum(messages, receivers, nodes.shape[0]) @ node)


def _recommender(parameters: Any, dense: Any, sparse: Any) -> Any:
    tables, bottom, top = parameters
    features = [table[sparse[:, number]] for number, table in enumerate(tables)] + [jax.nn.relu(dense @ bottom)]
    stacked = jnp.stack(features, axis=1)
    products = jnp.einsum("bid,bjd->bij", stacked, stacked).reshape(dense.shape[0], -1)
    return jax.nn.sigmoid(products @ top)


def _autoencoder(parameters: Any, x: Any) -> Any:
    encode, decode = parameters
    mean, scale = jnp.split(x @ encode, 2, axis=-1)
    sample = mean + jnp.exp(scale) * jax.random.normal(jax.random.key(0), mean.shape)
    divergence = 0.5 * (jnp.exp(2 * scale) + mean**2 - 1 - 2 * scale).sum(-1)
    return ((sample @ decode - x) ** 2).sum(-1) + divergence


def _flow(parameters: Any, x: Any) -> Any:
    """Affine couplings; the logarithm of the density."""
    total = jnp.zeros(x.shape[0])
    for number, (first, second) in enumerate(parameters):
        fixed, moved = jnp.split(x, 2, axis=-1) if number % 2 else jnp.split(x, 2, axis=-1)[::-1]
        shift, scale = jnp.split(jnp.tanh(fixed @ first) @ second, 2, axis=-1)
        scale = jnp.tanh(scale)
        x = jnp.concatenate([fixed, moved * jnp.exp(scale) + shift], -1)
        total = total + scale.sum(-1)
    return total - 0.5 * (x**2).sum(-1)


def _contrastive(parameters: Any, left: Any, right: Any) -> Any:
    a, b = (inputs @ weight for inputs, weight in zip((left, right), parameters, strict=True))
    a, b = (item / jnp.linalg.norm(item, axis=-1, keepdims=True) for item in (a, b))
    scores = a @ b.T * 10
    return jax.nn.logsumexp(scores, axis=0) + jax.nn.logsumexp(scores, axis=1) - 2 * jnp.diagonal(scores)


def _focal(weights: Any, x: Any, labels: Any) -> Any:
    chance = jax.nn.sigmoid(x @ weights)
    chance = jnp.where(labels > 0, chance, 1 - chance)
    return (1 - chance) ** 2 * jnp.log(chance + 1e-6)


def _diffusion(parameters: Any, x: Any, times: Any) -> Any:
    noise = jax.random.normal(jax.random.key(1), x.shape)
    share = jnp.cos(times)[:, None]
    noisy = share * x + jnp.sqrt(1 - share**2) * noise
    return _mlp(parameters, jnp.concatenate([noisy, jnp.sin(times[:, None] * jnp.arange(64))], -1)) - noise


def _decode(parameters: Any, cache: Any, token: Any, place: Any) -> Any:
    """One token of a decoder with a cache of keys and values."""
    query, keys, values = parameters
    k_cache, v_cache = cache
    k_cache = lax.dynamic_update_slice_in_dim(k_cache, jnp.einsum("bd,dhk->bhk", token, keys)[:, None], place, 1)
    v_cache = lax.dynamic_update_slice_in_dim(v_cache, jnp.einsum("bd,dhk->bhk", token, values)[:, None], place, 1)
    scores = jnp.einsum("dhk,bd,bshk->bhs", query, token, k_cache)
    scores = jnp.where(jnp.arange(scores.shape[-1]) <= place, scores, -1e9)
    return jnp.einsum("bhs,bshk->bhk", jax.nn.softmax(scores), v_cache), (k_cache, v_cache)


_HEADS = tuple(_weights(32, 4, 8, seed=seed) for seed in range(3))
_EXPERTS = _weights(64, 4), _weights(4, 64, 32), _weights(4, 32, 64)
_GATES = _weights(32, 64), _weights(32, 64, seed=1), _weights(32, 32), _weights(32, 32, seed=1)

CASES: tuple[tuple[Any, ...], ...] = (
    ("mlp", _step(_mlp), (_weights(64, 128), _weights(128, 128), _weights(128, 16)), _X),
    ("gated_mlp", _step(_gated), (_weights(64, 128), _weights(64, 128, seed=1), _weights(128, 64)), _X),
    ("layer_norm", _step(lambda scale, x: _norm(x, scale)), normal(64), _X),
    ("rms_norm", _step(lambda weight, x: _rms_norm(x) @ weight), _weights(64, 32), _X),
    ("self_attention", _step(_attend), (_HEADS, _weights(4, 8, 32)), _SEQUENCES),
    ("cross_heads", _step(lambda p, x: _attend(p, x, is_causal=False)), (_HEADS, _weights(4, 8, 32)), _SEQUENCES),
    (
        "grouped_attention",
        _step(_grouped_attention),
        (_weights(32, 4, 16), _weights(32, 2, 16), _weights(32, 2, 16, seed=1)),
        _SEQUENCES,
    ),
    ("block", _step(_block), jax.tree.map(lambda array: array[0], _layers(1)), _SEQUENCES),
    ("remat_layers", _step(_remat_model), _layers(3), _SEQUENCES),
    ("language_model", jax.value_and_grad(_language_model), language_model_parameters(), _TOKENS),
    ("lstm", _step(_lstm), (_weights(32, 128), _weights(32, 128, seed=1)), _SEQUENCES),
    ("gru", _step(_gru), _GATES, _SEQUENCES),
    (
        "residual_net",
        _step(_residual_net),
        (normal(3, 3, 4, 8), normal(3, 3, 8, 8), normal(3, 3, 8, 16), _weights(16, 8)),
        _IMAGES,
    ),
    ("batch_norm_net", _step(_batch_norm_net), (normal(3, 3, 4, 8), normal(8), _weights(8, 8)), _IMAGES),
    ("group_norm_net", _step(_group_norm_net), (normal(3, 3, 4, 16), _weights(16, 8)), _IMAGES),
    ("separable_net", _step(_separable_net), (normal(3, 3, 1, 8), normal(1, 1, 8, 16), _weights(16, 8)), _IMAGES),
    ("encoder_decoder", _step(_encoder_decoder), (normal(3, 3, 4, 8), normal(3, 3, 12, 4)), _IMAGES),
    ("embedding", _step(lambda table, tokens: table[tokens]), normal(64, 32), _TOKENS),
    ("experts", _step(_experts), _EXPERTS, _X),
    ("routed_experts", _step(_routed_experts), _EXPERTS, _X),
    (
        "graph_net",
        _step(_graph_net),
        (_weights(64, 32), _weights(32, 32)),
        normal(32, 32),
        integers(32, 128),
        integers(32, 128, seed=1),
    ),
    (
        "recommender",
        _step(_recommender),
        ((normal(64, 16), normal(128, 16)), _weights(8, 16), _weights(9, 1)),
        normal(32, 8),
        integers(64, 32, 2),
    ),
    ("autoencoder", _step(_autoencoder), (_weights(64, 16), _weights(8, 64)), _X),
    ("flow", _step(_flow), tuple((_weights(32, 32, seed=i), _weights(32, 64, seed=i)) for i in range(4)), _X),
    (
        "contrastive",
        _step(_contrastive),
        (_weights(64, 16), _weights(64, 16, seed=1)),
        _X,
        normal(32, 64, seed=1),
    ),
    ("focal", _step(_focal), _weights(64, 8), _X, integers(2, 32, 8)),
    ("diffusion", _step(_diffusion), (_weights(128, 128), _weights(128, 64)), _X, normal(32)),
    ("decode", _decode, _HEADS, (normal(8, 16, 4, 8), normal(8, 16, 4, 8, seed=1)), normal(8, 32), np.int32(5)),
)

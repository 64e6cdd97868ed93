"""A decoder with a cache that searches with beams, as JAX lowers it.

One loop runs over positions; each step looks up the cache, sorts candidates, keeps the best of them, gathers what
belongs to these, and takes one of several temperatures by a case. Sentences are split over the mesh axis ``data``,
heads and hidden units over ``model``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from benchmarks.programs.lowering import MESH, lower_text, transformer_layer

BATCH, BEAMS, LENGTH = 8, 4, 64
LAYERS, WIDTH, HEADS, HIDDEN, VOCABULARY = 4, 128, 8, 512, 1024
HEAD = WIDTH // HEADS
CACHE = (BATCH, BEAMS, LENGTH, HEADS, HEAD)

LAYER = transformer_layer(WIDTH, HEADS, HIDDEN)
PARAMETERS = {"embedding": ((VOCABULARY, WIDTH), P("model")), "layers": [LAYER] * LAYERS}


def beam_search() -> str:
    """Return the module of a whole search."""
    arguments = (PARAMETERS, ((BATCH,), P("data")), ((), P()))
    return lower_text(_search, arguments, integers=(1, 2), mesh=MESH)


def _search(parameters: Any, first: Any, mode: Any) -> Any:
    tokens = jnp.zeros((BATCH, BEAMS, LENGTH), jnp.int32).at[:, :, 0].set(first[:, None])
    scores = jnp.where(jnp.arange(BEAMS) == 0, 0.0, -1e9) * jnp.ones((BATCH, 1))
    caches = [{"key": jnp.zeros(CACHE), "value": jnp.zeros(CACHE)} for _ in range(LAYERS)]
    state = (jnp.int32(0), tokens, scores, jnp.zeros((BATCH, BEAMS), bool), caches)

    def goes_on(state: Any) -> Any:
        return (state[0] < LENGTH - 1) & ~jnp.all(state[3])

    state = jax.lax.while_loop(goes_on, lambda state: _advance(parameters, mode, state), state)
    order = jnp.argsort(-state[2], axis=-1)
    return jnp.take_along_axis(state[1], order[..., None], axis=1), jnp.take_along_axis(state[2], order, axis=1)


def _advance(parameters: Any, mode: Any, state: Any) -> Any:
    position, tokens, scores, done, caches = state
    current = jax.lax.dynamic_index_in_dim(tokens, position, axis=2, keepdims=False)
    logits, caches = _decode(parameters, current, position, caches)
    branches = (lambda x: x, lambda x: x / 0.7, lambda x: x - jnp.max(x, axis=-1, keepdims=True))
    logits = jax.lax.switch(jnp.clip(mode, 0, 2), branches, logits)
    candidates = scores[..., None] + jnp.where(done[..., None], 0.0, jax.nn.log_softmax(logits))
    scores, flat = jax.lax.top_k(candidates.reshape(BATCH, BEAMS * VOCABULARY), BEAMS)
    beam, token = flat // VOCABULARY, flat % VOCABULARY

    def select(x: Any) -> Any:
        return jnp.take_along_axis(x, beam.reshape(BATCH, BEAMS, *(1,) * (x.ndim - 2)), axis=1)

    tokens = jax.lax.dynamic_update_index_in_dim(select(tokens), token, position + 1, axis=2)
    return position + 1, tokens, scores, select(done) | (token == 1), jax.tree.map(select, caches)


def _decode(parameters: Any, tokens: Any, position: Any, caches: Any) -> Any:
    x, kept = parameters["embedding"][tokens], []
    for layer, cache in zip(parameters["layers"], caches, strict=True):
        attended, cache = _attend(layer, cache, _normalize(x, layer["norm1"]), position)
        x = x + attended
        x = x + jax.nn.gelu(_normalize(x, layer["norm2"]) @ layer["up"]) @ layer["down"]
        kept.append(cache)
    return x @ parameters["embedding"].T, kept


def _attend(layer: Any, cache: Any, x: Any, position: Any) -> Any:
    query, key, value = (jnp.einsum("bnd,dhk->bnhk", x, layer[name]) for name in ("query", "key", "value"))
    cache = {
        name: jax.lax.dynamic_update_index_in_dim(cache[name], new, position, axis=2)
        for name, new in (("key", key), ("value", value))
    }
    scores = jnp.einsum("bnhk,bnthk->bnht", query, cache["key"]) / HEAD**0.5
    scores = jnp.where(jnp.arange(LENGTH) <= position, scores, -1e9)
    mixed = jnp.einsum("bnht,bnthk->bnhk", jax.nn.softmax(scores), cache["value"])
    return jnp.einsum("bnhk,hkd->bnd", mixed, layer["out"]), cache


def _normalize(x: Any, scale: Any) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale

"""A training step of a residual convolutional network with momentum, as JAX lowers it.

Images are split over the mesh axis ``data``, output channels of every second kernel over ``model``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from benchmarks.programs.lowering import MESH, Shape, lower_text

BATCH, SIZE, COLOURS, CLASSES = 64, 64, 4, 128
CHANNELS = (32, 64, 128, 256)
BLOCKS = 3
"""Residual blocks per resolution."""


def convolution_step() -> str:
    """Return the module of one training step."""
    parameters = _parameters()
    images = ((BATCH, SIZE, SIZE, COLOURS), P("data"))
    arguments = (parameters, parameters, images, ((BATCH,), P("data")))
    return lower_text(_step, arguments, integers=(3,), mesh=MESH)


def _parameters() -> dict[str, Any]:
    stages, before = [], CHANNELS[0]
    for channels in CHANNELS:
        stages.append([_block(before if number == 0 else channels, channels) for number in range(BLOCKS)])
        before = channels
    return {
        "stem": _kernel(COLOURS, CHANNELS[0], P()),
        "stages": stages,
        "head": ((CHANNELS[-1], CLASSES), P(None, "model")),
    }


def _block(before: int, channels: int) -> dict[str, tuple[Shape, P]]:
    block = {
        "first": _kernel(before, channels, P(None, None, None, "model")),
        "first_scale": ((channels,), P("model")),
        "second": _kernel(channels, channels, P(None, None, "model")),
        "second_scale": ((channels,), P()),
    }
    return block if before == channels else block | {"skip": ((1, 1, before, channels), P())}


def _kernel(before: int, channels: int, spec: P) -> tuple[Shape, P]:
    return (3, 3, before, channels), spec


def _step(parameters: Any, momentum: Any, images: Any, labels: Any) -> Any:
    value, gradients = jax.value_and_grad(_loss)(parameters, images, labels)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
    return jax.tree.map(lambda p, m: p - 0.1 * m, parameters, momentum), momentum, value


def _loss(parameters: Any, images: Any, labels: Any) -> Any:
    x = _pool(jax.nn.relu(_convolve(images, parameters["stem"])))
    for number, stage in enumerate(parameters["stages"]):
        for index, block in enumerate(stage):
            x = _residual(x, block, 2 if number and index == 0 else 1)
    logits = jnp.mean(x, axis=(1, 2)) @ parameters["head"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1))


def _residual(x: Any, block: Any, stride: int) -> Any:
    y = jax.nn.relu(_normalize(_convolve(x, block["first"], stride), block["first_scale"]))
    y = _normalize(_convolve(y, block["second"]), block["second_scale"])
    return jax.nn.relu(y + (_convolve(x, block["skip"], stride) if "skip" in block else x))


def _convolve(x: Any, kernel: Any, stride: int = 1) -> Any:
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _normalize(x: Any, scale: Any) -> Any:
    mean = jnp.mean(x, axis=(0, 1, 2), keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=(0, 1, 2), keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale


def _pool(x: Any) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")

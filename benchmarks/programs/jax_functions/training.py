"""Training steps with the updates of common optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.programs.jax_functions.case import integers, normal
from benchmarks.programs.jax_functions.models import language_model_loss, language_model_parameters

Update = Callable[[Any, Any, Any], tuple[Any, Any]]
"""Returns the new parameter and the new state from a parameter, its gradient, and its state."""

_X = normal(32, 64)
_LABELS = integers(16, 32)
_PARAMETERS = {"first": normal(64, 128, scale=0.1), "second": normal(128, 16, scale=0.1), "bias": normal(16)}


def _loss(parameters: Any, x: Any, labels: Any) -> Any:
    logits = jnp.tanh(x @ parameters["first"]) @ parameters["second"] + parameters["bias"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()


def _train(update: Update, loss: Callable[..., Any] = _loss) -> Callable[..., Any]:
    def step(parameters: Any, states: Any, *batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, *batch)
        leaves, tree = jax.tree.flatten(parameters)
        updated = [
            update(*item) for item in zip(leaves, jax.tree.leaves(gradients), tree.flatten_up_to(states), strict=True)
        ]
        return value, tree.unflatten([item[0] for item in updated]), tree.unflatten([item[1] for item in updated])

    return step


def _states(count: int, parameters: Any = _PARAMETERS) -> Any:
    """Return the states of an optimizer: arrays like each parameter."""
    return jax.tree.map(lambda array: (np.full_like(array, 0.01),) * count, parameters)


def _momentum(parameter: Any, gradient: Any, state: Any) -> Any:
    velocity = 0.9 * state[0] + gradient
    return parameter - 0.1 * (gradient + 0.9 * velocity), (velocity,)


def _adam(parameter: Any, gradient: Any, state: Any) -> Any:
    mean, square = 0.9 * state[0] + 0.1 * gradient, 0.999 * state[1] + 0.001 * gradient**2
    return parameter - 1e-3 * (mean / (jnp.sqrt(square) + 1e-3) + 0.01 * parameter), (mean, square)


def _rms(parameter: Any, gradient: Any, state: Any) -> Any:
    square = 0.9 * state[0] + 0.1 * gradient**2
    return parameter - 1e-3 * gradient * lax.rsqrt(square + 1e-3), (square,)


def _layerwise(parameter: Any, gradient: Any, state: Any) -> Any:
    """The step of each parameter has a size in proportion to it."""
    (parameter_, (mean, square)) = _adam(parameter, gradient, state)
    step = parameter_ - parameter
    return parameter + step * jnp.linalg.norm(parameter) / (jnp.linalg.norm(step) + 1e-3) * 0.01, (mean, square)


def _factored(parameter: Any, gradient: Any, state: Any) -> Any:
    """Second moments by rows and columns."""
    if parameter.ndim < 2:
        return parameter - 0.1 * gradient, state
    rows, columns = (gradient**2 + 1e-3).mean(1), (gradient**2 + 1e-3).mean(0)
    scale = lax.rsqrt(rows[:, None] * columns[None] / rows.mean())
    step = gradient * scale
    return parameter - 1e-2 * step / jnp.maximum(1, jnp.sqrt((step**2).mean())), state


def _orthogonal(parameter: Any, gradient: Any, state: Any) -> Any:
    """Momentum made nearly orthogonal by products."""
    if parameter.ndim < 2:
        return parameter - 0.1 * gradient, state
    momentum = 0.9 * state[0] + gradient
    x = momentum / (jnp.linalg.norm(momentum) + 1e-3)
    for _ in range(3):
        product = x.T @ x
        x = 1.5 * x - 0.5 * x @ product
    return parameter - 0.01 * x, (momentum,)


def _clipped(parameters: Any, x: Any, labels: Any) -> Any:
    """Gradients are scaled by their norm over all parameters."""
    value, gradients = jax.value_and_grad(_loss)(parameters, x, labels)
    norm = jnp.sqrt(sum((gradient**2).sum() for gradient in jax.tree.leaves(gradients)))
    scale = jnp.minimum(1.0, 1.0 / (norm + 1e-6))
    return value, jax.tree.map(lambda p, g: p - 0.1 * scale * g, parameters, gradients)


def _accumulated(parameters: Any, x: Any, labels: Any) -> Any:
    """Gradients of four small batches, added."""
    batches = x.reshape(4, 8, -1), labels.reshape(4, 8)

    def add(total: Any, batch: Any) -> Any:
        value, gradients = jax.value_and_grad(_loss)(parameters, *batch)
        return jax.tree.map(jnp.add, total, gradients), value

    total, values = lax.scan(add, jax.tree.map(jnp.zeros_like, parameters), batches)
    return values.mean(), jax.tree.map(lambda p, g: p - 0.025 * g, parameters, total)


def _averaged(parameters: Any, averages: Any, x: Any, labels: Any) -> Any:
    """A teacher is the running average of the parameters."""
    value, gradients = jax.value_and_grad(_loss)(parameters, x, labels)
    parameters = jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)
    return value, parameters, jax.tree.map(lambda a, p: 0.99 * a + 0.01 * p, averages, parameters)


def _epoch(parameters: Any, x: Any, labels: Any) -> Any:
    """Steps in a loop."""

    def step(parameters: Any, batch: Any) -> Any:
        value, gradients = jax.value_and_grad(_loss)(parameters, *batch)
        return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients), value

    return lax.scan(step, parameters, (x.reshape(4, 8, -1), labels.reshape(4, 8)))


_LANGUAGE_MODEL = language_model_parameters()

CASES: tuple[tuple[Any, ...], ...] = (
    ("train_momentum", _train(_momentum), _PARAMETERS, _states(1), _X, _LABELS),
    ("train_adam", _train(_adam), _PARAMETERS, _states(2), _X, _LABELS),
    ("train_rms", _train(_rms), _PARAMETERS, _states(1), _X, _LABELS),
    ("train_layerwise", _train(_layerwise), _PARAMETERS, _states(2), _X, _LABELS),
    ("train_factored", _train(_factored), _PARAMETERS, _states(1), _X, _LABELS),
    ("train_orthogonal", _train(_orthogonal), _PARAMETERS, _states(1), _X, _LABELS),
    ("train_clipped", _clipped, _PARAMETERS, _X, _LABELS),
    ("train_accumulated", _accumulated, _PARAMETERS, _X, _LABELS),
    ("train_averaged", _averaged, _PARAMETERS, _PARAMETERS, _X, _LABELS),
    ("train_epoch", _epoch, _PARAMETERS, _X, _LABELS),
    (
        "train_language_model",
        _train(_momentum, language_model_loss),
        _LANGUAGE_MODEL,
        _states(1, _LANGUAGE_MODEL),
        integers(64, 8, 16),
    ),
)

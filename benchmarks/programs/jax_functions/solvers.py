"""Iterative solvers, filters, and samplers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.programs.jax_functions.case import normal

_X = normal(32, 64)
_V = normal(64)
_LABELS = normal(32)


def _loss(weights: Any, x: Any, y: Any) -> Any:
    return jnp.mean((x @ weights - y) ** 2)


def _conjugate_gradient(x: Any, b: Any) -> Any:
    return jax.scipy.sparse.linalg.cg(lambda a: x @ (x.T @ a) + 10 * a, b, maxiter=8)[0]


def _runge_kutta(y: Any, w: Any) -> Any:
    """Four stages per step, as solvers of differential equations take them."""

    def slope(y: Any) -> Any:
        return jnp.tanh(y @ w)

    def step(y: Any, _: Any) -> Any:
        first = slope(y)
        second = slope(y + 0.05 * first)
        third = slope(y + 0.05 * second)
        fourth = slope(y + 0.1 * third)
        return y + 0.1 / 6 * (first + 2 * second + 2 * third + fourth), y

    return lax.scan(step, y, None, length=10)


def _gradient_descent(x: Any, y: Any) -> Any:
    def step(state: Any, _: Any) -> Any:
        weights, momentum = state
        loss, gradient = jax.value_and_grad(_loss)(weights, x, y)
        momentum = 0.9 * momentum + gradient
        return (weights - 0.1 * momentum, momentum), loss

    return lax.scan(step, (jnp.zeros(x.shape[1]), jnp.zeros(x.shape[1])), None, length=10)


def _newton(y: Any, w: Any) -> Any:
    def residual(y: Any) -> Any:
        return jnp.tanh(w @ y) * 0.3 - y + 0.1

    def step(_: Any, y: Any) -> Any:
        return y - jnp.linalg.solve(jax.jacobian(residual)(y), residual(y))

    return lax.fori_loop(0, 4, step, y)


def _k_means(points: Any) -> Any:
    def step(centers: Any, _: Any) -> Any:
        distances = ((points[:, None] - centers[None]) ** 2).sum(-1)
        members = jax.nn.one_hot(distances.argmin(1), 8)
        return (members.T @ points) / (members.sum(0)[:, None] + 1e-6), distances.min(1).sum()

    return lax.scan(step, points[:8], None, length=5)


def _mixture(points: Any, means: Any) -> Any:
    """Steps of expectation and maximization of a mixture of normal distributions."""

    def step(means: Any, _: Any) -> Any:
        scores = -0.5 * ((points[:, None] - means[None]) ** 2).sum(-1)
        weights = jax.nn.softmax(scores, axis=1)
        return weights.T @ points / weights.sum(0)[:, None], jax.nn.logsumexp(scores, axis=1).mean()

    return lax.scan(step, means, None, length=5)


def _sinkhorn(costs: Any) -> Any:
    def step(potentials: Any, _: Any) -> Any:
        rows, columns = potentials
        rows = -jax.nn.logsumexp(columns[None] - costs, axis=1)
        return (rows, -jax.nn.logsumexp(rows[:, None] - costs, axis=0)), None

    rows, columns = lax.scan(step, (jnp.zeros(32), jnp.zeros(64)), None, length=10)[0]
    return jnp.exp(rows[:, None] + columns[None] - costs)


def _page_rank(links: Any) -> Any:
    shares = jnp.exp(links) / jnp.exp(links).sum(0)
    return lax.fori_loop(0, 10, lambda _, ranks: 0.15 / 64 + 0.85 * (shares @ ranks), jnp.ones(64) / 64)


def _kalman(observations: Any, transition: Any) -> Any:
    def step(state: Any, observation: Any) -> Any:
        mean, covariance = state
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + 0.1 * jnp.eye(8)
        gain = jnp.linalg.solve(covariance + jnp.eye(8), covariance).T
        mean = mean + gain @ (observation - mean)
        return (mean, covariance - gain @ covariance), mean

    return lax.scan(step, (jnp.zeros(8), jnp.eye(8)), observations)


def _hamiltonian(key: Any, w: Any, x: Any, y: Any) -> Any:
    """One step of a Hamiltonian sampler: leaps along the gradient, then accepted or not."""
    momentum_key, accept_key = jax.random.split(jax.random.wrap_key_data(key))
    momentum = jax.random.normal(momentum_key, w.shape)
    gradient = jax.grad(_loss)

    def leap(_: Any, state: Any) -> Any:
        w, momentum = state
        momentum = momentum - 0.005 * gradient(w, x, y)
        w = w + 0.01 * momentum
        return w, momentum - 0.005 * gradient(w, x, y)

    proposed, end = lax.fori_loop(0, 5, leap, (w, momentum))
    change = _loss(w, x, y) - _loss(proposed, x, y) + 0.5 * (momentum @ momentum - end @ end)
    return jnp.where(jnp.log(jax.random.uniform(accept_key)) < change, proposed, w)


def _gaussian_process(x: Any, y: Any) -> Any:
    distances = ((x[:, None] - x[None]) ** 2).sum(-1)
    factor = jnp.linalg.cholesky(jnp.exp(-distances / 64) + 0.1 * jnp.eye(32))
    weights = jax.scipy.linalg.cho_solve((factor, True), y)
    return weights, -0.5 * y @ weights - jnp.log(jnp.diag(factor)).sum()


def _power_iteration(x: Any) -> Any:
    def step(_: Any, v: Any) -> Any:
        image = x.T @ (x @ v)
        return image / jnp.linalg.norm(image)

    return lax.fori_loop(0, 10, step, jnp.ones(64))


def _viterbi(scores: Any, transitions: Any) -> Any:
    def step(best: Any, score: Any) -> Any:
        candidates = best[:, None] + transitions
        return candidates.max(0) + score, candidates.argmax(0)

    return lax.scan(step, scores[0], scores[1:])


CASES: tuple[tuple[Any, ...], ...] = (
    ("conjugate_gradient", _conjugate_gradient, _X, _LABELS),
    ("runge_kutta", _runge_kutta, _X, normal(64, 64, scale=0.1)),
    ("gradient_descent", _gradient_descent, _X, _LABELS),
    ("newton", _newton, normal(16), normal(16, 16, scale=0.2)),
    ("k_means", _k_means, normal(64, 16)),
    ("mixture", _mixture, normal(64, 16), normal(8, 16)),
    ("sinkhorn", _sinkhorn, _X),
    ("page_rank", _page_rank, normal(64, 64)),
    ("kalman", _kalman, normal(16, 8), normal(8, 8, scale=0.3)),
    ("hamiltonian", _hamiltonian, np.array([0, 3], np.uint32), _V, _X, _LABELS),
    ("gaussian_process", _gaussian_process, normal(32, 8), _LABELS),
    ("power_iteration", _power_iteration, _X),
    ("viterbi", _viterbi, normal(16, 32), normal(32, 32)),
)

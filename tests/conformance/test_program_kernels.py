"""The kernels of the pieces of whole programs, run on the host, compute what XLA:CPU computes of the pieces."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="programs are lowered by JAX")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import jax
import jax.numpy as jnp
import numpy as np

from shardy_py.kernels import emit, kernel_coverage
from shardy_py.kernels.fusion.fusion import Fusion, shape_of
from shardy_py.kernels.run.arrays import random_arrays
from tests.conformance.conformance_data import DATA
from tests.conformance.program_fusions import program_fusions
from tests.conformance.sample import sample
from tests.conformance.xla_cpu import relative, run_on_xla

pytestmark = pytest.mark.conformance

FILES = sorted((DATA / "programs").glob("*.mlir.gz"), key=lambda path: (path.stat().st_size, path.name))
MOST_ELEMENTS = 1 << 17
MOST_PIECES = 25
# The largest difference, in units of the precision of the largest element: sums are added in another order, and
# functions of XLA:CPU are approximations.
NEAR = 64.0
# Reasons for which an op is in no kernel that no kernel can change.
ELSEWHERE = frozenset(("contraction", "control-flow", "library", "unused", "no-elements", "no-results"))


def difference(fusion: Fusion, text: str, seed: int) -> str:
    """How the results of a piece differ, or nothing."""
    kernel = emit(fusion)
    arrays = random_arrays(kernel.fusion, seed)
    actual = kernel.run(*arrays, on="host")
    expected = run_on_xla(text, arrays[: len(fusion.parameters)])
    for number, (want, got) in enumerate(zip(expected, map(np.asarray, actual), strict=True)):
        if want.dtype.kind in "biu":
            count = int((want != got).sum())
            if count:
                return f"result {number}: {count} of {want.size} elements"
        elif (distance := relative(want, got)) > NEAR:
            return f"result {number}: {distance:.1f} units"
    return ""


def check(text: str) -> int:
    """Check the pieces of a program that are small enough; equal ones once. Return how many these are."""
    known: set[str] = set()
    wrong = {}
    for fusion, module in program_fusions(text):
        elements = sum(prod(shape_of(value)) for value in (*fusion.parameters, *fusion.roots))
        if module in known or elements > MOST_ELEMENTS or len(known) == MOST_PIECES:
            continue
        known.add(module)
        if actual := difference(fusion, module, len(known)):
            wrong[fusion.name] = f"{actual}\n{module}"
    assert not wrong, "\n".join(f"{name}: {item}" for name, item in wrong.items())
    return len(known)


def embedding(table: Any, tokens: Any, scale: Any) -> Any:
    """Rows of a table, normalized and scaled."""
    rows = table[tokens]
    return rows * jax.lax.rsqrt((rows**2).mean(-1, keepdims=True) + 1e-5) * scale


def pooled(images: Any) -> Any:
    """Maxima of windows."""
    return jax.lax.reduce_window(images, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()


def recurrent(state: Any, inputs: Any) -> Any:
    """A scan with gates."""

    def step(carried: Any, item: Any) -> Any:
        gate = jax.nn.sigmoid(item + carried)
        following = gate * carried + (1 - gate) * jnp.tanh(item)
        return following, following.sum()

    return jax.lax.scan(step, state, inputs)


def branches(x: Any, number: Any) -> Any:
    """A branch, and a loop that counts."""
    y = jax.lax.cond(number > 2, lambda item: jnp.sin(item) * 2, lambda item: item**2 - 1, x)
    return jax.lax.fori_loop(0, 3, lambda step, item: jnp.where(item > step, item * 0.5, item + 1), y)


def cache(keys: Any, new: Any, at: Any) -> Any:
    """An update of a cache at a position, read back along the rows of a batch."""
    updated = jax.lax.dynamic_update_slice(keys, new, (0, at, 0))
    return updated, jnp.take_along_axis(updated, jnp.argsort(updated[..., :1], axis=1), axis=1)


def noise(key: Any) -> Any:
    """Normal numbers."""
    return jax.random.normal(key, (8, 16)) * 0.02


X = np.linspace(-3, 3, 8 * 16, dtype=np.float32).reshape(8, 16)
MODELS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "embedding": (embedding, (X, np.arange(6, dtype=np.int32), X[0])),
    "embedding_gradient": (
        jax.grad(lambda *items: embedding(*items).sum(), argnums=(0, 2)),
        (X, np.arange(6, dtype=np.int32), X[0]),
    ),
    "exact_gelu": (lambda x: jax.nn.gelu(x, approximate=False), (X,)),
    "gelu_gradient": (jax.grad(lambda x: jax.nn.gelu(x, approximate=False).sum()), (X,)),
    "softmax": (lambda x: jax.nn.log_softmax(x, axis=-1), (X,)),
    "pooling_gradient": (jax.grad(pooled), (X.reshape(1, 8, 16, 1),)),
    "scan": (recurrent, (X[0], X)),
    "branches": (branches, (X, np.int32(3))),
    "cache": (cache, (X.reshape(2, 4, 16), X[:2].reshape(2, 1, 16), np.int32(2))),
    "normal_numbers": (noise, (np.zeros(2, np.uint32),)),
    "segments": (lambda x: jax.ops.segment_max(x, np.arange(8) // 3, num_segments=3), (X,)),
    "statistics": (lambda x: jnp.stack([x.var(0), jax.scipy.special.gammaln(jnp.abs(x[1]) + 1)]), (X,)),
}


@pytest.mark.parametrize("name", MODELS)
def test_pieces_of_models(name: str) -> None:
    """Every op of a model is in a kernel or named with its reason, and the kernels are right."""
    function, arguments = MODELS[name]
    text = jax.jit(function).lower(*arguments).as_text()
    coverage = kernel_coverage(text)
    assert {row.code for row in coverage.uncovered} <= ELSEWHERE
    assert check(text)


@pytest.mark.parametrize("file", sample(FILES, 6), ids=lambda path: path.name.partition(".")[0])
def test_pieces_of_shared_programs(file: Path) -> None:
    """No kernel of a piece is wrong, also in loops and branches."""
    data = file.read_bytes()
    check((gzip.decompress(data) if file.suffix == ".gz" else data).decode())


@pytest.mark.skipif(not FILES, reason="the shared programs are not beside the project")
def test_most_ops_of_shared_programs_are_in_kernels() -> None:
    """At least 95 in 100 of the ops that neither a library computes nor the host runs are in kernels."""
    covered = others = 0
    for file in sample(FILES, 6):
        data = file.read_bytes()
        coverage = kernel_coverage((gzip.decompress(data) if file.suffix == ".gz" else data).decode())
        covered += coverage.covered
        others += sum(row.count for row in coverage.uncovered if row.code not in ("contraction", "control-flow"))
    assert covered >= 0.95 * (covered + others)

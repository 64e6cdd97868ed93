"""Decompositions and transforms, random numbers, and custom calls."""

from __future__ import annotations

from math import erf
from typing import Any

import numpy as np

from tests.unit.dialects.stablehlo.numeric.case import Case, complexes

OWN_COLUMNS = "columns of the right side are independent of each other; the reference replicates them"
WHOLE_MATRIX = "the reference lets the dimensions of the matrices pass through; the call itself sees whole ones"
PARTIAL = (
    "the reference lets the reduced dimension pass through, as the call is approximate: more results are merged later"
)
RNG = np.random.default_rng(0)
FACTORS = RNG.uniform(-1, 1, (2, 4, 4))
POSITIVE = FACTORS @ FACTORS.swapaxes(1, 2) + 4 * np.eye(4)
LOWER = np.tril(FACTORS) + 4 * np.eye(4)
COLUMNS = np.broadcast_to(np.arange(8), (4, 8))


def top_k(x: Any) -> Any:
    """The two largest of each row and where they are."""
    where = np.argsort(-x, 1)[:, :2]
    return np.take_along_axis(x, where, 1), where


def top_k_of(x: Any, index: Any, *inits: Any) -> Any:
    """The same, with the places as an operand."""
    values, where = top_k(x)
    return values, np.take_along_axis(index, where, 1)


def lower_solve(a: Any, b: Any) -> Any:
    """Solve with a triangular matrix on the left."""
    return np.linalg.solve(np.tril(a), b)


def right_solve(a: Any, b: Any) -> Any:
    """Solve with a triangular matrix on the right."""
    return np.linalg.solve(np.tril(a).swapaxes(1, 2), b.swapaxes(1, 2)).swapaxes(1, 2)


def eigh(x: Any) -> Any:
    """Eigenvectors, each up to its sign, and eigenvalues."""
    values, vectors = np.linalg.eigh(x)
    return np.abs(vectors), values


def qr(x: Any) -> Any:
    """A matrix that holds the decomposition, and scalars of the reflections."""
    return np.stack([np.linalg.qr(item, "raw")[0].T for item in x]), np.stack(
        [np.linalg.qr(item, "raw")[1] for item in x]
    )


def reflections(x: Any, scalars: Any) -> Any:
    """The product of Householder reflections."""
    result = []
    for matrix, taus in zip(x, scalars, strict=True):
        product = np.eye(len(matrix))
        for column, tau in enumerate(taus):
            vector = np.concatenate([np.zeros(column), [1], matrix[column + 1 :, column]])
            product = product @ (np.eye(len(matrix)) - tau * np.outer(vector, vector))
        result.append(product[:, : matrix.shape[1]])
    return np.stack(result)


def random_bits(state: Any) -> Any:
    """The next state, and numbers that depend on all of the state."""
    seed = int(state.sum()) * 7 + len(state)
    return state + 3, np.random.default_rng(seed).integers(0, 99, (4, 6))


def uniform(low: Any, high: Any, shape: Any) -> Any:
    """Numbers between two bounds."""
    if len(shape) != 2:
        raise ValueError("the shape is needed whole")
    return np.random.default_rng(1).uniform(low, high, (4, 6))


def same(x: Any) -> Any:
    """What goes in."""
    return x


LEFT = {"left_side": True, "lower": True, "transpose_a": "#stablehlo<transpose NO_TRANSPOSE>"}
CASES = [
    Case("cholesky", [POSITIVE], np.linalg.cholesky),
    Case(
        "triangular_solve",
        [LOWER, (2, 4, 6)],
        lower_solve,
        attributes=LEFT,
        missing={"operand 1 dim 2, result 0 dim 2": OWN_COLUMNS},
    ),
    Case(
        "triangular_solve",
        [LOWER, (2, 6, 4)],
        right_solve,
        attributes={**LEFT, "left_side": False},
        missing={"operand 1 dim 1, result 0 dim 1": OWN_COLUMNS},
    ),
    Case("fft", [complexes(4, 8)], np.fft.fft, attributes={"fft_length": (8,)}),
    Case("fft", [(4, 8)], np.fft.rfft, attributes={"fft_length": (8,)}),
    Case("fft", [complexes(2, 4, 8)], np.fft.ifft2, attributes={"fft_length": (4, 8)}),
    Case("rng_bit_generator", [np.array([5, 7])], random_bits),
    Case("rng", [np.array(0.0), np.array(1.0), np.array([4, 6])], uniform),
    Case("chlo.top_k", [(4, 8)], top_k, attributes={"k": 2}),
    Case("mhlo.topk@", [(4, 8)], top_k),
    Case("mhlo.topk", [(4, 8)], top_k, attributes={"k": 2, "largest": True}),
    Case("ApproxTopK@", [(4, 8), COLUMNS, (), ()], top_k_of, wrong={"j": PARTIAL}),
    Case("PartialReduce@", [(4, 8), COLUMNS, (), ()], top_k_of, wrong={"j": PARTIAL}),
    Case("mhlo.erf@", [(4, 8)], np.vectorize(erf)),
    Case("MoveToHost@", [(4, 8)], same),
    Case("MoveToDevice@", [(4, 8)], same),
    Case("LayoutConstraint@", [(4, 8)], same),
    Case("X64SplitLow@", [np.arange(24).reshape(4, 6) << 30], lambda x: (x & 0xFFFFFFFF).astype(np.uint32)),
    Case("X64SplitHigh@", [np.arange(24).reshape(4, 6) << 30], lambda x: (x >> 32).astype(np.uint32)),
    Case("X64Combine@", [np.arange(6), np.arange(6)[::-1]], lambda low, high: low + (high << 32)),
    Case("Cholesky@", [POSITIVE], np.linalg.cholesky, wrong=dict.fromkeys("jk", WHOLE_MATRIX)),
    Case("Eigh@", [POSITIVE], eigh, wrong=dict.fromkeys("jk", WHOLE_MATRIX)),
    Case("Qr@", [(2, 6, 4)], qr),
    Case("ProductOfElementaryHouseholderReflectors@", [(2, 6, 4), (2, 4)], reflections),
    Case("InvertDiagBlocksLowerTriangular@", [LOWER], np.linalg.inv, wrong=dict.fromkeys("jk", WHOLE_MATRIX)),
]

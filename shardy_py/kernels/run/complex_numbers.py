"""Complex numbers: sums and products by their parts, functions in double precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.ir import Operation

from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.memory import Value
from shardy_py.kernels.run.values import Array, array_dtype


def joined(real: Array, imaginary: Array) -> Array:
    """Return complex numbers of their parts."""
    real, imaginary = np.broadcast_arrays(real, imaginary)
    both = np.stack([real, imaginary], axis=-1)
    return both.view(np.result_type(both.dtype, np.complex64))[..., 0]


def wide(compute: Callable[..., Any]) -> Handler:
    """Return what runs a function of complex numbers in double precision."""

    def run(frame: Frame, op: Operation) -> list[Value]:
        values = [x.astype(np.complex128) for x in frame.gets(op.operands)]
        return [np.asarray(compute(*values)).astype(array_dtype(op.results[0].type))[()]]

    return run


def direct(compute: Callable[..., Any]) -> Handler:
    """Return what runs an op on complex numbers, or their parts, as they are."""

    def run(frame: Frame, op: Operation) -> list[Value]:
        return [compute(*frame.gets(op.operands))]

    return run


def multiply(left: Array, right: Array) -> Array:
    """Return products; each part is rounded as its type is, which numpy leaves to the processor."""
    real = left.real * right.real - left.imag * right.imag
    return joined(real, left.real * right.imag + left.imag * right.real)


def sign(x: Array) -> Array:
    """Return the number of amount 1 in the same direction; 0 for 0."""
    amount = np.abs(x)
    return np.where(amount == 0, x, x / np.where(amount == 0, 1, amount))


def log1p(x: Array) -> Array:
    """Return the logarithm of 1 + x; the amount of small numbers is kept."""
    real = 0.5 * np.log1p(x.real * (2 + x.real) + x.imag * x.imag)
    return joined(real, np.arctan2(x.imag, 1 + x.real))


def atan2(y: Array, x: Array) -> Array:
    """Return the angle of complex numbers: ``-i log((x + i y) / sqrt(x^2 + y^2))``."""
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "complex.abs": wide(np.abs),
        "complex.add": direct(np.add),
        "complex.angle": wide(np.angle),
        "complex.atan2": wide(atan2),
        "complex.conj": direct(np.conj),
        "complex.cos": wide(np.cos),
        "complex.create": direct(joined),
        "complex.div": wide(np.divide),
        "complex.eq": direct(np.equal),
        "complex.exp": wide(np.exp),
        "complex.expm1": wide(np.expm1),
        "complex.im": direct(lambda x: x.imag),
        "complex.log": wide(np.log),
        "complex.log1p": wide(log1p),
        "complex.mul": direct(multiply),
        "complex.neg": direct(np.negative),
        "complex.neq": direct(np.not_equal),
        "complex.pow": wide(np.power),
        "complex.re": direct(lambda x: x.real),
        "complex.rsqrt": wide(lambda x: 1 / np.sqrt(x)),
        "complex.sign": wide(sign),
        "complex.sin": wide(np.sin),
        "complex.sqrt": wide(np.sqrt),
        "complex.sub": direct(np.subtract),
        "complex.tan": wide(np.tan),
        "complex.tanh": wide(np.tanh),
    }
)

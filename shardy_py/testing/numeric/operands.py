"""Operands to try a function on, distinct random numbers of both signs, and combiners on arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.combiner import Combiner
from shardy_py.testing.numeric.pieces import Array
from shardy_py.testing.ops import to_type

_INTEGER = re.compile(r"(u?)i(\d+)")
_FLOAT = ("f16", "bf16", "f32", "f64")


def make_generator(seed: int) -> np.random.Generator:
    """Return the source of random numbers that starts at a seed.

    Raises:
        OptionError: the seed is negative.
    """
    if seed < 0:
        raise OptionError(Diagnostic("invalid-seed", f"the seed is {seed}", hint="give a number from 0 on"))
    return np.random.default_rng(seed)


def make_operand(spec: Any, generator: np.random.Generator) -> Array:
    """Return an operand: an array as it is; for a shape or a type random numbers, all different where that is possible.

    Floating-point numbers are doubles whatever the type, so that rounding is small where sums cancel out.

    Raises:
        OptionError: there are no numbers of that type; give an array instead.
    """
    if isinstance(spec, np.ndarray) or (hasattr(spec, "dtype") and hasattr(spec, "__array__")):
        return np.asarray(spec)
    type_ = to_type(spec)
    if not isinstance(type_, TensorType) or not type_.is_static:
        raise OptionError(_unfit(str(type_)))
    return _numbers(type_.shape, type_.element_type, generator)


def _numbers(shape: Any, element_type: str, generator: np.random.Generator) -> Array:
    if element_type.startswith("complex<"):
        parts = [_numbers(shape, element_type[8:-1], generator) for _ in range(2)]
        return parts[0] + 1j * parts[1]
    if element_type == "i1":
        return generator.integers(0, 2, shape).astype(bool)
    count = int(np.prod(shape))
    if element_type in _FLOAT:
        # Neither evenly spaced nor centred, so that no sums agree by chance.
        values = np.linspace(-1.9, 2.3, count) + generator.uniform(-0.4, 0.4, count) / max(count, 1)
        return generator.permutation(values).reshape(shape)
    match = _INTEGER.fullmatch("i64" if element_type == "index" else element_type)
    if match is None or int(match[2]) not in (8, 16, 32, 64):
        raise OptionError(_unfit(element_type))
    lowest = 0 if match[1] else -(count // 3) - 1
    return generator.permutation(np.arange(lowest, lowest + count)).reshape(shape).astype(f"{match[1]}int{match[2]}")


def _unfit(text: str) -> Diagnostic:
    return Diagnostic("unknown-type", f"there are no random numbers of type {text}", hint="give an array instead")


_FUNCTIONS: dict[Combiner, Callable[[Array, Array], Array]] = {
    Combiner.ADD: np.add,
    Combiner.MUL: np.multiply,
    Combiner.MIN: np.minimum,
    Combiner.MAX: np.maximum,
    Combiner.AND: np.bitwise_and,
    Combiner.OR: np.bitwise_or,
}


def combine_arrays(combiner: Combiner, left: Any, right: Any) -> Array:
    """Return what the partial results of two devices combine to.

    Raises:
        TypeError: the element type has no such function, as that of floating-point numbers has no bitwise one.
    """
    return _FUNCTIONS[combiner](left, right)


def identity_like(array: Array, combiner: Combiner) -> Array:
    """Return an array of the same shape and type that changes nothing it is combined with.

    Where the combiner gives the same however often a value counts, that is the array itself.
    """
    if combiner.is_idempotent:
        return array
    return np.zeros_like(array) if combiner is Combiner.ADD else np.ones_like(array)

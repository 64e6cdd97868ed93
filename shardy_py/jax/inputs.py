"""Inputs for a program: random arrays that keep its results finite and its indices in range.

Floats are normal numbers whose size depends on how many of them a matrix multiplication adds up; integers are small and
not negative; unsigned integers of 32 bits and more are random bits, as keys of random numbers are. What the ops of the
program need says `shardy_py.jax.input_demands`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.jax.demands import Demand
from shardy_py.jax.input_demands import find_input_demands
from shardy_py.layout.numpy_arrays import numpy_dtype

if TYPE_CHECKING:
    import numpy as np

SMALL_INTEGER = 3
"""The largest integer where nothing is known of what it is for."""


def random_inputs(program: Program, main: Op, *, seed: int = 0) -> list[Any]:
    """Return one random array per argument of the main function.

    The same program and seed give the same arrays. An argument's numbers do not depend on the arguments before it.

    Args:
        program: The program, as it was given or propagated.
        main: Its main function.
        seed: The seed, not negative.

    Raises:
        UnsupportedError: an argument is not a tensor of a static shape, or numpy has no dtype for its elements.
    """
    import numpy

    arguments = main.regions[0].blocks[0].arguments
    demands = find_input_demands(program, main)
    return [
        _array(_tensor_type(value), demand, numpy.random.default_rng((seed, value.index)))
        for value, demand in zip(arguments, demands, strict=True)
    ]


def _tensor_type(value: Value) -> TensorType:
    if isinstance(value.type, TensorType) and value.type.is_static:
        return value.type
    message = f"the argument {value.index} of the main function has the type {value.type}, which no array has"
    hint = "only tensors of static shapes can be made up; give a dynamic size, as by --size arg0.0=64, or the arrays"
    raise UnsupportedError(Diagnostic("no-input", message, value.owning_op.location, hint=hint))


def _array(type_: TensorType, demand: Demand, random: np.random.Generator) -> Any:
    dtype = numpy_dtype(type_.element_type)
    shape: tuple[int, ...] = type_.shape  # type: ignore[assignment]
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if "int" in dtype.name:
        return _integers(shape, dtype, demand, random)
    if dtype.name == "float8_e8m0fnu":
        # It has neither a sign nor a zero.
        return (2.0 ** random.integers(-2, 2, shape)).astype(dtype)
    if dtype.kind == "c":
        return (_floats(shape, demand, random) + 1j * _floats(shape, evolve(demand, definite=False), random)).astype(
            dtype
        )
    return _floats(shape, demand, random).astype(dtype)


def _integers(shape: tuple[int, ...], dtype: Any, demand: Demand, random: np.random.Generator) -> Any:
    import ml_dtypes
    import numpy

    bounds = ml_dtypes.iinfo(dtype)
    if demand.total is not None:
        parts = shape[-1] if shape else 1
        return random.multinomial(demand.total, [1 / max(parts, 1)] * parts, shape[:-1]).astype(dtype)
    if demand.high is None and dtype.name in ("uint32", "uint64"):
        return random.integers(0, int(bounds.max), shape, dtype, endpoint=True)
    low = int(numpy.ceil(demand.low or 0))
    high = max(low + SMALL_INTEGER if demand.high is None else int(demand.high), low)
    low, high = min(low, int(bounds.max)), min(high, int(bounds.max))
    count = int(numpy.prod(shape))
    if demand.distinct and count <= high - low + 1:
        values = random.permutation(high - low + 1)[:count].reshape(shape) + low
    else:
        values = random.integers(low, high, shape, endpoint=True)
    if demand.ordered:
        values = numpy.sort(values, axis=None).reshape(shape)
    return numpy.asarray(values).astype(dtype)


def _floats(shape: tuple[int, ...], demand: Demand, random: np.random.Generator) -> Any:
    import numpy

    if demand.definite:
        return _definite(shape, random)
    if demand.low is not None and demand.high is not None:
        values = random.uniform(demand.low, max(demand.low, demand.high), shape)
    else:
        values = random.standard_normal(shape) * _scale(shape)
        if demand.low is not None:
            values = demand.low + numpy.abs(values)
        elif demand.high is not None:
            values = demand.high - numpy.abs(values)
    return numpy.ceil(values) if demand.whole else values


def _scale(shape: tuple[int, ...]) -> float:
    """Return a standard deviation with which products of matrices stay of the size of their factors."""
    return 0.5 if len(shape) < 2 else max(shape[-2], 4) ** -0.5


def _definite(shape: tuple[int, ...], random: np.random.Generator) -> Any:
    """Return symmetric matrices whose eigenvalues are positive and well apart."""
    import numpy

    size = shape[-1]
    noise = random.standard_normal(shape) * (0.1 / max(size, 1))
    return numpy.diag(1.0 + numpy.arange(size) / max(size, 1)) + noise + numpy.swapaxes(noise, -1, -2)

"""Running the kernel of a fusion on arrays: their elements in the order in which memory holds them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.program import Value
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.kernels.run.kernel import Output
from shardy_py.layout.numpy_arrays import numpy_dtype
from shardy_py.support.memory import machine_bytes


def run_fusion(
    fusion: Fusion,
    arrays: Sequence[Any],
    run: Callable[[Sequence[Any], Sequence[Output]], list[Any]],
    *,
    stage: str = "",
) -> list[Any]:
    """Return the results of a fusion as arrays.

    Args:
        fusion: The fusion.
        arrays: An array of numpy for every parameter; those of copies may be left out.
        run: What runs its kernel: arrays in the order of memory, shape and dtype of every result.
        stage: The name of the stage, for errors.

    Raises:
        VerificationError: arrays that do not fit, or what `run` refuses.
    """
    checked = checked_arrays(fusion, with_copies(fusion, arrays), stage)
    with memory_guard(fusion, stage):
        results = run(memory_inputs(fusion, checked), memory_outputs(fusion))
    return [array.transpose(_inverse(_order(fusion, root))) for root, array in zip(fusion.roots, results, strict=True)]


def with_copies(fusion: Fusion, arrays: Sequence[Any]) -> Sequence[Any]:
    """Return arrays for all parameters of a fusion from those for all but the copies of others."""
    if len(arrays) != len(fusion.argument_parameters):
        return arrays
    return [*arrays, *(arrays[number] for number in fusion.copied)]


def checked_arrays(fusion: Fusion, arrays: Sequence[Any], stage: str = "") -> list[Any]:
    """Return arrays for the parameters of a fusion in this machine's order of bytes.

    Args:
        fusion: The fusion.
        arrays: An array of numpy for every parameter.
        stage: The name of the stage, for errors.

    Raises:
        VerificationError: there are too few or too many, the shape or the dtype of one is not that of its parameter, or
            elements of one are masked.
    """
    shapes = [getattr(array, "shape", None) for array in arrays]
    if shapes != [shape_of(value) for value in fusion.parameters]:
        expected = ", ".join(str(value.type) for value in fusion.parameters) or "nothing"
        message = f"the kernel takes {expected}, not arrays of the shapes {shapes}"
        raise VerificationError(Diagnostic("run-arguments", message, stage, fusion.name))
    problems, converted = (
        [_masked(number, fusion, stage) for number, array in enumerate(arrays) if np.ma.is_masked(array)],
        [],
    )
    for number, (array, value) in enumerate(zip(map(np.asarray, arrays), fusion.parameters, strict=True)):
        dtype = numpy_dtype(element_type_of(value))
        if array.dtype.newbyteorder("=") == dtype:
            converted.append(array.astype(dtype, copy=False))
            continue
        message = f"argument {number} is {value.type}: expected an array of {dtype}, got {array.dtype}"
        hint = "the bits of one would be read as the other; convert the array by its method astype"
        problems.append(Diagnostic("run-arguments", message, stage, fusion.name, hint))
    if problems:
        raise VerificationError(*problems)
    return converted


def _masked(number: int, fusion: Fusion, stage: str) -> Diagnostic:
    message = f"argument {number} has masked elements, and a kernel reads all of an array"
    return Diagnostic(
        "run-arguments", message, stage, fusion.name, "give the masked elements values by its method filled"
    )


@contextmanager
def memory_guard(fusion: Fusion, stage: str = "") -> Iterator[None]:
    """Turn lack of memory for the arrays of a fusion into an error of this package.

    Args:
        fusion: The fusion.
        stage: The name of the stage, for errors.

    Raises:
        VerificationError: the arrays do not fit into the memory of this machine.
    """
    values = (*fusion.parameters, *fusion.roots)
    needed = sum(prod(shape_of(value)) * numpy_dtype(element_type_of(value)).itemsize for value in values)
    message = f"the arrays of the kernel need {needed} bytes, more than this machine has"
    hint = "run the kernel for smaller shapes"
    refusal = VerificationError(Diagnostic("run-memory", message, stage, fusion.name, hint))
    # A machine that does not say has at most what an address can reach.
    if needed > (machine_bytes() or sys.maxsize):
        raise refusal
    try:
        yield
    except MemoryError:
        raise refusal from None


def memory_inputs(fusion: Fusion, arrays: Sequence[Any]) -> list[Any]:
    """Return arrays with their dimensions in the order of memory."""
    return [array.transpose(_order(fusion, value)) for value, array in zip(fusion.parameters, arrays, strict=True)]


def memory_outputs(fusion: Fusion) -> list[Output]:
    """Return shape, in the order of memory, and dtype of every result."""
    return [
        ([shape_of(root)[number] for number in _order(fusion, root)], numpy_dtype(element_type_of(root)))
        for root in fusion.roots
    ]


def _order(fusion: Fusion, value: Value) -> tuple[int, ...]:
    """Return the dimensions of a value, the one that varies slowest in memory first."""
    return fusion.layout_of(value)[::-1]


def _inverse(order: Sequence[int]) -> list[int]:
    return sorted(range(len(order)), key=order.__getitem__)


def random_arrays(fusion: Fusion, seed: int) -> list[Any]:
    """Return an array for every parameter of a fusion.

    Floats are of both signs and around 1, integers from 0 to 8, so that they may be indices.

    Args:
        fusion: The fusion.
        seed: The seed; the same one gives the same arrays.

    Raises:
        VerificationError: the arrays do not fit into the memory of this machine.
    """
    with memory_guard(fusion):
        values = enumerate(fusion.argument_parameters)
        arrays = [_random(value, np.random.default_rng((seed, number))) for number, value in values]
    return list(with_copies(fusion, arrays))


def _random(value: Value, random: np.random.Generator) -> Any:
    return random_array(numpy_dtype(element_type_of(value)), shape_of(value), random)


def random_array(dtype: Any, shape: Sequence[int], random: np.random.Generator) -> Any:
    """Return an array of small numbers: floats of both signs and around 1, integers from 0 to 8."""
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if "int" in dtype.name:
        return random.integers(0, 9, shape).astype(dtype)
    numbers = random.normal(0, 1.5, shape)
    return np.asarray(numbers + 1j * random.normal(0, 1.5, shape) if dtype.kind == "c" else numbers).astype(dtype)

"""Running the kernel of a fusion on arrays: their elements in the order in which memory holds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shardy_py.emitters.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.emitters.run.kernel import Output
from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph import Value
from shardy_py.layout.dtypes import numpy_dtype


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
        arrays: An array of numpy for every parameter.
        run: What runs its kernel: arrays in the order of memory, shape and dtype of every result.
        stage: The name of the stage, for errors.

    Raises:
        VerificationError: arrays that do not fit, or what `run` refuses.
    """
    shapes = [getattr(array, "shape", None) for array in arrays]
    if shapes != [shape_of(value) for value in fusion.parameters]:
        expected = ", ".join(str(value.type) for value in fusion.parameters) or "nothing"
        message = f"the kernel takes {expected}, not arrays of the shapes {shapes}"
        raise VerificationError(Diagnostic("run-arguments", message, stage, fusion.name))
    found = run(memory_inputs(fusion, arrays), memory_outputs(fusion))
    return [array.transpose(_inverse(_order(fusion, root))) for root, array in zip(fusion.roots, found, strict=True)]


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
    """
    return [_random(value, np.random.default_rng((seed, number))) for number, value in enumerate(fusion.parameters)]


def _random(value: Value, random: np.random.Generator) -> Any:
    dtype, shape = numpy_dtype(element_type_of(value)), shape_of(value)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if "int" in dtype.name:
        return random.integers(0, 9, shape).astype(dtype)
    numbers = random.normal(0, 1.5, shape)
    return np.asarray(numbers + 1j * random.normal(0, 1.5, shape) if dtype.kind == "c" else numbers).astype(dtype)

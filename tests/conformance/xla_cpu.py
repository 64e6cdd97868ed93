"""What StableHLO computes on XLA:CPU, as the program says, and how far results are from it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import ml_dtypes
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir as jax_mlir
from jaxlib import _jax
from jaxlib.mlir import ir

# XLA may compute bf16 in f32, turn divisions into products with a reciprocal, and unite a product and a sum that LLVM
# is allowed to contract: all of that is more or less exact than the program says, and is switched off.
OPTIONS = {
    "xla_allow_excess_precision": False,
    "xla_backend_optimization_level": 0,
    "xla_disable_hlo_passes": "algsimp",
}
DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "complex<f32>": np.complex64,
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
}


def _program(text: str, options: dict[str, Any]) -> Any:
    device = jax.devices("cpu")[0]
    with jax_mlir.make_ir_context():
        code = jax_mlir.module_to_bytecode(ir.Module.parse(text))
    actual = compiler.get_compile_options(num_replicas=1, num_partitions=1, env_options_overrides=options)
    return device.client.compile_and_load(code, _jax.DeviceList((device,)), actual)


def compiled_on_xla(text: str, arrays: Sequence[Any]) -> Callable[[], None]:
    """What runs a module's main function on arrays once, with XLA:CPU's own options, and waits for it."""
    device = jax.devices("cpu")[0]
    program = _program(text, {})
    placed = [jax.device_put(array, device) for array in arrays]

    def run() -> None:
        for parts in program.execute_sharded(placed).disassemble_into_single_device_arrays():
            parts[0].block_until_ready()

    run()
    return run


def run_on_xla(text: str, arrays: Sequence[Any], **options: Any) -> list[Any]:
    """The results of a module's main function, with more options of XLA."""
    device = jax.devices("cpu")[0]
    with jax.enable_x64(True):
        program = _program(text, OPTIONS | options)
        results = program.execute_sharded([jax.device_put(array, device) for array in arrays])
        return [np.asarray(parts[0]) for parts in results.disassemble_into_single_device_arrays()]


def random_array(shape: Sequence[int], element_type: str, rng: np.random.Generator) -> Any:
    """Numbers of both signs around 1; small integers, so that they are indices too."""
    dtype = np.dtype(DTYPES[element_type])
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -4, 9, shape).astype(dtype)
    numbers = rng.normal(0, 1.5, shape)
    if dtype.kind == "c":
        numbers = numbers + 1j * rng.normal(0, 1.5, shape)
    return np.asarray(numbers).astype(dtype)


def element_types(text: str) -> set[str]:
    """The element types in a module's text."""
    return set(re.findall(r"tensor<(?:\d+x)*([a-z]\w*(?:<f32>)?)>", text))


def _parts(array: Any) -> Any:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view({8: np.float32, 16: np.float64}[flat.dtype.itemsize]) if flat.dtype.kind == "c" else flat


def _ordered(array: Any) -> Any:
    """Floats as integers in their order: neighbours differ by 1, and both zeros are 0."""
    bits = array.view({2: np.int16, 4: np.int32, 8: np.int64}[array.dtype.itemsize]).astype(np.int64)
    least = -(1 << (8 * array.dtype.itemsize - 1))
    return np.where(bits < 0, np.int64(least) - bits, bits)


def is_equal(first: Any, other: Any) -> bool:
    """Whether all elements are equal bit by bit; a NaN is as good as another."""
    if first.dtype.kind in "biu":
        return bool((first == other).all())
    first, other = _parts(first), _parts(other)
    both_nan = (first != first) & (other != other)
    return bool(((first == other) & (np.signbit(first) == np.signbit(other)) | both_nan).all())


def ulps(first: Any, other: Any) -> int:
    """The largest distance of two elements, in units of the last place; of complex numbers by their parts."""
    if first.dtype.kind in "biu":
        return int((first != other).any())
    first, other = _parts(first), _parts(other)
    both_nan = (first != first) & (other != other)
    apart = np.abs(_ordered(first) - _ordered(other))
    return int(np.where(both_nan, 0, apart).max(initial=0))


def relative(first: Any, other: Any) -> float:
    """The largest distance of two elements against the largest element, in units of its precision."""
    first, other = _parts(first), _parts(other)
    precision = float(ml_dtypes.finfo(first.dtype).eps)
    first, other = first.astype(np.float64), other.astype(np.float64)
    same = (first == other) | ((first != first) & (other != other))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0, np.abs(first - other))
    largest = float(np.abs(first[np.isfinite(first)]).max(initial=0))
    return float(apart.max(initial=0)) / (precision * largest) if apart.any() else 0.0

"""Functions on arrays for the ops of linalg, arith, math, tensor and scf, to run programs on virtual devices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from shardy_dialects.linalg.structured import Loops, generic_loops
from shardy_py.indexing.expressions import evaluate
from shardy_py.sharding.derivation import REDUCTION

_PLACE = threading.local()
"""The iterations that the body of a generic op runs for, one of each thread: virtual devices are threads."""


def generic(*operands: Any, op: Any, regions: Any) -> Any:
    """Run the body of a structured op for all iterations; parallel loops at once, reductions in their order."""
    loops = generic_loops(op)
    sizes = _sizes(loops, operands)
    count = len(op.results)
    is_reduced = [kind == REDUCTION for kind in loops.iterator_types]
    inside = [1 if reduced else size for size, reduced in zip(sizes, is_reduced, strict=True)]
    grid = np.indices(inside)
    outputs = [np.array(array) for array in operands[len(operands) - count :]]
    for step in _steps(sizes, is_reduced):
        place = [axis + offset for axis, offset in zip(grid, step, strict=True)]
        indices = [_indices(affine, place) for affine in loops.maps]
        inputs = [
            np.broadcast_to(array[index], inside) for array, index in zip(operands[:-count], indices, strict=False)
        ]
        current = [np.broadcast_to(a[i], inside) for a, i in zip(outputs, indices[-count:], strict=True)]
        _PLACE.loops = place
        actual = regions[0](*inputs, *current)
        for output, index, value in zip(outputs, indices[-count:], actual if count > 1 else [actual], strict=True):
            output[index] = value
    return tuple(outputs)


def _steps(sizes: Sequence[int], is_reduced: Sequence[bool]) -> Iterator[Sequence[int]]:
    return product(*(range(size) if reduced else (0,) for size, reduced in zip(sizes, is_reduced, strict=True)))


def _indices(affine: Any, place: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(evaluate(result, lambda variable: place[variable.number]) for result in affine.results)


def _sizes(loops: Loops, operands: Sequence[Any]) -> list[int]:
    """Return the number of iterations of each loop, which is the size of a dimension that the loop goes through."""
    actual = [0] * len(loops.iterator_types)
    for affine, array in zip(loops.maps, operands, strict=True):
        for number, result in enumerate(affine.results):
            if hasattr(result, "number"):
                actual[result.number] = array.shape[number]
    return actual


def reduce(*operands: Any, op: Any, regions: Any) -> Any:
    """Run the body of a reduction for all elements along its dimensions."""
    half, dims = len(operands) // 2, op.attributes["dimensions"]
    values = list(operands[half:])
    for place in product(*(range(operands[0].shape[dim]) for dim in dims)):
        index: list[Any] = [slice(None)] * operands[0].ndim
        for dim, number in zip(dims, place, strict=True):
            index[dim] = number
        actual = regions[0](*(array[tuple(index)] for array in operands[:half]), *values)
        values = list(actual) if half > 1 else [actual]
    return tuple(values)


def loop(low: Any, high: Any, step: Any, *values: Any, regions: Any) -> Any:
    """Run the body of a counted loop."""
    for number in range(int(low), int(high), int(step)):
        actual = regions[0](np.asarray(number), *values)
        values = actual if len(values) > 1 else (actual,)
    return values


def branch(condition: Any, *, regions: Any) -> Any:
    """Run one of two branches."""
    return regions[0 if condition else 1]()


def while_loop(*values: Any, regions: Any) -> Any:
    """Run the body of a loop as long as its condition holds."""
    while True:
        go, *values = regions[0](*values)
        if not go:
            return tuple(values)
        actual = regions[1](*values)
        values = actual if isinstance(actual, tuple) else (actual,)


def extract_slice(value: Any, op: Any) -> Any:
    """Return a part of a tensor."""
    columns = (op.attributes[f"static_{name}"] for name in ("offsets", "sizes", "strides"))
    part = value[tuple(slice(start, start + size * step, step) for start, size, step in zip(*columns, strict=True))]
    assert part.size == np.prod(op.attributes["static_sizes"])
    return part.reshape(op.results[0].shape)


def insert_slice(source: Any, value: Any, op: Any) -> Any:
    """Return a tensor with a part of it replaced."""
    starts, sizes = op.attributes["static_offsets"], op.attributes["static_sizes"]
    result = np.array(value)
    part = tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))
    result[part] = source.reshape(result[part].shape)
    return result


def broadcast(value: Any, out: Any, op: Any) -> Any:
    """Return a tensor repeated along new dimensions."""
    return np.broadcast_to(np.expand_dims(value, tuple(op.attributes["dimensions"])), out.shape)


def pad(value: Any, op: Any, regions: Any) -> Any:
    """Return a tensor with the element of the body around it."""
    low, high = op.attributes["static_low"], op.attributes["static_high"]
    fill = regions[0](*([np.asarray(0)] * value.ndim))
    return np.pad(value, list(zip(low, high, strict=True)), constant_values=fill)


def compare(left: Any, right: Any, op: Any) -> Any:
    """Return a comparison of integers or floats, by the first predicates of each."""
    functions = {0: np.equal, 1: np.not_equal, 2: np.less, 3: np.less_equal, 4: np.greater, 5: np.greater_equal}
    return functions[int(op.attributes["predicate"])](left, right)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "arith.addf": np.add,
    "arith.cmpi": compare,
    "arith.divf": np.divide,
    "arith.index_cast": lambda value: value,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.mulf": np.multiply,
    "arith.sitofp": lambda value: np.asarray(value, "float32"),
    "arith.subf": np.subtract,
    "linalg.add": lambda x, y, out: x + y,
    "linalg.batch_matmul": lambda x, y, out: x @ y + out,
    "linalg.broadcast": broadcast,
    "linalg.exp": lambda x, out: np.exp(x),
    "linalg.fill": lambda value, out: np.full(out.shape, value, out.dtype),
    "linalg.generic": generic,
    "linalg.index": lambda op: _PLACE.loops[op.attributes["dim"]],
    "linalg.matmul": lambda x, y, out: x @ y + out,
    "linalg.reduce": reduce,
    "linalg.softmax": lambda x, out: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    "linalg.transpose": lambda x, out, op: x.transpose(op.attributes["permutation"]),
    "math.exp": np.exp,
    "math.sin": np.sin,
    "math.tanh": np.tanh,
    "scf.for": loop,
    "scf.if": branch,
    "scf.while": while_loop,
    "tensor.collapse_shape": lambda x, op: x.reshape(op.results[0].shape),
    "tensor.concat": lambda *values, op: np.concatenate(values, int(op.attributes["dim"])),
    "tensor.empty": lambda op: np.zeros(op.results[0].shape, "float32"),
    "tensor.expand_shape": lambda x, op: x.reshape(op.results[0].shape),
    "tensor.extract_slice": extract_slice,
    "tensor.insert_slice": insert_slice,
    "tensor.pad": pad,
    "tensor.splat": lambda value, op: np.full(op.results[0].shape, value),
}
"""A function per op; predicates and offsets are those that the programs of the tests use."""

"""Functions of ops on arrays of numpy, for ``shardy check tosa`` and for runs on virtual devices.

Floats are as precise as numpy has them. Products, sums of windows and negations of integers are exact, and are clamped
to the type of the result. Casts, tables, shifts, ``rescale`` and ``resize``, which round in ways of their own, and ops
that numpy lacks are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf
from typing import Any

import numpy as np


def _numbers(value: Any) -> list[int]:
    return [int(item) for item in getattr(value, "values", value)]


def _wide(x: Any) -> Any:
    """Return integers with 64 bits, and floats as they are."""
    return x.astype(np.int64) if x.dtype.kind in "iu" else x


def _zero_point(x: Any) -> Any:
    return 0 if x is None else x.item()


def _clamped(values: Any, op: Any) -> Any:
    """Return integers in the type of the result of an op, and floats as they are."""
    if values.dtype.kind not in "iu":
        return values
    bits = int(op.results[0].type.element_type.removeprefix("i"))
    largest = (1 << bits - 1) - 1
    return np.clip(values, ~largest, largest).astype(f"int{bits}" if bits in (8, 16, 32) else np.int64)


def _mul(x: Any, y: Any, shift: Any = (0,), *, op: Any) -> Any:
    product, bits = _wide(x) * _wide(y), int(shift[0])
    return _clamped(product + (1 << bits - 1) >> bits if bits else product, op)


def _matmul(x: Any, y: Any, a: Any = None, b: Any = None, *, op: Any) -> Any:
    return _clamped((_wide(x) - _zero_point(a)) @ (_wide(y) - _zero_point(b)), op)


def _products(equation: str, windows: Any, w: Any, y: Any, z: Any) -> Any:
    return np.einsum(equation, _wide(windows) - _zero_point(y), _wide(w) - _zero_point(z))


def _windows(x: Any, kernel: tuple[int, ...], op: Any, fill: Any) -> Any:
    """Return the windows of padded images, as further dimensions behind the channels."""
    pads, dilation = _numbers(op.attributes["pad"]), _numbers(op.attributes.get("dilation", (1,) * len(kernel)))
    space = tuple(range(1, 1 + len(kernel)))
    padded = np.pad(x, [(0, 0), *zip(pads[::2], pads[1::2], strict=True), (0, 0)], constant_values=fill)
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilation, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, space)
    strides = [slice(None, None, step) for step in _numbers(op.attributes["stride"])]
    inside = [slice(None, None, step) for step in dilation]
    return windows[(slice(None), *strides, slice(None), *inside)]


def _conv2d(x: Any, w: Any, b: Any, y: Any = None, z: Any = None, *, op: Any) -> Any:
    return _clamped(_products("npqckl,oklc->npqo", _windows(x, w.shape[1:3], op, _zero_point(y)), w, y, z) + b, op)


def _conv3d(x: Any, w: Any, b: Any, y: Any = None, z: Any = None, *, op: Any) -> Any:
    return _clamped(_products("ndpqcjkl,ojklc->ndpqo", _windows(x, w.shape[1:4], op, _zero_point(y)), w, y, z) + b, op)


def _depthwise(x: Any, w: Any, b: Any, y: Any = None, z: Any = None, *, op: Any) -> Any:
    result = _products("npqckl,klcm->npqcm", _windows(x, w.shape[:2], op, _zero_point(y)), w, y, z)
    return _clamped(result.reshape(*result.shape[:3], -1) + b, op)


def _max_pool(x: Any, *, op: Any) -> Any:
    least = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
    return _windows(x, tuple(_numbers(op.attributes["kernel"])), op, least).max((-2, -1))


def _avg_pool(x: Any, y: Any = None, z: Any = None, *, op: Any) -> Any:
    kernel = tuple(_numbers(op.attributes["kernel"]))
    total = _windows(_wide(x) - _zero_point(y), kernel, op, 0).sum((-2, -1))
    averages = total / _windows(np.ones_like(total, shape=x.shape), kernel, op, 0).sum((-2, -1))
    if total.dtype.kind in "iu":
        averages = np.floor(averages + 0.5).astype(total.dtype)
    return _clamped(averages + _zero_point(z), op)


def _slice(x: Any, start: Any, size: Any) -> Any:
    return x[tuple(slice(s, s + n) for s, n in zip(start, size, strict=True))]


def _gather(x: Any, rows: Any) -> Any:
    return np.take_along_axis(x, np.broadcast_to(rows[..., None] % x.shape[1], (*rows.shape, x.shape[2])), 1)


def _scatter(x: Any, rows: Any, update: Any) -> Any:
    result = x.copy()
    np.put_along_axis(result, np.broadcast_to(rows[..., None] % x.shape[1], update.shape), update, 1)
    return result


def _clamp(x: Any, *, op: Any) -> Any:
    low, high = (float(str(op.attributes[name]).partition(":")[0]) for name in ("min_val", "max_val"))
    return np.clip(x, low, high).astype(x.dtype)


_erf = np.vectorize(erf, otypes=[np.float64])


def _negate(x: Any, y: Any = None, z: Any = None, *, op: Any) -> Any:
    return _clamped(_zero_point(z) - (_wide(x) - _zero_point(y)), op)


def _fft(real: Any, imaginary: Any, *, op: Any) -> Any:
    transform = np.fft.ifft2 if op.attributes["inverse"] else np.fft.fft2
    result = transform(real + 1j * imaginary, norm="forward" if op.attributes["inverse"] else "backward")
    return result.real.astype(real.dtype), result.imag.astype(real.dtype)


def _rfft(x: Any) -> Any:
    result = np.fft.rfft2(x)
    return result.real.astype(x.dtype), result.imag.astype(x.dtype)


def _while(*values: Any, op: Any, regions: Any) -> Any:
    condition, body = regions
    while np.asarray(condition(*values)).all():
        following = body(*values)
        values = following if isinstance(following, tuple) else (following,)
    return values if len(values) > 1 else values[0]


def _if(condition: Any, *values: Any, regions: Any) -> Any:
    return regions[0 if np.asarray(condition).all() else 1](*values)


def _reduced(name: str) -> Callable[..., Any]:
    return lambda x, op: getattr(np, name)(x, op.attributes["axis"], keepdims=True).astype(x.dtype)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    f"tosa.{name}": function
    for name, function in {
        **{name: getattr(np, name) for name in ("abs", "ceil", "cos", "exp", "floor", "log", "sin", "tanh")},
        **{name: getattr(np, name) for name in ("logical_and", "logical_not", "logical_or", "logical_xor")},
        **{name: getattr(np, name) for name in ("bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor")},
        **{name: getattr(np, name) for name in ("equal", "greater", "greater_equal", "maximum", "minimum")},
        "add": np.add,
        "sub": np.subtract,
        "mul": _mul,
        "pow": np.power,
        "intdiv": lambda x, y: np.trunc(x / np.where(y == 0, 1, y)).astype(x.dtype),
        "negate": _negate,
        "select": np.where,
        "identity": lambda x: x,
        "clamp": _clamp,
        "erf": lambda x: _erf(x).astype(x.dtype),
        "reciprocal": lambda x: 1 / x,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "matmul": _matmul,
        **{f"reduce_{name}": _reduced(name) for name in ("all", "any", "max", "min", "sum", "prod")},
        "reduce_product": _reduced("prod"),
        "argmax": lambda x, op: x.argmax(op.attributes["axis"]).astype(np.int32),
        "conv2d": _conv2d,
        "conv3d": _conv3d,
        "depthwise_conv2d": _depthwise,
        "max_pool2d": _max_pool,
        "avg_pool2d": _avg_pool,
        "fft2d": _fft,
        "rfft2d": _rfft,
        "reshape": lambda x, shape: x.reshape(tuple(shape)),
        "transpose": lambda x, op: x.transpose(_numbers(op.attributes["perms"])),
        "slice": _slice,
        "concat": lambda *parts, op: np.concatenate(parts, op.attributes["axis"]),
        "reverse": lambda x, op: np.flip(x, op.attributes["axis"]),
        "pad": lambda x, widths, c: np.pad(x, np.reshape(widths, (-1, 2)), constant_values=c[0]),
        "tile": lambda x, repeats: np.tile(x, tuple(repeats)),
        "gather": _gather,
        "scatter": _scatter,
        "while_loop": _while,
        "cond_if": _if,
    }.items()
}
"""The function of each op, in the form that `shardy_py.testing.run_sharded` takes."""

"""Modules with one op on integers that has a result everywhere, and what that is, by Python's integers."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from shardy_py.kernels.launch.grid import Launch

OPS = (
    *("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.shli", "arith.shrsi", "arith.shrui"),
    "math.ipowi",
)
THREADS = 640
LAUNCH = Launch((1, 1, 1), (THREADS, 1, 1))
_BUFFER = "tensor<{n}xi{bits}> {{xla.slice_index = {slice} : index, llvm.dereferenceable = {size} : index}}"


def integer_module(op: str, bits: int) -> str:
    """The text of a module in which each thread computes one element."""
    names = enumerate(("%x", "%y", "%o"))
    size = THREADS * bits // 8
    buffers = [f"{name}: {_BUFFER.format(n=THREADS, bits=bits, slice=slice_, size=size)}" for slice_, name in names]
    tensor, mark = f"tensor<{THREADS}xi{bits}>", "" if op == "math.ipowi" else "{xla.guard_ub} "
    return f"""func.func @main({", ".join(buffers)}) -> {tensor} attributes {{xla.entry}} {{
  %t = gpu.thread_id x {{xla.range = [0 : index, {THREADS - 1} : index]}}
  %v = tensor.extract %x[%t] : {tensor}
  %w = tensor.extract %y[%t] : {tensor}
  %e = {op} %v, %w {mark}: i{bits}
  %r = tensor.insert %e into %o[%t] : {tensor}
  func.return %r : {tensor}
}}"""


def wrapped(number: int, bits: int) -> int:
    """A number as an integer of some bits with a sign."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def exact(op: str, left: int, right: int, bits: int) -> int:
    """What an op gives for two integers with a sign, as XLA defines it."""
    mask = (1 << bits) - 1
    if op.endswith("ui"):
        left, right = left & mask, right & mask
    if op.startswith("arith.div"):
        quotient = abs(left) // abs(right) if right else -1
        result = -quotient if right and (left < 0) != (right < 0) else quotient
    elif op.startswith("arith.rem"):
        rest = abs(left) % abs(right) if right else abs(left)
        result = -rest if left < 0 else rest
    elif op == "math.ipowi" and right < 0:
        result = {1: 1, -1: -1 if right % 2 else 1}.get(left, 0)
    elif op == "math.ipowi":
        result = left ** (right % 64)
    elif op == "arith.shli":
        amount = right & mask
        result = left << amount if amount < bits else 0
    else:
        result = left >> min(right & mask, bits)
    return wrapped(result, bits)


def integer_pairs(bits: int, seed: int) -> tuple[Any, Any]:
    """Pairs of integers for all threads: those at borders with each other, and random ones."""
    least, greatest = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    borders = (0, 1, -1, 2, -2, 3, -3, 7, bits - 1, bits, bits + 1, 63, 64, 100, least, least + 1, greatest)
    rng = np.random.default_rng(seed)
    pairs = [(first, second) for first, second in product(borders, borders)]
    more = rng.integers(least, greatest, (THREADS - len(pairs), 2), endpoint=True)
    more[::2, 1] = rng.integers(-9, 70, len(more[::2]))
    columns = np.concatenate([np.array(pairs), more]).astype(f"int{bits}").T
    return columns[0].copy(), columns[1].copy()


def exact_elements(op: str, left: Any, right: Any, bits: int) -> Any:
    """What an op gives for pairs of integers."""
    numbers = [exact(op, first, second, bits) for first, second in zip(left.tolist(), right.tolist(), strict=True)]
    return np.array(numbers, left.dtype)

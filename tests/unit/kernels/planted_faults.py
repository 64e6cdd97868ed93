"""Faults planted into kernels whose threads share memory, as changes of their text."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from shardy_py.kernels.launch.grid import Launch
from tests.unit.kernels import shared_kernels as kernels


@frozen(eq=False)
class Fault:
    """A kernel with a fault.

    Args:
        text: The kernel without the fault.
        changes: Parts of its text, and what stands there with the fault.
        launch: The grid.
        inputs: What the kernel reads.
        want: What it must give.
        slices: The buffers of inputs and result.
        name: The name of the entry function.
        code: The error that the interpreter ends with; none where the result alone is wrong.
    """

    text: str
    changes: tuple[tuple[str, str], ...]
    launch: Launch
    inputs: tuple[Any, ...]
    want: Any
    slices: tuple[int, ...]
    name: str
    code: str = ""

    @property
    def planted(self) -> str:
        """The text with the fault."""
        text = self.text
        for old, new in self.changes:
            assert old in text
            text = text.replace(old, new)
        return text


def _transpose(*changes: tuple[str, str], code: str = "") -> Fault:
    x = np.arange(1, 3501, dtype=np.float32).reshape(50, 70)
    want = np.ascontiguousarray(-x.T)
    return Fault(kernels.TRANSPOSE, changes, kernels.TRANSPOSE_LAUNCH, (x,), want, (0, 1), "transpose", code)


def _rows(*changes: tuple[str, str], code: str = "") -> Fault:
    x = (np.arange(6 * 256).reshape(6, 256) % 5).astype(np.float32)
    return Fault(kernels.rows("f32", 4), changes, kernels.ROWS_LAUNCH, (x,), x.sum(axis=1), (0, 1), "rows", code)


def _updates(*changes: tuple[str, str], code: str = "") -> Fault:
    x, u = np.zeros((8, 2), np.float32), np.ones((200, 2), np.float32)
    at = (np.arange(200) % 8).astype(np.int32)
    text = kernels.updates("f32", 4, "arith.addf")
    return Fault(text, changes, kernels.UPDATES_LAUNCH, (x, at, u), x + 25, (0, 1, 2, 0), "updates", code)


_ATOMIC = """%w = xla_gpu.atomic_rmw %s[%j, %b] : tensor<8x2xf32> {
        ^bb0(%current: f32):
          %new = arith.addf %current, %v : f32
          xla_gpu.yield %new : f32
        }"""
_PLAIN = """%current = tensor.extract %s[%j, %b] : tensor<8x2xf32>
        %new = arith.addf %current, %v : f32
        %w = tensor.insert %new into %s[%j, %b] : tensor<8x2xf32>"""

_SHIFTED = '(bl_x mod 3) * 32 + th_x mod 32, "\n        "th_x mod 32'

FAULTS = {
    "removed-barrier": _transpose(
        ("    %shared = xla_gpu.sync_threads %written : tensor<32x33xf32>\n", ""),
        ("%shared[", "%written["),
        code="race",
    ),
    "removed-barrier-between-warps": _rows(
        ("    %all = xla_gpu.sync_threads %kept : tensor<1x4xf32>\n", ""), ("%all[", "%kept["), code="race"
    ),
    "shifted-map": _transpose((_SHIFTED, _SHIFTED.replace("mod 32,", "mod 32 + 1,", 1)), code="out-of-bounds"),
    "swapped-permutation": _transpose(("%s[%c, %d] : tensor<32x33xf32>", "%s[%d, %c] : tensor<32x33xf32>")),
    "wrong-neutral-value": _rows(("arith.constant 0.0 : f32", "arith.constant 1.0 : f32")),
    "atomic-made-plain": _updates((_ATOMIC, _PLAIN), code="race"),
}

"""Attributes of slices on tensors that are padded at the high ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import no_local_form


def pad_slice(op: Op, operands: Sequence[Sequence[int]], result: Sequence[int]) -> Mapping[str, Any]:
    """Return limits that give all elements of the padded result."""
    limits = list(op.attributes["limit_indices"])
    rows = zip(result, op.results[0].shape, op.attributes["start_indices"], op.attributes["strides"], strict=True)
    for dim, (size, old, start, stride) in enumerate(rows):
        if size != old:
            limits[dim] = start + (size - 1) * stride + 1
        if limits[dim] > operands[0][dim]:
            raise no_local_form(f"the padding of dimension {dim} is larger than what the slice leaves")
    return {"limit_indices": tuple(limits)}


PADDED: Mapping[str, Callable[[Op, Sequence[Sequence[int]], Sequence[int]], Mapping[str, Any]]] = {
    "stablehlo.slice": pad_slice
}

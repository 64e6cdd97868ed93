"""Two ops of StableHLO as one: a slice of a padded tensor is a pad of its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardy_py.ir.graph.program import Op


def composed(op: Op, producer: Op) -> tuple[str, Mapping[str, Any]] | None:
    """Return the op that makes of the operands of a producer what an op makes of its result; None if there is none."""
    if op.name != "stablehlo.slice" or producer.name != "stablehlo.pad":
        return None
    if any(producer.attributes["interior_padding"]) or any(stride != 1 for stride in op.attributes["strides"]):
        return None
    sizes = zip(producer.operands[0].shape, op.results[0].shape, strict=True)
    starts = zip(producer.attributes["edge_padding_low"], op.attributes["start_indices"], strict=True)
    # Negative padding cuts elements off.
    lows = [low - start for low, start in starts]
    highs = [result - low - size for low, (size, result) in zip(lows, sizes, strict=True)]
    if any(min(low, high) < -size for low, high, size in zip(lows, highs, producer.operands[0].shape, strict=True)):
        return None
    none = (0,) * len(lows)
    return "stablehlo.pad", {
        "edge_padding_low": tuple(lows),
        "edge_padding_high": tuple(highs),
        "interior_padding": none,
    }

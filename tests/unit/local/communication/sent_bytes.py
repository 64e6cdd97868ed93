"""The bytes that one device sends in a local program."""

from __future__ import annotations

from typing import Any

from shardy_py.local.communication.run_counts import RunCounts
from shardy_py.support.element_types import mlir_element_bits


def sent_bytes(local: Any, registry: Any) -> float:
    """Return the bytes of the collectives of a local program of one function, by ring algorithms; loops count."""
    counts, total = RunCounts(registry), 0.0
    for op in local.program.functions["main"].walk():
        actual = local.ops.read_collective(op)
        if actual is None:
            continue
        size = len(actual.groups[0])
        (operand,) = op.operands
        before = 1.0
        for item in operand.shape:
            before *= item
        before *= (mlir_element_bits(operand.type.element_type) or 32) / 8
        share = sum(source != target for source, target in actual.groups) / local.device_count if size == 2 else 1.0
        per_shard = {
            "all_gather": size - 1,
            "all_reduce": 2 * (size - 1) / size,
            "reduce_scatter": (size - 1) / size,
            "all_to_all": (size - 1) / size,
            "collective_permute": share,
        }[actual.kind]
        total += before * per_shard * counts.of_block(op.parent)
    return total

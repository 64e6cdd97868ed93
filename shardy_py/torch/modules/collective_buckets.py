"""Buckets of collectives: those of one kind over the same devices that one call moves, as DDP and FSDP do.

Gathers of parameters run ahead, where the first of a bucket is; reductions of gradients wait for the last one. The
program is that of all processes, so that all of them make the same calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any

from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.support.element_types import mlir_element_bits
from shardy_py.torch.parallel.draws import draws_numbers
from shardy_py.values import define

_BUCKETED = ("spmd.all_gather", "spmd.all_reduce", "spmd.reduce_scatter")


@define(eq=False)
class CollectiveBucket:
    """Collectives that one call runs.

    Attributes:
        ops: The collectives, in the order of the program.
        start: The collective in whose place all of them start.
        before: The index of the first op that uses a result.
        bytes: The bytes of the larger ones of operands and results.
    """

    ops: list[Op]
    start: Op
    before: int
    bytes: float

    def has_room(self, index: int, before: int, size: float, limit: float, *, is_ready: bool) -> bool:
        """Return whether a further collective can start with these.

        Args:
            index: The index of the collective.
            before: The index of the first op that uses its result.
            size: Its bytes.
            limit: The bytes that a bucket has at most.
            is_ready: Whether its operand can be computed where the bucket starts.
        """
        return self.bytes + size <= limit and (is_ready or index < min(self.before, before))

    def add(self, op: Op, before: int, size: float, *, is_ready: bool) -> None:
        """Add a collective; one that is not ready before is where all of them start then."""
        self.ops.append(op)
        self.start = self.start if is_ready else op
        self.before = min(self.before, before)
        self.bytes += size


def collective_buckets(ops: Sequence[Op], forward: Sequence[Value] | None, limit: float) -> dict[int, CollectiveBucket]:
    """Return the bucket of each collective that shares one, by its id.

    Args:
        ops: The ops of a local program without control flow; the last one returns its results.
        forward: The results of the forward pass: a call belongs to one pass. None for a program of one pass.
        limit: The bytes that a bucket has at most.
    """
    index_by_op = {op.id: index for index, op in enumerate(ops)}
    ahead = _needed(forward) if forward is not None else ()
    latest: dict[Any, CollectiveBucket] = {}
    buckets: list[CollectiveBucket] = []
    for index, op in enumerate(ops):
        if op.name not in _BUCKETED or str(_element_type(op)).startswith("complex"):
            continue
        size, before = _bytes(op), _first_use(op.results[0], index_by_op)
        is_ready = _follows_from_argument(op.operands[0])
        key = (op.name, _groups(op), _element_type(op), op.attributes.get("combiner"), op.id in ahead)
        bucket = latest.get(key)
        if bucket is not None and bucket.has_room(index, before, size, limit, is_ready=is_ready):
            bucket.add(op, before, size, is_ready=is_ready)
        else:
            latest[key] = CollectiveBucket([op], op, before, size)
            buckets.append(latest[key])
    return {op.id: bucket for bucket in buckets if len(bucket.ops) > 1 for op in bucket.ops}


def _needed(results: Sequence[Value]) -> Collection[int]:
    """Return the ids of the ops that some results are computed from."""
    needed: set[int] = set()
    left = [value.defining_op for value in results]
    while left:
        op = left.pop()
        if op is not None and op.id not in needed:
            needed.add(op.id)
            left.extend(value.defining_op for value in op.operands)
    return needed


def passes_on(op: Op) -> bool:
    """Return whether an op can run anywhere between its operand and its users: a view or another op of one tensor."""
    is_fixed = op.name == RETURN or op.name.startswith("spmd.")
    return len(op.operands) == len(op.results) == 1 and not is_fixed and not draws_numbers(op)


def _first_use(value: Value, index_by_op: Mapping[int, int]) -> int:
    """Return the index of the first op that a value has to be there for."""
    first, left = len(index_by_op), [value]
    while left:
        for user in left.pop().users:
            if passes_on(user):
                left.append(user.results[0])
            else:
                first = min(first, index_by_op[user.id])
    return first


def _follows_from_argument(value: Value) -> bool:
    """Return whether a value is an argument of the program, or a view or cast of one."""
    op = value.defining_op
    while op is not None and passes_on(op):
        op = op.operands[0].defining_op
    return op is None


def _groups(op: Op) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, op.attributes["groups"]))


def _element_type(op: Op) -> Any:
    return getattr(op.operands[0].type, "element_type", None)


def _bytes(op: Op) -> float:
    sizes = [prod(static_shape(value.type) or ()) for value in (op.operands[0], op.results[0])]
    return max(sizes) * (mlir_element_bits(_element_type(op)) or 32) / 8

"""Tensors that two solutions of a problem shard differently."""

from __future__ import annotations

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.propagation.solve import Solution
from shardy_py.sharding.tensor import TensorSharding


def changed_slots(first: Solution, second: Solution) -> list[int]:
    """Return the slots of the tensors that do not lie on the devices in the same way, open and closed aside.

    Args:
        first: A solution.
        second: Another one of the same problem.

    Raises:
        OptionError: the problems are two.
    """
    if first.problem is not second.problem:
        raise OptionError(Diagnostic("two-problems", "the solutions are of two different programs"))
    table = first.problem.table.values
    same: dict[tuple[int, int], bool] = {}
    slots = []
    for slot, pair in enumerate(zip(first.shardings, second.shardings, strict=True)):
        if pair[0] == pair[1]:
            continue
        if pair not in same:
            same[pair] = _is_same(table[pair[0]], table[pair[1]])
        # The last entry stands for values without a slot.
        if not same[pair] and slot < len(first.problem.slot_values):
            slots.append(slot)
    return slots


def _is_same(first: TensorSharding | None, second: TensorSharding | None) -> bool:
    if first is None:
        first, second = second, first
    return first is None or first.is_equivalent(second)

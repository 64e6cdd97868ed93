"""Memories into which ops inside of fragments put tensors: that of the device, or that of the host.

A custom call ``annotate_device_placement`` moves a tensor. What it moves to the device comes from the host, and what
it moves to the host stays there, also through ops that hand a tensor on.
"""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.ops import Broadcast, DynamicSlice, DynamicUpdate, OpSemantics, Reshape
from shardy_py.mpmd.dialect.fragments import body_of, terminator_of
from shardy_py.mpmd.dialect.types import DEVICE, PINNED_HOST
from shardy_py.mpmd.passes.region_ops import BARRIER

_ATTRIBUTES = "mhlo.frontend_attributes"
_TARGET = "call_target_name"
_MOVE = "annotate_device_placement"
_IDENTITIES = frozenset(("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"))


class Placements:
    """The arguments and results of fragments that are on the host.

    Args:
        semantics: What is known about ops.
    """

    def __init__(self, semantics: OpSemantics) -> None:
        self._semantics = semantics

    def host_arguments(self, fragment: Op) -> set[int]:
        """Return the numbers of the arguments that are moved to the device, or used on the host."""
        values = enumerate(body_of(fragment).arguments)
        return {number for number, value in values if self._comes_from_host(value, is_sliced=False, seen=set())}

    def host_results(self, fragment: Op) -> set[int]:
        """Return the numbers of the results that were moved to the host, or made there."""
        values = enumerate(terminator_of(fragment).operands)
        return {number for number, value in values if self._is_on_host(value, is_updated=False, seen=set())}

    def _comes_from_host(self, value: Value, *, is_sliced: bool, seen: set[int]) -> bool:
        """Return whether a user of a value moves it to the device; a reshape counts behind a slice only."""
        if value.id in seen:
            return False
        seen.add(value.id)
        for user, number in value.uses:
            if _placement(user) == DEVICE or _runs_on_host(user):
                return True
            for target in self._handed_on(user, number):
                if self._comes_from_host(target, is_sliced=is_sliced, seen=seen):
                    return True
            is_slice = number == 0 and self._semantics.has_trait(user, DynamicSlice)
            if (is_slice or (is_sliced and self._semantics.has_trait(user, Reshape))) and self._comes_from_host(
                user.results[0], is_sliced=True, seen=seen
            ):
                return True
        return False

    def _handed_on(self, user: Op, number: int) -> Iterator[Value]:
        """Yield the values that an operand of an op goes on as."""
        if _is_identity(user):
            yield user.results[number]
        elif user.regions and len(user.operands) == len(user.results):
            for region in user.regions:
                for block in region.blocks:
                    if len(block.arguments) == len(user.operands):
                        yield block.arguments[number]

    def _is_on_host(self, value: Value, *, is_updated: bool, seen: set[int]) -> bool:
        """Return whether a value was moved to the host; a reshape counts before an update of a larger tensor only."""
        op = value.defining_op
        if op is None or value.id in seen:
            return False
        seen.add(value.id)
        if _placement(op) == PINNED_HOST or _runs_on_host(op):
            return True
        if _is_identity(op):
            return self._is_on_host(op.operands[value.index], is_updated=is_updated, seen=seen)
        if op.regions:
            ends = [region.block.terminator for region in op.regions if len(region.blocks) == 1]
            return any(
                end is not None
                and len(end.operands) == len(op.results)
                and self._is_on_host(end.operands[value.index], is_updated=is_updated, seen=seen)
                for end in ends
            )
        if self._semantics.has_trait(op, DynamicUpdate):
            return self._is_on_host(op.operands[1], is_updated=True, seen=seen)
        hands_on = any(self._semantics.has_trait(op, trait) for trait in (Reshape, Broadcast))
        return is_updated and hands_on and self._is_on_host(op.operands[0], is_updated=True, seen=seen)


def _frontend_attribute(op: Op, name: str) -> str:
    attributes = op.attributes.get(_ATTRIBUTES)
    return str(attributes.get(name, "")) if isinstance(attributes, dict) else ""


def _placement(op: Op) -> str:
    """Return the memory that an op moves its operand to, "" for another op."""
    if str(op.attributes.get(_TARGET, "")) != _MOVE:
        return ""
    return _frontend_attribute(op, "_xla_buffer_placement")


def _runs_on_host(op: Op) -> bool:
    return _frontend_attribute(op, "_xla_compute_type") == "host"


def _is_identity(op: Op) -> bool:
    """Return whether each result of an op is the operand of the same number."""
    if str(op.attributes.get(_TARGET, "")) in _IDENTITIES:
        return True
    return op.name.endswith(BARRIER)

"""Values that lie in memory, and the bytes that ops read and write there.

A compiler fuses elementwise ops with each other and with the reductions that use them, so that what passes between
those is never written to memory.
"""

from __future__ import annotations

from shardy_py.analysis.cost.sizes import LocalSizes
from shardy_py.ir.graph import Op, Value
from shardy_py.ir.interfaces import Broadcast, ConstantLike, Elementwise, Reduction, Reshape, Trait
from shardy_py.plugins import Registry

HOW = (
    "the shards that each op reads and writes, but for those that pass between elementwise ops, broadcasts, constants"
    " and reductions, which are fused"
)
_FUSED_FROM = frozenset((Elementwise, Broadcast, ConstantLike))
_FUSED_INTO = frozenset((Elementwise, Reduction))
_IN_PLACE = frozenset((Elementwise, Reshape))


class Traffic:
    """Values of a program that lie in memory."""

    def __init__(self, sizes: LocalSizes, registry: Registry) -> None:
        self._sizes = sizes
        self._registry = registry
        self._stored: dict[int, bool] = {}

    def bytes_of(self, op: Op) -> int:
        """Return the bytes that one device reads and writes for an op that is no control flow."""
        # A reshape, where nothing moves, is another view of the same bytes.
        if self._has(op, (Reshape,)):
            return 0
        values = {value.id: value for value in (*op.operands, *op.results)}
        return sum(self._sizes.bytes(value) for value in values.values() if self.is_stored(value))

    def stored_bytes(self, value: Value) -> int:
        """Return the bytes of memory a value takes on one device."""
        return self._sizes.bytes(value) if self.is_stored(value) else 0

    def is_stored(self, value: Value) -> bool:
        """Return whether a value lies in memory."""
        found = self._stored.get(value.id)
        if found is None:
            found = self._stored[value.id] = not self._is_fused(value)
        return found

    def may_overwrite(self, op: Op) -> bool:
        """Return whether the results of an op may take the memory of operands that nobody needs any more."""
        return bool(op.regions) or self._registry.get_data_flow(op) is not None or self._has(op, _IN_PLACE)

    def _is_fused(self, value: Value) -> bool:
        producer = value.defining_op
        if producer is None or not value.uses or not self._has(producer, _FUSED_FROM):
            return False
        return all(user.parent is producer.parent and self._has(user, _FUSED_INTO) for user, _ in value.uses)

    def _has(self, op: Op, traits: frozenset[Trait] | tuple[Trait, ...]) -> bool:
        return not self._registry.get_traits(op).isdisjoint(traits)

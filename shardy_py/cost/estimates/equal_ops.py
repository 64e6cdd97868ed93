"""Keys of ops that a compiler computes once where their operands are the same.

As in XLA's hlo_cse.cc: ops of one name with equal attributes and regions.
"""

from __future__ import annotations

from attrs import field

from shardy_py.ir.graph.attributes import shared_parts
from shardy_py.ir.graph.program import Op, Region
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.identity import identity
from shardy_py.values import define


@define(eq=False)
class OpKeys:
    """Keys of ops by their names, attributes and regions; sets of attributes that ops share are looked at once."""

    _known: dict[tuple[int, ...] | None, tuple[int, object]] = field(factory=dict, init=False)
    _numbers: dict[object, int] = field(factory=dict, init=False)

    def key(self, op: Op) -> object | None:
        """Return the same key for equal ops; None where an op is equal to no other one."""
        attributes = self._attributes(op)
        if attributes is None:
            return None
        if not op.regions:
            return op.name, attributes
        return op.name, attributes, *[self._region(region) or op.id for region in op.regions]

    def _attributes(self, op: Op) -> int | None:
        """Return a number of the attributes of an op, the same for equal ones; None where they are equal to none."""
        parts = shared_parts(op.attributes)
        same = None if parts is None else tuple(map(identity, parts))
        known = self._known.get(same)
        if known is not None:
            return known[0]
        found: object = tuple(sorted(op.attributes.items(), key=lambda item: item[0]))
        try:
            number = self._numbers.setdefault(found, len(self._numbers))
        except TypeError:
            if same is None:
                return None
            # Some attributes are dictionaries; only the same objects count as equal then.
            number = self._numbers.setdefault(("same", same), len(self._numbers))
        if same is not None:
            # What the identities are of has to stay alive.
            self._known[same] = number, parts
        return number

    def _region(self, region: Region) -> object | None:
        """Return the key of a region of one block that uses nothing from outside of it; None for others."""
        if len(region.blocks) != 1:
            return None
        (block,) = region.blocks
        numbers = {value.id: number for number, value in enumerate(block.arguments)}
        found: list[object] = [tuple([argument.type for argument in block.arguments])]
        for op in block.ops:
            attributes = self._attributes(op)
            if op.regions or attributes is None or any(value.id not in numbers for value in op.operands):
                return None
            numbers |= {value.id: len(numbers) + number for number, value in enumerate(op.results)}
            operands = tuple([numbers[value.id] for value in op.operands])
            found.append((op.name, attributes, operands, tuple([value.type for value in op.results])))
        return tuple(found)


def axes_key(sharding: TensorSharding | None) -> tuple[object, ...]:
    """Return what a sharding says of a finished program, where it matters no more which dimensions are open."""
    if sharding is None:
        return ()
    return sharding.mesh, sharding.unreduced_axes, *(dim.axes for dim in sharding.dim_shardings)

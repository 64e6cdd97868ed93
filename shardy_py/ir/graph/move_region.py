"""Moving regions from one op to another."""

from __future__ import annotations

from shardy_py.ir.graph.parked_ops import park, pop_parked, restore
from shardy_py.ir.graph.program import Op, Region


def move_region(source: Op, target: Op, *, terminator: str) -> Region:
    """Move the only region of an op to one that has none yet; ``source`` is left with an empty one.

    When a region comes back to where it was, so do the ops that ended its blocks there.

    Args:
        source: The op that loses its region.
        target: The op that gets it.
        terminator: The name of the ops that end its blocks there.
    """
    (region,) = source.regions
    source.regions = ()
    source.add_region(Region())
    target.add_region(region)
    for block in region.blocks:
        old = block.terminator
        if old is not None:
            # As in the reference, the new op enters the use lists before the old one leaves them.
            block.append(_new_terminator(old, terminator))
            old.erase()
    return region


def _new_terminator(old: Op, name: str) -> Op:
    for kept in pop_parked(old):
        if kept.name == name:
            return restore(kept, old.operands, {})
    new = Op(old.program, name, old.operands)
    park(new, old)
    return new

"""Parked ops: replaced by a stand-in during propagation, and put back afterwards.

Calls and functions become named computations for propagation, and calls and functions again afterwards. An op that
comes back is still the one the frontend knows, so that writing the program back need not make a new one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Value


def park(stand_in: Op, *ops: Op) -> None:
    """Park ops that are about to be erased, until their stand-in is erased."""
    stand_in.program.stand_ins[stand_in.id] = ops


def pop_parked(stand_in: Op) -> tuple[Op, ...]:
    """Return the ops that are parked for a stand-in, and forget them; () if there are none."""
    return stand_in.program.stand_ins.pop(stand_in.id, ())


def restore(
    op: Op, operands: Iterable[Value], attributes: Mapping[str, Attribute], *, unchanged: Collection[str] = ()
) -> Op:
    """Restore a parked op with new operands and attributes, and without regions.

    Args:
        op: The op.
        operands: Its operands from now on.
        attributes: Its attributes from now on, but for those that are unchanged.
        unchanged: The names of those that it has already as they should be.
    """
    own = op.attributes
    for name in [name for name in own if name not in attributes and name not in unchanged]:
        del own[name]
    for name, value in attributes.items():
        own[name] = value
    op.operands = list(operands)
    op.register_uses()
    op.regions = ()
    return op

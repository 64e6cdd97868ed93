"""Local forms of reshapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_py.ir.graph import Op, Value
from shardy_py.ir.local import Shard, no_local_form


def localize_reshape(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the shard in its new shape: the elements of a shard stay together."""
    shard.check_kinds()
    before, after = shard.operands[0].shape, shard.result_shape()
    if prod(before) != prod(after):
        raise no_local_form("the operand and the result are cut into different numbers of elements")
    return shard.copy()


FORMS = {"stablehlo.reshape": localize_reshape}

"""Local forms of random numbers: all devices make those of one device, and keep their part."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Shard, no_local_form


def localize_random(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the numbers that are not sharded; each shard would have the same ones otherwise."""
    if any(map(shard.sharded_dims, (*shard.operand_shardings, *shard.result_shardings))):
        raise no_local_form("random numbers are made whole, so that they are those of one device")
    return shard.copy()


FORMS = {"stablehlo.rng": localize_random, "stablehlo.rng_bit_generator": localize_random}

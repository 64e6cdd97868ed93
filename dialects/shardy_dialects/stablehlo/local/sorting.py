"""Local form of a sort, whose dimension may be counted from the end."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.definitions import attribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import Shard, no_local_form


def localize_sort(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the sort of the shards.

    Raises:
        CannotLocalize: the sorted dimension is sharded, as the rule of the reference allows for negative ones.
    """
    dim = attribute(op, "dimension", -1) % len(static_shape(op.operands[0].type) or (1,))
    if any(dim in shard.sharded_dims(sharding) for sharding in (*shard.operand_shardings, *shard.result_shardings)):
        raise no_local_form("the sorted dimension is sharded")
    shard.check_kinds()
    return shard.copy(dimension=dim)


FORMS = {"stablehlo.sort": localize_sort}

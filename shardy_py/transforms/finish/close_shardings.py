"""Close all shardings, now that nothing will be propagated any more.

Mirrors close_shardings.cc::CloseShardingsPass.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import distinct
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.tensor import CLOSED, TensorSharding, TensorShardingPerValue, closed_dimension
from shardy_py.support.identity import identity
from shardy_py.values import NoFields

_SHARDINGS = ("in_shardings", "out_shardings")


class CloseShardingsPass(NoFields):
    """Close every dimension and drop replicated axes, which only kept others from sharding a dimension by them."""

    name: ClassVar[str] = "sdy-close-shardings"

    def run(self, program: Program, context: PassContext) -> None:
        """Close the shardings of all values."""
        table = program.shardings
        closed = {identity(sharding): _close(sharding) for sharding in distinct(table.values())}
        for value, sharding in table.items():
            table[value] = closed[identity(sharding)]
        for op in ops_named(program, MANUAL_COMPUTATION):
            _close_attributes(op)


@lru_cache(maxsize=8192)
def _close(sharding: TensorSharding) -> TensorSharding:
    """Return a sharding closed; an empty dimension loses its priority, which a closed one may not have.

    Equal ones of all programs become the same object, which knows its hash and its text.
    """
    dims = tuple([CLOSED if not dim.axes else closed_dimension(dim) for dim in sharding.dim_shardings])
    return TensorSharding(sharding.mesh, dims, (), sharding.unreduced_axes, sharding.reduction_op)


def _close_attributes(op: Op) -> None:
    """Close the in and out shardings of a manual computation, which the table of shardings does not hold."""
    for name in _SHARDINGS:
        shardings = op.attributes.get(name)
        if isinstance(shardings, TensorShardingPerValue):
            op.attributes[name] = TensorShardingPerValue(tuple(_close(item) for item in shardings.shardings))

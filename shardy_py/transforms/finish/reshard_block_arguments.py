"""Give the collectives of block arguments an operand whose sharding the reference finds."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.data_flow import shardable_value
from shardy_py.ir.graph.op_names import FUNCTION, RESHARD
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import ops_among
from shardy_py.ir.interfaces.ops import OpSemantics, UpstreamDataFlow
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import NoFields

_OF_COLLECTIVES = "out_sharding"
"""The attribute in which collectives have the sharding of their result."""


class ReshardBlockArgumentsPass(NoFields):
    """Put a reshard between the argument of a region and its collectives, to the sharding that it has already.

    A collective is verified against the sharding of its operand. The reference does not find that of a block argument
    if it does not know the data flow of the op; the result of the reshard has it. The same holds for a result of such
    an op that is on the edge of a block argument.
    """

    name: ClassVar[str] = "reshard-block-arguments"

    def run(self, program: Program, context: PassContext) -> None:
        """Put the reshards into all functions, one for each argument."""
        resharded: dict[int, Value] = {}
        semantics = context.semantics
        for op in ops_among(program, [name for name in program.op_names if name.startswith("sdy.")]):
            if semantics.get_sharding_attribute(op) != _OF_COLLECTIVES:
                continue
            value = op.operands[0]
            sharding = _sharding_unknown_upstream(value, program, semantics)
            if sharding is not None:
                if value.id not in resharded:
                    resharded[value.id] = _reshard(program, value, sharding)
                op.set_operand(0, resharded[value.id])


def _sharding_unknown_upstream(value: Value, program: Program, semantics: OpSemantics) -> TensorSharding | None:
    """Return the sharding of a value that the reference does not find; None where it does, or there is none."""
    owner = value.owning_op
    if owner.name == FUNCTION or semantics.has_trait(owner, UpstreamDataFlow):
        return None
    carrier = shardable_value(value, semantics)
    if carrier is None or (carrier is value and not value.is_block_argument):
        return None
    return program.shardings.get(carrier.id)


def _reshard(program: Program, value: Value, sharding: TensorSharding) -> Value:
    reshard = Op(program, RESHARD, [value], [value.type], {"sharding": sharding})
    value.insert_after(reshard)
    program.shardings[reshard.results[0].id] = sharding
    return reshard.results[0]

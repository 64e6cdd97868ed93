"""Calls put in place, so that the passes on communication see what a function does with each of its arguments."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.data_flow import shardable_value
from shardy_py.ir.graph.op_names import RESHARD
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.communication.explicit_steps import erase_unused
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.finish.reshard_to_collectives import ReshardToCollectivesPass
from shardy_py.transforms.prepare.inline_calls import inline_explicit_calls
from shardy_py.values import NoFields


class InlineExplicitCallsPass(NoFields):
    """Put the bodies of functions in the places of their calls, those in the bodies of reductions, too.

    A value that a function takes or returns under another sharding is resharded there. What nothing uses is erased.
    """

    name: ClassVar[str] = "inline-explicit-calls"

    def run(self, program: Program, context: PassContext) -> None:
        """Inline the calls of all functions.

        Raises:
            UnsupportedError: functions are recursive.
        """
        resharded: list[Op] = []

        def at_border(call: Op, value: Value, border_sharding: TensorSharding | None) -> Value:
            carrier = shardable_value(value, context.semantics)
            sharding = program.sharding(value if carrier is None else carrier)
            if _is_same(sharding, border_sharding):
                return value
            model = border_sharding or sharding
            assert model is not None
            assert call.parent is not None
            target = border_sharding or TensorSharding.fully_closed(model.mesh, model.rank)
            op = Op(program, RESHARD, [value], [value.type], {"sharding": target})
            call.parent.insert_before(call, op)
            program.shardings[op.result.id] = target
            resharded.append(op)
            return op.result

        inline_explicit_calls(program, at_border)
        if resharded:
            ReshardToCollectivesPass().run(program, context)
        erase_unused(program, context.semantics)


def _is_same(first: TensorSharding | None, second: TensorSharding | None) -> bool:
    if first is None or second is None:
        return all(item is None or (item.is_fully_replicated and not item.unreduced_axes) for item in (first, second))
    return first.is_equivalent(second)

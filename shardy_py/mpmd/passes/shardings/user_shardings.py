"""Shardings that a user gave, kept where fragments and transfers meet arguments and results.

Mirrors mpmd/transforms/sharding_propagation/enforce_user_shardings.cc and populate_unreduced_out_sharding.cc.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import ClassVar

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.op_names import CONSTRAINT
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of, return_of
from shardy_py.mpmd.dialect.fragments import body_of, is_fragment, mpmd_functions, terminator_of
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.finish.input_output_shardings import without_sub_axes
from shardy_py.values import NoFields


class PopulateUnreducedOutShardingPass(NoFields):
    """Give a result of a fragment the sharding of a constraint with unreduced axes that it is."""

    name: ClassVar[str] = "mpmd-populate-unreduced-out-sharding"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the fragments of all functions."""
        table = program.shardings
        for function in mpmd_functions(program):
            for op in filter(is_fragment, function.walk()):
                sharding_of = [self._constraint(value) for value in terminator_of(op).operands]
                for value, sharding in zip(op.results, sharding_of, strict=True):
                    if sharding is not None:
                        table[value.id] = sharding
                    elif any(sharding_of) and value.id not in table:
                        self._take_from_argument(op, value)

    def _constraint(self, value: Value) -> TensorSharding | None:
        op = value.defining_op
        sharding = op.program.shardings.get(value.id) if op is not None and op.name == CONSTRAINT else None
        return sharding if sharding is not None and sharding.unreduced_axes else None

    def _take_from_argument(self, op: Op, value: Value) -> None:
        """Close a result of no sharding, as its neighbour has one."""
        table = op.program.shardings
        known = next((table[item.id] for item in body_of(op).arguments if item.id in table), None)
        if known is not None:
            table[value.id] = TensorSharding.fully_closed(known.mesh, len(value.shape))


class EnforceUserShardingsPass(NoFields):
    """Let fragments and transfers next to arguments and results of a function have the shardings of these.

    Parts of axes are cut off, as JAX has no word for them.
    """

    name: ClassVar[str] = "mpmd-enforce-user-shardings"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the arguments, then the results of each function."""
        table = program.shardings
        for function in mpmd_functions(program):
            for op in filter(is_fragment, function.walk()):
                complete_shardings(body_of(op).arguments, table)
            for value in block_of(function).arguments:
                sharding = self._cut_off_sub_axes(function, value, f"arg {value.index}", function, context)
                if sharding is not None:
                    enforce_on_users(value, sharding, completes=False)
            terminator = return_of(function)
            for result, value in zip(function.function_results, terminator.operands, strict=True):
                sharding = self._cut_off_sub_axes(function, result, f"result {result.index}", terminator, context)
                if sharding is not None and not value.is_block_argument:
                    table[value.id] = sharding
                    enforce_on_users(value, sharding)

    def _cut_off_sub_axes(
        self, function: Op, value: Value, name: str, reported: Op, context: PassContext
    ) -> TensorSharding | None:
        """Return the sharding of an argument or result of a function without parts of axes, and set it."""
        table = function.program.shardings
        sharding = table.get(value.id)
        if sharding is None or not any(axis.sub_axis for axis in sharding.axes()):
            return sharding
        message, hint = f"Sub-axes sharding found for {name}", f"it is sharded as {sharding}; sub-axes are cut off"
        context.warnings.append(Diagnostic("sub-axes", message, reported.location, reported.name, hint))
        table[value.id] = sharding.map_dims(without_sub_axes)
        return table[value.id]


def enforce_on_users(value: Value, sharding: TensorSharding, *, completes: bool = True) -> None:
    """Give the arguments of the fragments that use a value its sharding.

    Args:
        value: The value.
        sharding: The sharding.
        completes: Whether the other arguments of a fragment, where none has a sharding yet, get open ones from then
            on. As in the reference, an argument of the program leaves them without a sharding.
    """
    for user, number in value.uses:
        if is_fragment(user):
            table, arguments = user.program.shardings, body_of(user).arguments
            is_first = not any(argument.id in table for argument in arguments)
            table[arguments[number].id] = sharding
            if is_first and completes:
                complete_shardings(arguments, table)


def complete_shardings(values: Sequence[Value], table: MutableMapping[int, TensorSharding]) -> None:
    """Give arguments, or results, of a fragment that have no sharding an open one, where others of it have one.

    As in the reference, propagation gives a sharding to all of them, or to none.
    """
    known = next((table[value.id] for value in values if value.id in table), None)
    if known is None:
        return
    for value in values:
        table.setdefault(value.id, TensorSharding.fully_open(known.mesh, len(value.shape)))

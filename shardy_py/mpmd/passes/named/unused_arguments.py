"""Arguments of microbatches that pass through.

Mirrors mpmd/transforms/common/call_rewrites.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import (
    attributes_at,
    block_of,
    calls_of,
    replace_call,
    return_of,
    set_returned,
    with_signature,
)
from shardy_py.mpmd.dialect.op_names import CALL
from shardy_py.mpmd.passes.named.nameless_clones import is_negligible
from shardy_py.values import NoFields


class EraseUnusedCalleeBlockArgumentsPass(NoFields):
    """Remove the arguments that a called function only returns, and replace these results by the operands of calls."""

    name: ClassVar[str] = "mpmd-erase-unused-callee-block-arguments"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit all functions that ``mpmd.call`` calls."""
        functions = program.functions
        for name, calls in calls_of(program).items():
            function = functions.get(name)
            if function is not None and all(call.name == CALL for call in calls):
                _erase_arguments(function, calls)


class SinkNegligibleOpsIntoCallOpPass(NoFields):
    """Make what all calls pass from one op without operands in the function itself, and drop the argument."""

    name: ClassVar[str] = "mpmd-sink-negligible-ops-into-call-op"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit all functions that ``mpmd.call`` calls."""
        functions = program.functions
        for name, calls in calls_of(program).items():
            function = functions.get(name)
            if function is not None and all(call.name == CALL for call in calls):
                _sink(function, calls, context.semantics)


def _erase_arguments(function: Op, calls: Sequence[Op]) -> None:
    block = block_of(function)
    unused = {value.index for value in block.arguments if all(user.name == RETURN for user, _ in value.uses)}
    if not unused:
        return
    returned = list(return_of(function).operands)
    passed = {
        number: value.index for number, value in enumerate(returned) if value.owner is block and value.index in unused
    }
    for call in calls:
        for number, index in passed.items():
            call.results[number].replace_all_uses_with(call.operands[index])
    kept_results = [number for number in range(len(returned)) if number not in passed]
    if not kept_results and block.first is block.last and function.attributes.get("sym_visibility") == "private":
        # Nothing is left to call.
        for op in (*calls, function):
            op.erase()
        return
    set_returned(function, [returned[number] for number in kept_results])
    kept_arguments = [value.index for value in block.arguments if value.index not in unused]
    _restrict(function, calls, kept_arguments, kept_results, {})


def _sink(function: Op, calls: Sequence[Op], semantics: OpSemantics) -> None:
    block = block_of(function)
    sunk: dict[int, Op] = {}
    for argument in block.arguments:
        producers = {op.id: op for call in calls if (op := call.operands[argument.index].defining_op) is not None}
        is_block_argument = any(call.operands[argument.index].defining_op is None for call in calls)
        if len(producers) == 1 and not is_block_argument:
            producer = next(iter(producers.values()))
            if is_negligible(producer, semantics):
                sunk[argument.index] = producer
    if sunk:
        kept_arguments = [value.index for value in block.arguments if value.index not in sunk]
        _restrict(function, calls, kept_arguments, range(len(function.function_results)), sunk)


def _restrict(
    function: Op, calls: Sequence[Op], kept_arguments: Sequence[int], kept_results: Sequence[int], sunk: dict[int, Op]
) -> None:
    """Give a function some of its arguments and results only, and its calls the operands that go with them."""
    block = block_of(function)
    in_attributes = attributes_at(function, "arg_attrs", len(block.arguments))
    out_attributes = attributes_at(function, "res_attrs", len(function.function_results))
    new, old_arguments = with_signature(
        function,
        [block.arguments[number].type for number in kept_arguments],
        [function.function_results[number].type for number in kept_results],
        argument_attributes=[in_attributes[number] for number in kept_arguments],
        result_attributes=[out_attributes[number] for number in kept_results],
    )
    anchor: Op | None = None
    for number, producer in sunk.items():
        anchor = block_of(new).insert_after(anchor, clone_op(producer, {}))
        old_arguments[number].replace_all_uses_with(anchor.results[0])
    for number, value in zip(kept_arguments, block_of(new).arguments, strict=True):
        old_arguments[number].replace_all_uses_with(value)
    function.erase()
    for call in calls:
        operands = [call.operands[number] for number in kept_arguments]
        new_call = replace_call(call, operands, [call.results[number].type for number in kept_results])
        for number, value in zip(kept_results, new_call.results, strict=True):
            call.results[number].replace_all_uses_with(value)
        call.erase()
    for producer in sunk.values():
        if producer.parent is not None and not producer.results[0].uses:
            producer.erase()

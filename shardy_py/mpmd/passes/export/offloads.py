"""Memory kinds of the arguments and results of fragments, and their agreement with those of the function.

Mirrors mpmd/transforms/export/mark_offloaded_input_output.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import attributes_at, block_of, return_of
from shardy_py.mpmd.dialect.fragments import is_fragment, mpmd_functions
from shardy_py.mpmd.dialect.types import DEVICE, PINNED_HOST
from shardy_py.mpmd.passes.export.memory import (
    ARGUMENTS,
    MEMORY_KIND,
    RESULTS,
    argument_attributes,
    result_attributes,
    set_fragment_attributes,
)
from shardy_py.mpmd.passes.export.placements import Placements
from shardy_py.values import NoFields

_HINT = 'give both the attribute mhlo.memory_kind = "pinned_host", or neither'


class MarkOffloadedInputOutputPass(NoFields):
    """Mark the arguments and results of fragments that are in the memory of the host.

    A program that says otherwise for an argument or result of its own is refused.
    """

    name: ClassVar[str] = "mpmd-mark-offloaded-input-output"

    def run(self, program: Program, context: PassContext) -> None:
        """Mark the fragments of all functions.

        Raises:
            VerificationError: memory kinds differ.
        """
        placements = Placements(context.semantics)
        problems: list[Diagnostic] = []
        for function in mpmd_functions(program):
            for op in block_of(function).ops:
                if is_fragment(op):
                    _mark(op, placements)
            problems += [*_argument_problems(function), *_result_problems(function)]
        if problems:
            raise VerificationError(*problems)


def _mark(op: Op, placements: Placements) -> None:
    arguments, results = argument_attributes(op), result_attributes(op)
    for number in placements.host_arguments(op):
        arguments[number][MEMORY_KIND] = PINNED_HOST
    for number in placements.host_results(op):
        results[number][MEMORY_KIND] = PINNED_HOST
    set_fragment_attributes(op, arguments, results)


def _kind(attributes: dict[str, Any]) -> str:
    """Return a memory kind; that of the device is none."""
    return "" if attributes.get(MEMORY_KIND, DEVICE) == DEVICE else str(attributes[MEMORY_KIND])


def _show(attributes: dict[str, Any]) -> str:
    return f'"{attributes[MEMORY_KIND]}"' if MEMORY_KIND in attributes else "<<NULL ATTRIBUTE>>"


def _argument_problems(function: Op) -> Iterator[Diagnostic]:
    arguments = block_of(function).arguments
    returned = attributes_at(function, RESULTS, len(return_of(function).operands))
    for value, item in zip(arguments, attributes_at(function, ARGUMENTS, len(arguments)), strict=True):
        kinds = [_kind_at(user, number, returned, function) for user, number in value.uses]
        other = next((kind for kind in kinds if _kind(kind) != _kind(kinds[0])), None)
        message = ""
        if other is not None:
            shown = sorted((_show(kinds[0]), _show(other)))
            message = f"Memory kind mismatch between users of arg {value.index}: {shown[1]} vs {shown[0]}"
        elif kinds and _kind(kinds[0]) != _kind(item):
            message = f"Memory kind mismatch between arg {value.index} and users: {_show(item)} vs {_show(kinds[0])}"
        if message:
            yield Diagnostic("memory-kind-mismatch", message, function.location, function.name, _HINT)


def _kind_at(user: Op, number: int, returned: list[dict[str, Any]], function: Op) -> dict[str, Any]:
    """Return the attributes of a use; a transfer has none."""
    if is_fragment(user):
        return argument_attributes(user)[number]
    return returned[number] if user is return_of(function) else {}


def _result_problems(function: Op) -> Iterator[Diagnostic]:
    terminator = return_of(function)
    items = attributes_at(function, RESULTS, len(terminator.operands))
    arguments = attributes_at(function, ARGUMENTS, len(block_of(function).arguments))
    for number, (value, item) in enumerate(zip(terminator.operands, items, strict=True)):
        source = _defining_attributes(value, arguments)
        if _kind(source) != _kind(item):
            message = f"Memory kind mismatch between result {number} and defining op: {_show(item)} vs {_show(source)}"
            yield Diagnostic("memory-kind-mismatch", message, terminator.location, terminator.name, _HINT)


def _defining_attributes(value: Value, arguments: list[dict[str, Any]]) -> dict[str, Any]:
    op = value.defining_op
    if op is None:
        return arguments[value.index]
    return result_attributes(op)[value.index] if is_fragment(op) else {}

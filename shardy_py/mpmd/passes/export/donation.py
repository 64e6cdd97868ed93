"""Buffers that fragments may overwrite: at their last use, if the user gave them away or nobody else has them.

Mirrors mpmd/transforms/export/mark_aliasing_and_donation.cc.
"""

from __future__ import annotations

from typing import Any, ClassVar

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of, return_of
from shardy_py.mpmd.dialect.fragments import is_fragment, mpmd_functions, number_of
from shardy_py.mpmd.dialect.op_names import ALIASING_OUTPUT, TRANSFER
from shardy_py.mpmd.passes.export.memory import (
    ARGUMENTS,
    DONOR,
    LAYOUT,
    argument_attributes,
    function_argument_attributes,
    is_on_host,
    result_attributes,
)
from shardy_py.mpmd.passes.fragments.merging import Positions
from shardy_py.values import NoFields


class MarkAliasingAndDonationPass(NoFields):
    """Mark the arguments of fragments whose buffers a result takes over, and those that are free afterwards.

    An argument of the program counts only if the user donated it; what a fragment or transfer makes always does.
    """

    name: ClassVar[str] = "mpmd-mark-aliasing-and-donation"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the fragments of all functions."""
        for function in mpmd_functions(program):
            marker = _Marker(function)
            for op in block_of(function).ops:
                if is_fragment(op):
                    marker.mark(op)


class _Marker:
    """Marks the arguments of the fragments of one function."""

    def __init__(self, function: Op) -> None:
        self._arguments = function_argument_attributes(function)
        self._positions = Positions(block_of(function))
        self._returned = return_of(function).operands

    def mark(self, op: Op) -> None:
        """Mark the arguments of a fragment."""
        arguments, results = argument_attributes(op), result_attributes(op)
        aliased: set[int] = set()
        is_changed = False
        for number, value in enumerate(op.operands):
            if not self._may_be_donated(op, value) or is_on_host(value, arguments[number]):
                continue
            target = self._target(op, number, arguments[number], results, aliased)
            if target is None:
                arguments[number][DONOR] = True
            else:
                aliased.add(target)
                arguments[number][ALIASING_OUTPUT] = RawAttribute(f"{target} : i32")
            is_changed = True
        if is_changed:
            op.attributes[ARGUMENTS] = tuple(arguments)

    def _may_be_donated(self, op: Op, value: Value) -> bool:
        """Return whether an operand may be donated: nothing uses it later, and an argument is donated by the user."""
        users = [user for user, _ in value.uses]
        if len([user for user in users if user is op]) > 1 or any(user.name == TRANSFER for user in users):
            return False
        if self._positions.last(users) is not op:
            return False
        attributes = self._arguments.get(value.id)
        return attributes is None or DONOR in attributes or ALIASING_OUTPUT in attributes

    def _target(
        self, op: Op, number: int, attributes: dict[str, Any], results: list[dict[str, Any]], aliased: set[int]
    ) -> int | None:
        """Return the number of the result that aliases an operand: the one that the user named, or the first."""
        fitting = [
            result.index
            for result, item in zip(op.results, results, strict=True)
            if result.index not in aliased
            and result.type == op.operands[number].type
            and not is_on_host(result, item)
            and item.get(LAYOUT) == attributes.get(LAYOUT)
        ]
        named_result = self._named_by_user(op, op.operands[number])
        return named_result if named_result in fitting else next(iter(fitting), None)

    def _named_by_user(self, op: Op, value: Value) -> int | None:
        """Return the number of the result of an op that becomes the output that the user aliased with an argument."""
        output = number_of(self._arguments.get(value.id, {}), ALIASING_OUTPUT)
        if output is None or not 0 <= output < len(self._returned):
            return None
        returned = self._returned[output]
        while returned.defining_op is not op:
            producer = returned.defining_op
            if producer is None or len(producer.operands) != 1:
                return None
            returned = producer.operands[0]
        return returned.index

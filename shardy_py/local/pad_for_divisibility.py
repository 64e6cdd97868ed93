"""Pad the dimensions of a global program that do not divide into equal parts.

Mirrors pad_for_divisibility.cc::PadForDivisibilityPass, but for masks: reductions have them here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import ClassVar

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.divisible import Padder, padded_type
from shardy_py.local.local_ops import find_local_ops
from shardy_py.values import NoFields


class PadForDivisibilityPass(NoFields):
    """Pad each value to a multiple of the number of its parts, and cut it where it is whole again.

    All communication must be explicit, as collectives, before. Inputs and outputs must divide; the conversion to local
    programs pads those, too, and does so without this pass.
    """

    name: ClassVar[str] = "sdy-pad-for-divisibility"

    def run(self, program: Program, context: PassContext) -> None:
        """Pad the values of a program.

        Raises:
            UnsupportedError: an input or an output does not divide, or an op has no padded form.
        """
        for function in program.functions.values():
            _check(program, function, entry_arguments(function), "argument")
            _check(program, function, function.function_results, "result")
        if not any(_is_uneven(program, value) for op in all_ops(program) for value in op.results):
            return
        ops = find_local_ops(program, context.semantics)
        padder = Padder(program, context.semantics, ops, count(1).__next__)
        program_ops = list(all_ops(program))
        for op in program_ops:
            padder.read(op)
        for op in program_ops:
            padder.pad(op)


def _check(program: Program, function: Op, values: Sequence[Value], kind: str) -> None:
    """Check that the arguments or results of a function divide.

    Raises:
        UnsupportedError: one does not.
    """
    for number, value in enumerate(values):
        if _is_uneven(program, value):
            message = f"{kind} #{number} has a non-divisible sharding"
            hint = "run sdy-update-non-divisible-input-output-shardings first, or take Result.local(), which pads it"
            raise UnsupportedError(Diagnostic("not-divisible", message, function.location, function.name, hint))


def _is_uneven(program: Program, value: Value) -> bool:
    """Return whether a value has a dimension that does not divide into equal parts."""
    shape = static_shape(value.type)
    return shape is not None and padded_type(program, value) != value.type

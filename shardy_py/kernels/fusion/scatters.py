"""Scatters that kernels compute: in the form to which XLA simplifies them, in the memory of their operand."""

from __future__ import annotations

import re

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op
from shardy_py.kernels.fusion.fusion import Fusion, shape_of

_TARGETS = re.compile(r"scatter_dims_to_operand_dims = \[([^\]]*)\]")


def scatter_of(fusion: Fusion) -> Op:
    """Return the scatter that is the root of a fusion.

    Raises:
        UnsupportedError: its operand is no parameter, its updates or indices are computed from the operand, or it has
            not the simple form: indices (n, k), updates of n windows with as many dimensions as the operand, whose
            first k are those that indices shift.
    """
    op = fusion.producer(fusion.roots[0])
    assert op is not None
    problem = form_problem(op)
    if not problem and op.operands[0].id not in fusion.parameter_ids:
        problem = "a kernel updates memory that it is given, its operand is computed"
    if problem:
        hint = "give it indices (n, k) and updates (n, windows), and the operand as a parameter of the kernel"
        raise UnsupportedError(Diagnostic("scatter-form", problem, op.location, op.name, hint))
    if _reads_operand(fusion, op):
        message = "the operand is updated in its own memory, but its updates or indices are computed from it"
        hint = "compute these in a kernel before this one: 'shardy emit FILE --list' shows pieces that are cut so"
        raise UnsupportedError(Diagnostic("scatter-reads-operand", message, op.location, op.name, hint))
    return op


def _reads_operand(fusion: Fusion, scatter: Op) -> bool:
    """Return whether updates or indices of a scatter are computed from its operand.

    No order is known between a thread that reads an element and others that update it: windows may overlap.
    """
    pending, seen = list(scatter.operands[1:]), set[int]()
    while pending:
        value = pending.pop()
        if value.id == scatter.operands[0].id:
            return True
        producer = fusion.producer(value)
        if producer is not None and producer.id not in seen:
            seen.add(producer.id)
            pending += producer.operands
    return False


def form_problem(op: Op) -> str:
    """Return what is not simple about the form of a scatter; nothing where it is."""
    if len(op.operands) != 3 or len(op.results) != 1:
        return "a kernel scatters into one operand only"
    if op.operands[0].id in (value.id for value in op.operands[1:]):
        return "a kernel updates the operand in its own memory, it cannot be the updates or indices as well"
    operand, indices, updates = (shape_of(value) for value in op.operands)
    if len(indices) != 2 or len(updates) != len(operand) + 1 or indices[0] != updates[0]:
        return "a kernel takes scatters that are simplified"
    found = _TARGETS.search(str(op.attributes.get("scatter_dimension_numbers", "")))
    if found is not None and found[1] != ", ".join(str(number) for number in range(indices[1])):
        return "a kernel shifts the first dimensions of windows, in their order"
    return ""


def has_unique_indices(op: Op) -> bool:
    """Return whether no two windows of a scatter overlap."""
    return bool(op.attributes.get("unique_indices"))

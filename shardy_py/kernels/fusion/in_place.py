"""Updates that write into the memory of their operand: dynamic update slices and scatters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.fusion.element_reads import ElementReads, Read, UnknownReadsError
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of, shape_of


def in_place_updates(fusion: Fusion) -> tuple[Op, ...]:
    """Return the dynamic updates that the roots are, if all can be made in place; otherwise none.

    Their updates have one shape, over which the threads are spread, and none reads the memory that another one writes.
    """
    found = tuple(_in_place_update(fusion, root) for root in fusion.roots)
    updates = tuple(op for op in found if op is not None)
    if len(updates) < len(found) or len({shape_of(op.operands[1]) for op in updates}) > 1:
        return ()
    sources = [updated_parameter(fusion, op).id for op in updates]
    if len(set(sources)) < len(sources):
        return ()
    others = ((op, source) for op in updates for source in sources if source != updated_parameter(fusion, op).id)
    return () if any(_may_read(fusion, op, source) for op, source in others) else updates


def updated_parameter(fusion: Fusion, update: Op) -> Value:
    """Return the value that an op updates, below bitcasts: where it is a parameter, its buffer can be written."""
    source = update.operands[0]
    while (producer := fusion.producer(source)) is not None and fusion.facts[producer.id].is_bitcast:
        source = producer.operands[0]
    return source


def _in_place_update(fusion: Fusion, root: Value) -> Op | None:
    """Return the dynamic update that a root is, if it can write into the buffer of its operand; otherwise None.

    The operand has to be a parameter of which each thread reads at most the element that it writes itself.
    """
    op = fusion.producer(root)
    while op is not None and fusion.facts[op.id].is_bitcast:
        op = fusion.producer(op.operands[0])
    if op is None or not fusion.facts[op.id].is_dynamic_update:
        return None
    source = updated_parameter(fusion, op)
    if source.id not in fusion.parameter_ids or element_type_of(source) != element_type_of(root):
        return None
    return op if _reads_only_what_it_writes(fusion, op, source.id) else None


def _reads_only_what_it_writes(fusion: Fusion, update: Op, parameter: int) -> bool:
    """Return whether it is proven that what a thread reads of a parameter is the element that it overwrites.

    Of the start of a slice known at run time it counts which value it is: ``x[i:i+5]`` may be updated by what is
    computed from ``x[i:i+5]``, but not from ``x[j:j+5]``.
    """
    reads = ElementReads(fusion, shape_of(update.operands[1]))
    try:
        written = reads.written_by(update, updated_parameter(fusion, update))
        found = list(_parameter_reads(reads, update))
    except UnknownReadsError:
        return False
    return written is not None and all(read.index == written for read in found if read.parameter == parameter)


def _may_read(fusion: Fusion, update: Op, parameter: int) -> bool:
    """Return whether the work for an element of an update may read a parameter."""
    reads = ElementReads(fusion, shape_of(update.operands[1]))
    try:
        return any(read.parameter == parameter for read in _parameter_reads(reads, update))
    except UnknownReadsError:
        return True


def _parameter_reads(reads: ElementReads, update: Op) -> Iterator[Read]:
    """Yield what an element of an update, and where it goes, read of parameters."""
    yield from reads.of(update.operands[1], reads.start)
    for start in update.operands[2:]:
        yield from reads.of(start, ())


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

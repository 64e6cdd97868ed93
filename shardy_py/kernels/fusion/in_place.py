"""Updates that write into the memory of their operand: dynamic update slices and scatters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.fusion.element_reads import ElementReads, Read, UnknownReadsError
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.kernels.fusion.scatter_form import ScatterForm, scatter_form


def in_place_updates(fusion: Fusion) -> tuple[Op, ...]:
    """Return the dynamic updates that define the roots if all can be made in place, else none.

    Their updates have one shape, over which the threads are spread, and none reads the memory that another one writes.
    """
    root_updates = tuple(_in_place_update(fusion, root) for root in fusion.roots)
    updates = tuple(op for op in root_updates if op is not None)
    if len(updates) < len(root_updates) or len({shape_of(op.operands[1]) for op in updates}) > 1:
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
    """Return whether a thread provably reads only the element of a parameter that it overwrites.

    Slices that start at a run-time value are the same only if the value is: ``x[i:i+5]`` may be updated by what is
    computed from ``x[i:i+5]``, but not from ``x[j:j+5]``.
    """
    reads = ElementReads(fusion, shape_of(update.operands[1]))
    try:
        written = reads.written_by(update, updated_parameter(fusion, update))
        all_reads = list(_parameter_reads(reads, update))
    except UnknownReadsError:
        return False
    return written is not None and all(read.index == written for read in all_reads if read.parameter == parameter)


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


def scatter_of(fusion: Fusion) -> Op:
    """Return the scatter whose results are the roots of a fusion.

    Raises:
        UnsupportedError: an operand of it is not a parameter, its updates or indices are computed from one, the roots
            are not results of one scatter, or its attributes do not fit its operands.
    """
    op = fusion.producer(fusion.roots[0])
    assert op is not None
    problem = form_problem(op)
    operands = op.operands[: len(op.results)]
    if not problem and any(fusion.producer(root) is not op for root in fusion.roots):
        problem = "a kernel that updates memory by a scatter has no other results"
    if not problem and any(value.id not in fusion.parameter_ids for value in operands):
        problem = "a kernel updates memory that it is given, its operand is computed"
    if problem:
        hint = "compute the operand in a kernel before this one: 'shardy emit FILE --list' shows pieces that are cut so"
        raise UnsupportedError(Diagnostic("scatter-form", problem, op.location, op.name, hint))
    return op


def form_of(fusion: Fusion) -> ScatterForm:
    """Return the form of the scatter that is the root of a fusion.

    Raises:
        UnsupportedError: as for `scatter_of`.
    """
    form = scatter_form(scatter_of(fusion))
    assert form is not None
    return form


_FIRST_COPY = 1 << 61


def with_operand_copies(fusion: Fusion) -> Fusion:
    """Return a fusion whose scatter updates copies of the operands that its updates or indices are computed from.

    A copy is a parameter behind the others. No order is known between a thread that reads an element and others that
    update it: windows may overlap.

    Args:
        fusion: The fusion; one whose root is not a scatter stays as it is.
    """
    op = fusion.producer(fusion.roots[0])
    if op is None or not fusion.facts[op.id].is_scatter or form_problem(op):
        return fusion
    numbers = fusion.parameter_numbers
    operands = [value for value in op.operands[: len(op.results)] if value.id in numbers]
    read = _read_by(fusion, op.operands[len(op.results) :])
    copied = [value for value in operands if value.id in read]
    copies = [Value(_FIRST_COPY + value.id, value.type, value.owner, value.index) for value in copied]
    if not copies:
        return fusion
    layouts = {copy.id: fusion.layout_of(value) for copy, value in zip(copies, copied, strict=True)}
    return evolve(
        fusion,
        parameters=(*fusion.parameters, *copies),
        layouts={**fusion.layouts, **layouts},
        copied=tuple(numbers[value.id] for value in copied),
    )


def _read_by(fusion: Fusion, values: Iterable[Value]) -> set[int]:
    """Return the ids of all values that some values are computed from, these among them."""
    pending, seen = list(values), set[int]()
    while pending:
        value = pending.pop()
        if value.id in seen:
            continue
        seen.add(value.id)
        producer = fusion.producer(value)
        pending += producer.operands if producer is not None else ()
    return seen


def form_problem(op: Op) -> str:
    """Return why no kernel takes a scatter in its form; nothing where one does."""
    if scatter_form(op) is None:
        return "its dimension numbers do not fit its operands"
    updated = [value.id for value in op.operands[: len(op.results)]]
    if len(set(updated)) < len(updated):
        return "a kernel updates each operand in its own memory, one cannot be another one as well"
    if len(updated) > 1 and not has_unique_indices(op) and not has_separate_results(op):
        return "a kernel updates several operands at once only where no two windows overlap, or each by itself"
    return ""


def has_separate_results(op: Op) -> bool:
    """Return whether the region of a scatter combines each operand with its own updates alone."""
    (block,) = op.regions[0].blocks
    count = len(op.results)
    arguments = {value.id: number % count for number, value in enumerate(block.arguments)}
    for number, value in enumerate(block.terminator.operands if block.terminator else ()):
        pending = [value]
        while pending:
            current = pending.pop()
            if arguments.get(current.id, number) != number:
                return False
            pending += current.defining_op.operands if current.defining_op is not None else ()
    return True


def has_unique_indices(op: Op) -> bool:
    """Return whether no two windows of a scatter overlap."""
    return bool(op.attributes.get("unique_indices"))

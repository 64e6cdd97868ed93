"""Updates that write into the memory of their operand: dynamic update slices and scatters."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.fusion.body_indices import BodyIndices
from shardy_py.kernels.fusion.element_reads import reads_only_what_it_writes
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.kernels.fusion.scatter_form import ScatterForm, scatter_form


def in_place_updates(fusion: Fusion) -> tuple[Op, ...]:
    """Return the dynamic updates that define the roots if all can be made in place, else none.

    Their updates have one shape, over which the threads are spread. Each writes into a parameter of its own, and reads
    at most the element that it writes itself of the memory that is written.
    """
    updates = tuple(op for root in fusion.roots if (op := _parameter_update(fusion, root)) is not None)
    if not updates or len(updates) < len(fusion.roots) or len({shape_of(op.operands[1]) for op in updates}) > 1:
        return ()
    sources = [updated_parameter(fusion, op) for op in updates]
    ids = {source.id for source in sources}
    if len(ids) < len(sources):
        return ()
    indices = BodyIndices(fusion, shape_of(updates[0].operands[1]))
    pairs = zip(updates, sources, strict=True)
    return updates if all(reads_only_what_it_writes(indices, op, source, ids) for op, source in pairs) else ()


def updated_parameter(fusion: Fusion, update: Op) -> Value:
    """Return the value that an op updates, below bitcasts: where it is a parameter, its buffer can be written."""
    source = update.operands[0]
    while (producer := fusion.producer(source)) is not None and fusion.facts[producer.id].is_bitcast:
        source = producer.operands[0]
    return source


def _parameter_update(fusion: Fusion, root: Value) -> Op | None:
    """Return the dynamic update of a parameter, of elements of its type, that a root is; otherwise None."""
    op = fusion.producer(root)
    while op is not None and fusion.facts[op.id].is_bitcast:
        op = fusion.producer(op.operands[0])
    if op is None or not fusion.facts[op.id].is_dynamic_update:
        return None
    source = updated_parameter(fusion, op)
    is_parameter = source.id in fusion.parameter_ids and element_type_of(source) == element_type_of(root)
    return op if is_parameter else None


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

"""Updates that write into the memory of their operand: slices whose memory nothing else reads, copies for scatters."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.fusion.body_indices import BodyIndices
from shardy_py.kernels.fusion.element_reads import reads_only_what_it_writes
from shardy_py.kernels.fusion.fusion import Fusion, element_type_of

_FIRST_COPY = 1 << 61


def in_place_updates(fusion: Fusion) -> tuple[Op, ...]:
    """Return the dynamic updates that define the roots if all can be made in place, else none.

    Their updates have one shape, over which the threads are spread. Each writes into a parameter of its own, and reads
    at most the element that it writes itself of the memory that is written.
    """
    updates = tuple(op for root in fusion.roots if (op := _parameter_update(fusion, root)) is not None)
    shapes = [fusion.facts[op.id].operand_shapes[1] for op in updates]
    if not updates or len(updates) < len(fusion.roots) or len(set(shapes)) > 1:
        return ()
    sources = [updated_parameter(fusion, op) for op in updates]
    ids = {source.id for source in sources}
    if len(ids) < len(sources):
        return ()
    indices = BodyIndices(fusion, shapes[0])
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


def with_operand_copies(fusion: Fusion, scatter: Op) -> Fusion:
    """Return a fusion whose scatter updates copies of the operands that its updates or indices are computed from.

    A copy is a parameter behind the others. No order is known between a thread that reads an element and others that
    update it: windows may overlap.

    Args:
        fusion: The fusion.
        scatter: The scatter; its operands are parameters.
    """
    count = len(scatter.results)
    read = _read_by(fusion, scatter.operands[count:])
    copied = [value for value in scatter.operands[:count] if value.id in read]
    if not copied:
        return fusion
    copies = {value.id: Value(_FIRST_COPY + value.id, value.type, value.owner, value.index) for value in copied}
    layouts = {copies[number].id: layout for number, layout in fusion.layouts.items() if number in copies}
    return evolve(
        fusion,
        parameters=(*fusion.parameters, *copies.values()),
        layouts={**fusion.layouts, **layouts},
        copied=tuple(fusion.parameter_numbers[number] for number in copies),
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

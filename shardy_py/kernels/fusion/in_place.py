"""Dynamic updates that write into the memory of the parameter that they update."""

from __future__ import annotations

from collections.abc import Iterator

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
    while (producer := fusion.producer(source)) is not None and fusion.is_bitcast(producer):
        source = producer.operands[0]
    return source


def _in_place_update(fusion: Fusion, root: Value) -> Op | None:
    """Return the dynamic update that a root is, if it can write into the buffer of its operand; otherwise None.

    The operand has to be a parameter of which each thread reads at most the element that it writes itself.
    """
    op = fusion.producer(root)
    while op is not None and fusion.is_bitcast(op):
        op = fusion.producer(op.operands[0])
    if op is None or not fusion.is_dynamic_update(op):
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

"""Dynamic updates that write into the memory of the parameter that they update."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.emitters.fusion.fusion import Fusion, element_type_of, shape_of
from shardy_py.indexing import IndexingMap, compose, op_maps
from shardy_py.ir.graph import Op, Value


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
    return () if any(True for op, source in others for _ in _reads(fusion, op, source)) else updates


def updated_parameter(fusion: Fusion, update: Op) -> Value:
    """Return the value that an op updates, below bitcasts: where it is a parameter, its buffer can be written."""
    source = update.operands[0]
    while (producer := fusion.producer(source)) is not None and fusion.is_bitcast(producer):
        source = producer.operands[0]
    return source


def _in_place_update(fusion: Fusion, root: Value) -> Op | None:
    """Return the dynamic update that a root is, if it can write into the buffer of its operand; otherwise None.

    The operand has to be a parameter that nothing else reads at other indices.
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
    """Return whether the update and its starts read of a parameter at most the element that they overwrite."""
    written = op_maps.dynamic_slice(shape_of(update.operands[1]), shape_of(update.operands[0]))
    return all(read == written for read in _reads(fusion, update, parameter))


def _reads(fusion: Fusion, update: Op, parameter: int) -> Iterator[IndexingMap]:
    """Yield where the update and its starts read a parameter, from the index of the update."""
    shape = shape_of(update.operands[1])
    pending = [(update.operands[1], op_maps.identity(shape))]
    pending += [(start, op_maps.scalar(shape)) for start in update.operands[2:]]
    seen: set[tuple[int, IndexingMap]] = set()
    while pending:
        value, read = pending.pop()
        if value.id == parameter:
            yield read
            continue
        producer = fusion.producer(value)
        if producer is None or (value.id, read) in seen:
            continue
        seen.add((value.id, read))
        maps = fusion.maps(producer)
        pending += [(operand, compose(read, map_)) for operand, map_ in zip(producer.operands, maps, strict=True)]

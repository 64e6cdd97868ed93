"""Reads and writes at places that constants tell: as slices, and as updates of which each device keeps what it has.

A slice at a known place moves the rows that change their device, and no others. JAX writes such reads and writes as
dynamic slices, gathers and scatters of one window.
"""

from __future__ import annotations

from attrs import evolve

from shardy_dialects.stablehlo.attributes import DimensionNumbers, dimension_numbers_of
from shardy_dialects.stablehlo.elementwise.ops import COMBINERS
from shardy_dialects.stablehlo.local.known_integers import known_integers
from shardy_dialects.stablehlo.local.writer import Writer, resized
from shardy_dialects.stablehlo.regions import region_ops
from shardy_dialects.stablehlo.slicing import SLICE
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import LocalEmitter, LocalOps
from shardy_py.values import frozen

_READ, _LOOK_UP = "stablehlo.dynamic_slice", "stablehlo.gather"
_WRITE, _SCATTER = "stablehlo.dynamic_update_slice", "stablehlo.scatter"
UPDATES = {_WRITE: 1, _SCATTER: 2}
"""The ops that write, with the number of the operand that they write, where there is one."""


@frozen
class KnownPlace:
    """A window of the first operand of an op, with its place.

    Args:
        starts: Where it begins; None for a dimension of which that is not known.
        sizes: Its sizes.
        combining: The op that combines what is there with what is written; None where that is replaced.
    """

    starts: tuple[int | None, ...]
    sizes: tuple[int, ...]
    combining: str | None = None

    @property
    def is_known(self) -> bool:
        """True if all starts are known."""
        return None not in self.starts


def written_place(op: Op) -> KnownPlace | None:
    """Return the window that an op writes, or None where it is another op or writes several windows."""
    if op.name not in UPDATES or len(op.results) != 1:
        return None
    shape, sizes = static_shape(op.operands[0].type), static_shape(op.operands[UPDATES[op.name]].type)
    if shape is None or sizes is None:
        return None
    if op.name == _WRITE:
        return KnownPlace(_clamped([_start(value) for value in op.operands[2:]], sizes, shape), sizes)
    numbers = dimension_numbers_of(op, "scatter_dimension_numbers")
    starts = _single_index(op.operands[1], numbers, "scatter_dims_to_operand_dims", len(shape))
    if starts is None or numbers.dims("update_window_dims") != tuple(range(len(shape))):
        return None
    # A window that does not lie inside is not written at all.
    if any(start < 0 or start + size > full for start, size, full in zip(starts, sizes, shape, strict=True)):
        return None
    terminator = op.regions[0].block.terminator
    if terminator is not None and terminator.operands[0] is op.regions[0].block.arguments[1]:
        return KnownPlace(starts, sizes)
    (combining,) = region_ops(op)
    return KnownPlace(starts, sizes, combining) if combining in COMBINERS else None


def at_known_place(emit: LocalEmitter, ops: LocalOps, op: Op) -> Value | None:
    """Return the result of a read or a write at a known place, by ops that have the place as an attribute, or None."""
    if op.name in (_READ, _LOOK_UP):
        place = _read_place(op)
        return None if place is None else _slice(emit, op.operands[0], place)
    place = written_place(op) if op.name == _SCATTER else None
    if place is None or not place.is_known:
        return None
    value, _, update = op.operands
    if place.combining is not None:
        current = _slice(emit, value, place)
        update = emit.op(place.combining, [current, update], [update.type]).result
    writer = Writer(emit, ops)
    starts = [writer.scalar(str(start), "i64") for start in place.starts]
    return emit.op(_WRITE, [value, update, *starts], [op.results[0].type]).result


def _read_place(op: Op) -> KnownPlace | None:
    """Return the window that an op reads, where constants tell all of its place."""
    shape, sizes = static_shape(op.operands[0].type), tuple(op.attributes["slice_sizes"])
    if shape is None:
        return None
    starts: tuple[int | None, ...] | None
    if op.name == _READ:
        starts = tuple(_start(value) for value in op.operands[1:])
    else:
        numbers = dimension_numbers_of(op, "dimension_numbers")
        starts = _single_index(op.operands[1], numbers, "start_index_map", len(shape))
        if numbers.dims("offset_dims") != tuple(range(len(shape))) or sizes != static_shape(op.results[0].type):
            return None
    if starts is None or None in starts:
        return None
    return evolve(KnownPlace(starts, sizes), starts=_clamped(starts, sizes, shape))


def _slice(emit: LocalEmitter, value: Value, place: KnownPlace) -> Value:
    starts = [start or 0 for start in place.starts]
    attributes = {
        "start_indices": tuple(starts),
        "limit_indices": tuple(start + size for start, size in zip(starts, place.sizes, strict=True)),
        "strides": (1,) * len(starts),
    }
    return emit.op(SLICE, [value], [resized(value, dict(enumerate(place.sizes)))], attributes).result


def _start(value: Value) -> int | None:
    known = known_integers(value)
    return None if known is None else known[0]


def _clamped(
    starts: tuple[int | None, ...] | list[int | None], sizes: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int | None, ...]:
    """Return starts that are moved so that the window lies inside."""
    rows = zip(starts, sizes, shape, strict=True)
    return tuple(None if start is None else max(0, min(start, full - size)) for start, size, full in rows)


def _single_index(value: Value, numbers: DimensionNumbers, name: str, rank: int) -> tuple[int, ...] | None:
    """Return the place of the only window of a gather or a scatter; dimensions without an index begin at 0."""
    known, dims = known_integers(value), numbers.dims(name)
    if known is None or len(known) != len(dims):
        return None
    return tuple(known[dims.index(dim)] if dim in dims else 0 for dim in range(rank))

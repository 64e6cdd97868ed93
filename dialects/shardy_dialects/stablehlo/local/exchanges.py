"""Elements that local forms of StableHLO's ops send themselves, counted before these are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from shardy_dialects.stablehlo.attributes import dimension_numbers_of, integer_of
from shardy_dialects.stablehlo.local.candidates import sent_candidates
from shardy_dialects.stablehlo.local.known_places import UPDATES, written_place
from shardy_py.ir.graph.program import Op
from shardy_py.sharding.shard_moves import Round, Run, own_runs, plan_rounds, sent_elements
from shardy_py.sharding.unknown_size import is_large

_MOST_OWNERS = 2
Count = Callable[[Op, int, int], float | None]


def exchanged(op: Op, dim: int, parts: int) -> float | None:
    """Return the elements along a dimension that a device sends where it is sharded in the operand and the results.

    Where a size is not known it is not known which elements change their device, either.
    """
    count = _EXCHANGED.get(op.name)
    if count is None or any(is_large(value.shape[dim]) for value in (op.operands[0], op.results[0])):
        return None
    return count(op, dim, parts)


def collected(op: Op, dim: int, parts: int) -> float | None:
    """Return how often a device sends the elements of whole results that are made of parts of the first operand.

    Where its size is not known, it is not known which part has the elements at an index, nor the index of an element.
    """
    count = _COLLECTED.get(op.name)
    needs_indices = count is not _chosen or any(True for _ in op.results[1].uses)
    if count is None or (needs_indices and is_large(op.operands[0].shape[dim])):
        return None
    return count(op, dim, parts)


def placed(op: Op, number: int, dim: int, parts: int) -> float | None:
    """Return the elements along a dimension that a device sends where an update is sharded as what it goes into."""
    place = written_place(op)
    if place is None or number != UPDATES[op.name]:
        return None
    full, (size, start) = op.operands[0].shape[dim], (place.sizes[dim], place.starts[dim])
    if start is None or size == full or (place.combining is not None and not place.is_known):
        return None
    part, new = -(-size // parts), -(-full // parts)
    return _sent(
        plan_rounds(own_runs(size, parts, part), [item * new - start for item in range(parts)], new), parts, part
    )


def owners_of_slice(op: Op, dim: int, parts: int) -> range | None:
    """Return the parts of a dimension that have the elements of a slice; None where they are more than two.

    Elements that more parts have reach all devices in fewer steps by an exchange and a gather.
    """
    part = -(-op.operands[0].shape[dim] // parts)
    start, stride, count = op.attributes["start_indices"][dim], op.attributes["strides"][dim], op.results[0].shape[dim]
    owners = range(start // part, (start + (count - 1) * stride) // part + 1)
    return owners if count and len(owners) <= (_MOST_OWNERS if stride == 1 else 1) else None


def _slice(op: Op, dim: int, parts: int) -> float | None:
    """Count the elements of a slice that move to the parts to which they belong."""
    size, count = op.operands[0].shape[dim], op.results[0].shape[dim]
    start, stride = op.attributes["start_indices"][dim], op.attributes["strides"][dim]
    if size == count:
        return 0.0
    part, new = -(-size // parts), -(-count // parts)
    held = []
    for runs in own_runs(size, parts, part):
        run = runs[0] if runs else Run(size, 0)
        first = max(0, -(-(run.start - start) // stride))
        place = start + first * stride - run.start
        length = min(count - first, -(-(run.size - place) // stride))
        held.append([Run(first, length, place // stride)] if length > 0 else [])
    return _sent(plan_rounds(held, [position * new for position in range(parts)], new), parts, part)


def _concatenate(op: Op, dim: int, parts: int) -> float | None:
    """Count the elements that move to the parts to which they belong where tensors are joined."""
    if dim != integer_of(op, "dimension"):
        return None
    held: list[list[Run]] = [[] for _ in range(parts)]
    shift = place = 0
    for operand in op.operands:
        size = operand.shape[dim]
        part = -(-size // parts)
        for runs, operand_runs in zip(held, own_runs(size, parts, part, shift), strict=True):
            runs.extend(Run(run.start, run.size, run.place + place) for run in operand_runs)
        shift, place = shift + size, place + part
    new = -(-shift // parts)
    return _sent(plan_rounds(held, [position * new for position in range(parts)], new), parts, place)


def _dynamic_slice(op: Op, dim: int, parts: int) -> float | None:
    """Count the elements of a slice at an unknown place, of which each device has a part when all are added up."""
    size = op.results[0].shape[dim]
    return 0.0 if size == op.operands[0].shape[dim] else float(-(-size // parts) * (parts - 1))


def _pad(op: Op, dim: int, parts: int) -> float | None:
    """Count the elements that move to the parts to which padding shifts them; None where it parts them."""
    size, count, low = op.operands[0].shape[dim], op.results[0].shape[dim], op.attributes["edge_padding_low"][dim]
    if op.attributes["interior_padding"][dim]:
        return None
    part, new = -(-size // parts), -(-count // parts)
    return _sent(
        plan_rounds(own_runs(size, parts, part), [item * new - low for item in range(parts)], new), parts, part
    )


def _select_and_scatter(op: Op, dim: int, parts: int) -> float:
    """Count the elements that windows lack: at most those of the operand and of the source beyond the own part."""
    from shardy_dialects.stablehlo.window.local import Touching, selecting_windows, stay_apart

    window, (operand, source) = selecting_windows(op)[dim], (value.shape[dim] for value in op.operands[:2])
    if stay_apart(window, operand, source, parts):
        return 0.0
    part = -(-operand // parts)
    touching = Touching.of(parts, window, part)
    return float(max(0, touching.elements.size - part) + max(0, touching.sources.size - -(-source // parts)))


def _scatter(op: Op, dim: int, parts: int) -> float | None:
    """Return 0 where each device can write what falls into its part: windows along the dimension are indexed."""
    numbers = dimension_numbers_of(op, "scatter_dimension_numbers")
    return 0.0 if dim in numbers.dims("scatter_dims_to_operand_dims") else None


def _sent(rounds: list[Round], parts: int, held: int) -> float:
    """Return the elements that a device sends on average; where all would move they are gathered instead."""
    if sent_elements(rounds) > (parts - 1) * held:
        return float((parts - 1) * held)
    return sum(item.size * sum(move.source != move.target for move in item.moves) for item in rounds) / parts


def _broadcast(op: Op, dim: int, parts: int) -> float | None:
    """Return what it takes to send the pieces of a slice to all."""
    is_whole = op.operands[0].shape[dim] == op.results[0].shape[dim]
    return None if is_whole or owners_of_slice(op, dim, parts) is None else (parts - 1) / parts


def _summed(op: Op, dim: int, parts: int) -> float | None:
    """Return what it takes to add up what the devices have of a dynamic slice."""
    is_whole = op.operands[0].shape[dim] == op.results[0].shape[dim]
    return None if is_whole else 2 * (parts - 1) / parts


def _looked_up(op: Op, dim: int, parts: int) -> float | None:
    """Return what it takes to add up what the devices have of the windows that a gather takes.

    Single elements give partial results, which a collective of the program adds up, not the local form.
    """
    is_indexed = dim in dimension_numbers_of(op, "dimension_numbers").dims("start_index_map")
    return 2 * (parts - 1) / parts if is_indexed and op.attributes["slice_sizes"][dim] > 1 else None


def _chosen(op: Op, dim: int, parts: int) -> float | None:
    """Return what it takes to choose among the largest elements of all parts."""
    *rows, size = op.operands[0].shape
    count = op.results[0].shape[-1]
    if dim != len(rows) or 2 * count > -(-size // parts) or op.attributes.get("largest", True) is False:
        return None
    return sent_candidates(prod(rows), parts)


_EXCHANGED: Mapping[str, Count] = {
    "stablehlo.concatenate": _concatenate,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.pad": _pad,
    "stablehlo.scatter": _scatter,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.slice": _slice,
}
_COLLECTED: Mapping[str, Count] = {
    **dict.fromkeys(("chlo.top_k", "mhlo.topk"), _chosen),
    "stablehlo.dynamic_slice": _summed,
    "stablehlo.gather": _looked_up,
    "stablehlo.slice": _broadcast,
}

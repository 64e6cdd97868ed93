"""Indexing maps of StableHLO's ops: which elements of the operands an element of the result reads, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from shardy_dialects.stablehlo.attributes import parse_dimension_numbers
from shardy_dialects.stablehlo.definitions import attribute, has_static_shapes
from shardy_dialects.stablehlo.reduction import padding_of
from shardy_py.indexing import OpIndexing, op_maps
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.plugins import DynamicUpdate, Elementwise, OpDefinition, Scatter
from shardy_py.support.element_types import mlir_element_bits

if TYPE_CHECKING:
    from shardy_py.indexing import IndexingMap

    Maps = Sequence[IndexingMap]
    Indexing = OpIndexing | Maps | None


def shape_of(value: Value) -> tuple[int, ...]:
    """Return the static shape of a value; () for anything without one."""
    return static_shape(value.type) or ()


def elementwise(op: Op) -> OpIndexing:
    """Read every operand at the index of the result; scalars have no index."""
    output = shape_of(op.results[0])
    own, everywhere = op_maps.identity(output), op_maps.broadcast_to_output((), output, ())
    of_scalar = [bool(output) and not shape_of(value) for value in op.operands]
    return OpIndexing(
        [op_maps.scalar(output) if scalar else own for scalar in of_scalar],
        [everywhere if scalar else own for scalar in of_scalar],
    )


def broadcast_in_dim(op: Op) -> OpIndexing:
    """Read the dimensions that the operand has; those of size one that are expanded are read at 0."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    dimensions = attribute(op, "broadcast_dimensions", ())
    read = op_maps.broadcast(output, dimensions, shape)
    return OpIndexing([read], [op_maps.broadcast_to_output(shape, output, dimensions)])


def transpose(op: Op) -> OpIndexing:
    """Read the index with its dimensions in another order."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    permutation = attribute(op, "permutation", ())
    return OpIndexing([op_maps.transpose(output, permutation)], [op_maps.transpose_to_output(shape, permutation)])


def reshape(op: Op) -> OpIndexing:
    """Read the element at the same place in row-major order."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    return OpIndexing([op_maps.reshape(output, shape)], [op_maps.reshape(shape, output)])


def bitcast_layouts(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dimensions of the operand and of the result of a bitcast, those that vary fastest in memory first."""
    found = []
    for name, value in (("source_layout", op.operands[0]), ("result_layout", op.results[0])):
        given = attribute(op, name)
        row_major = range(len(shape_of(value)) - 1, -1, -1)
        found.append(tuple(row_major) if given is None else tuple(map(int, given.values)))
    return found[0], found[1]


def bitcast(op: Op) -> OpIndexing | None:
    """Read the element at the same place in memory; elements of another size have no map."""
    source, target = bitcast_layouts(op)
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    if prod(output) != prod(shape):
        return None
    return OpIndexing(
        [op_maps.bitcast(output, target, shape, source)], [op_maps.bitcast(shape, source, output, target)]
    )


def bitcast_convert(op: Op) -> OpIndexing | None:
    """Read the same index; of another width the word around a part, or all parts of a word, of whole bytes each."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    if output == shape:
        return elementwise(op)
    given, made = whole_bytes(op.operands[0]), whole_bytes(op.results[0])
    if not given or not made or given * prod(shape) != made * prod(output):
        return None
    longer, shorter = (output, shape) if len(output) > len(shape) else (shape, output)
    around = [op_maps.broadcast(longer, range(len(shorter)), shorter)]
    parts = [op_maps.broadcast_to_output(shorter, longer, range(len(shorter)))]
    return OpIndexing(around, parts) if longer is output else OpIndexing(parts, around)


def whole_bytes(value: Value) -> int:
    """Return the bytes of an element that is a number of whole bytes; 0 for any other."""
    element_type = value.type.element_type if isinstance(value.type, TensorType) else "i1"
    bits = (
        0 if element_type in ("i1", "index") or element_type.startswith("complex") else mlir_element_bits(element_type)
    )
    return 0 if not bits or bits % 8 else bits // 8


def slice_(op: Op) -> OpIndexing:
    """Read with an offset and steps."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    starts, strides = attribute(op, "start_indices", ()), attribute(op, "strides", ())
    return OpIndexing(
        [op_maps.slice_(output, starts, strides)], [op_maps.slice_to_output(shape, output, starts, strides)]
    )


def reverse(op: Op) -> OpIndexing:
    """Read some dimensions from their end."""
    both = op_maps.reverse(shape_of(op.results[0]), attribute(op, "dimensions", ()))
    return OpIndexing([both], [both])


def pad(op: Op) -> Maps:
    """Read the operand where it lies in the result, and the padding value."""
    output = shape_of(op.results[0])
    low, high = attribute(op, "edge_padding_low", ()), attribute(op, "edge_padding_high", ())
    return [op_maps.pad(output, low, high, attribute(op, "interior_padding", ())), op_maps.scalar(output)]


def concatenate(op: Op) -> OpIndexing:
    """Read each operand in its part of the result."""
    output, dimension = shape_of(op.results[0]), attribute(op, "dimension", 0)
    read, written, offset = [], [], 0
    for shape in map(shape_of, op.operands):
        read.append(op_maps.concatenate(output, dimension, offset, shape[dimension]))
        written.append(op_maps.concatenate_to_output(shape, dimension, offset))
        offset += shape[dimension]
    return OpIndexing(read, written)


def reduce(op: Op) -> OpIndexing:
    """Read all elements along the reduced dimensions, and the initial values."""
    output, shape, count = shape_of(op.results[0]), shape_of(op.operands[0]), len(op.results)
    dimensions = attribute(op, "dimensions", ())
    everywhere = op_maps.broadcast_to_output((), output, ())
    return OpIndexing(
        [op_maps.reduce(output, shape, dimensions)] * count + [op_maps.scalar(output)] * count,
        [op_maps.reduce_to_output(shape, dimensions)] * count + [everywhere] * count,
    )


def reduce_window(op: Op) -> Maps:
    """Read the elements in the window, and the initial values."""
    output, shape, count = shape_of(op.results[0]), shape_of(op.operands[0]), len(op.results)
    ones = (1,) * len(shape)
    padding = padding_of(op) or (0,) * (2 * len(shape))
    window = op_maps.SlidingWindow(
        size=tuple(attribute(op, "window_dimensions") or ones),
        strides=tuple(attribute(op, "window_strides") or ones),
        window_dilations=tuple(attribute(op, "window_dilations") or ones),
        base_dilations=tuple(attribute(op, "base_dilations") or ones),
        low=tuple(padding[::2]),
        high=tuple(padding[1::2]),
    )
    return [op_maps.reduce_window(output, shape, window)] * count + [op_maps.scalar(output)] * count


def dot_general(op: Op) -> Maps:
    """Read both operands along batch, free and contracted dimensions."""
    numbers = parse_dimension_numbers(str(attribute(op, "dot_dimension_numbers", "")))
    dimensions = op_maps.DotDimensions(
        lhs_batch=numbers.dims("lhs_batching_dimensions"),
        rhs_batch=numbers.dims("rhs_batching_dimensions"),
        lhs_contracting=numbers.dims("lhs_contracting_dimensions"),
        rhs_contracting=numbers.dims("rhs_contracting_dimensions"),
    )
    lhs, rhs = (shape_of(value) for value in op.operands)
    return op_maps.dot(shape_of(op.results[0]), lhs, rhs, dimensions)


def dot(op: Op) -> Maps:
    """Read the last dimension of the left operand and the first of the right one together."""
    lhs, rhs = (shape_of(value) for value in op.operands)
    dimensions = op_maps.DotDimensions(
        lhs_batch=(), rhs_batch=(), lhs_contracting=(len(lhs) - 1,), rhs_contracting=(0,)
    )
    return op_maps.dot(shape_of(op.results[0]), lhs, rhs, dimensions)


def dynamic_slice(op: Op) -> Maps:
    """Read from starts that are known at run time."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    return [op_maps.dynamic_slice(output, shape), *[op_maps.scalar(output)] * len(shape)]


def dynamic_update_slice(op: Op) -> Maps:
    """Read the operand in place, and the update from starts that are known at run time."""
    output = shape_of(op.results[0])
    update = op_maps.dynamic_update(output, shape_of(op.operands[1]))
    return [op_maps.identity(output), update, *[op_maps.scalar(output)] * len(output)]


def gather(op: Op) -> Maps | None:
    """Read slices at starts that are known at run time; only the canonical form has maps."""
    numbers = parse_dimension_numbers(str(attribute(op, "dimension_numbers", "")))
    output, shape, indices = (shape_of(value) for value in (op.results[0], *op.operands))
    is_canonical = (
        len(indices) == 2
        and numbers.number("index_vector_dim") == 1
        and numbers.dims("offset_dims") == tuple(range(1, len(output)))
        and not numbers.dims("collapsed_slice_dims")
        and not numbers.dims("operand_batching_dims")
    )
    if not is_canonical:
        return None
    return op_maps.gather(output, shape, attribute(op, "slice_sizes", ()), numbers.dims("start_index_map"))


MAPS: dict[str, Callable[[Op], Indexing]] = {
    "bitcast": bitcast,
    "bitcast_convert": bitcast_convert,
    "broadcast_in_dim": broadcast_in_dim,
    "concatenate": concatenate,
    "dot": dot,
    "dot_general": dot_general,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "gather": gather,
    "map": elementwise,
    "pad": pad,
    "reduce": reduce,
    "reduce_window": reduce_window,
    "reshape": reshape,
    "reverse": reverse,
    "slice": slice_,
    "transpose": transpose,
}

UPDATES = {"dynamic_update_slice": DynamicUpdate, "scatter": Scatter}


def output_to_input(op: Op) -> Maps:
    """Return the maps from the index of the result to those of the operands, of an op that is known to have them."""
    found = MAPS[op.name.partition(".")[2]](op)
    assert found is not None
    return found.output_to_input if isinstance(found, OpIndexing) else found


def _of_static_shapes(maps: Callable[[Op], Indexing]) -> Callable[[Op], Indexing]:
    def found(op: Op) -> Indexing:
        shapes = [static_shape(value.type) for value in (*op.operands, *op.results)]
        known = op.results and has_static_shapes(op) and None not in shapes
        # Nothing is read of, or written to, a tensor without elements.
        return maps(op) if known and all(prod(shape or ()) for shape in shapes) else None

    return found


def describe(definition: OpDefinition) -> dict[str, Any]:
    """Return the indexing maps of an op, and its traits with those for emitters."""
    name = definition.name.partition(".")[2]
    maps: Callable[[Op], Indexing] | None = MAPS.get(name)
    if maps is None and Elementwise in definition.traits:
        maps = elementwise
    found: dict[str, Any] = {} if maps is None else {"indexing": _of_static_shapes(maps)}
    trait = UPDATES.get(name)
    return found if trait is None else {**found, "traits": definition.traits | {trait}}

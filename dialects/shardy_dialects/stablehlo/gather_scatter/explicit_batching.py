"""A pass: batch dimensions that gathers and scatters index by an iota become batching dimensions.

A batching dimension can be sharded, while one that is indexed must be replicated. Python code such as
``x[jnp.arange(batch), indices]`` makes the latter.

Mirrors explicit_gather_scatter_batching.cc::ExplicitGatherScatterBatchingPass.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from copy import copy
from typing import ClassVar

from shardy_dialects.stablehlo.attributes import (
    DimensionNumbers,
    Dims,
    dimension_numbers_of,
    integer_of,
)
from shardy_dialects.stablehlo.constants import IOTA
from shardy_dialects.stablehlo.elementwise.ops import CLAMP, SELECT
from shardy_dialects.stablehlo.gather_scatter import GATHER, SCATTER
from shardy_dialects.stablehlo.shape import BROADCAST, RESHAPE
from shardy_dialects.stablehlo.slicing import CONCATENATE, SLICE
from shardy_py.ir.graph.attributes import Attribute, RawAttribute, freeze
from shardy_py.ir.graph.dead_ops import erase_dead_ops
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.plugins import AsSdyConstant, IsolatedFromAbove, OpSemantics, PassContext
from shardy_py.values import NoFields, frozen

BATCH = 0
"""Only the first dimension is recognised as a batch dimension."""


@frozen
class _Kind:
    """The attribute names of a gather or a scatter, and the lists in one of them, in order."""

    attribute: str
    flags: tuple[str, ...]
    mnemonic: str
    window: str
    collapsed: str
    input_batching: str
    indices_batching: str
    index_map: str

    def text(self, numbers: DimensionNumbers, collapsed: Dims, index_map: Dims) -> str:
        """Return the attribute with the first dimensions as batching dimensions."""
        lists = {
            self.window: numbers.dims(self.window),
            self.collapsed: collapsed,
            self.input_batching: (BATCH,),
            self.indices_batching: (BATCH,),
            self.index_map: index_map,
        }
        body = ", ".join(f"{name} = [{', '.join(map(str, dims))}]" for name, dims in lists.items() if dims)
        return f"#stablehlo.{self.mnemonic}<{body}, index_vector_dim = {numbers.number('index_vector_dim')}>"


KINDS = {
    GATHER: _Kind(
        "dimension_numbers",
        ("indices_are_sorted",),
        "gather",
        "offset_dims",
        "collapsed_slice_dims",
        "operand_batching_dims",
        "start_indices_batching_dims",
        "start_index_map",
    ),
    SCATTER: _Kind(
        "scatter_dimension_numbers",
        ("indices_are_sorted", "unique_indices"),
        "scatter",
        "update_window_dims",
        "inserted_window_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims",
    ),
}


class ExplicitGatherScatterBatchingPass(NoFields):
    """Turn the first dimension of gathers and scatters into a batching dimension where an iota indexes it."""

    name: ClassVar[str] = "sdy-explicit-gather-scatter-batching"

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite a program; unused ops go and constants are hoisted, as by the rewriter of the reference."""
        hoist_constants(program, context.semantics)
        for op in list(program.walk()):
            if op.name in KINDS:
                _make_batching_explicit(op, KINDS[op.name])
        erase_dead_ops(program, context.semantics)


def _make_batching_explicit(op: Op, kind: _Kind) -> None:
    numbers = dimension_numbers_of(op, kind.attribute)
    number = (len(op.operands) - 1) // 2
    indices = op.operands[number if op.name == SCATTER else 1]
    index_map, collapsed = numbers.dims(kind.index_map), numbers.dims(kind.collapsed)
    vector_dim = numbers.number("index_vector_dim")
    if numbers.dims(kind.input_batching) or BATCH not in index_map or BATCH not in collapsed:
        return
    removed = index_map.index(BATCH)
    if not _is_batch(op.operands[0], indices, vector_dim) or not _is_iota(indices, vector_dim, removed):
        return
    text = kind.text(numbers, _without(collapsed, BATCH), _without(index_map, BATCH))
    _replace(op, indices, _drop_component(op, indices, vector_dim, removed), kind, text)


def _is_batch(operand: Value, indices: Value, vector_dim: int) -> bool:
    """Return whether the first dimensions can be a batch, and the index vectors have another component besides."""
    if not isinstance(operand.type, TensorType) or not isinstance(indices.type, TensorType):
        return False
    shape, indices_shape = operand.type.shape, indices.type.shape
    if not shape or not 0 < vector_dim < len(indices_shape):
        return False
    size = indices_shape[vector_dim]
    return size is not None and size > 1 and shape[0] == indices_shape[0]


def _is_iota(indices: Value, vector_dim: int, component: int) -> bool:
    """Return whether one component of the index vectors counts along the batch."""
    value = indices
    producer = value.defining_op
    if producer is not None and producer.name == CONCATENATE:
        if integer_of(producer, "dimension") != vector_dim or component >= len(producer.operands):
            return False
        value = producer.operands[component]
    iota = _source(value).defining_op
    return iota is not None and iota.name == IOTA and integer_of(iota, "iota_dimension") == 0


def _source(value: Value) -> Value:
    """Return the source of a value, before ops that only reshape it or keep it in bounds."""
    while (op := value.defining_op) is not None:
        if op.name in (RESHAPE, BROADCAST):
            value = op.operands[0]
        elif op.name == CLAMP:
            value = op.operands[1]
        elif op.name == SELECT:
            on_true, on_false = op.operands[1:]
            producer = on_false.defining_op
            value = on_false if producer is not None and producer.name == IOTA else on_true
        else:
            break
    return value


def _drop_component(op: Op, indices: Value, dim: int, component: int) -> Value:
    """Return the index vectors without one component, by new ops before ``op``."""
    total = indices.shape[dim]
    producer = indices.defining_op
    if producer is not None and producer.name == CONCATENATE and len(producer.operands) == total:
        parts = [part for number, part in enumerate(producer.operands) if number != component]
    else:
        ranges = [(0, component), (component + 1, total)]
        parts = [_slice(op, indices, dim, start, limit) for start, limit in ranges if start < limit]
    if len(parts) == 1:
        return parts[0]
    return _create(op, CONCATENATE, parts, _resized(indices, dim, total - 1), {"dimension": dim})


def _slice(op: Op, value: Value, dim: int, start: int, limit: int) -> Value:
    rank = len(value.shape)
    limits = [limit if number == dim else size for number, size in enumerate(value.shape)]
    attributes = {
        "start_indices": tuple(start if number == dim else 0 for number in range(rank)),
        "limit_indices": tuple(limits),
        "strides": (1,) * rank,
    }
    return _create(op, SLICE, [value], _resized(value, dim, limit - start), attributes)


def _resized(value: Value, dim: int, size: int) -> TensorType:
    shape = tuple(size if number == dim else old for number, old in enumerate(value.shape))
    return TensorType(shape, value.type.element_type)  # type: ignore[union-attr]


def _create(
    anchor: Op, name: str, operands: list[Value], type_: TensorType, attributes: Mapping[str, Attribute]
) -> Value:
    new = Op(anchor.program, name, operands, [type_], dict(attributes))
    anchor.parent.insert_before(anchor, new)  # type: ignore[union-attr]
    return new.result


def _replace(op: Op, indices: Value, new_indices: Value, kind: _Kind, text: str) -> None:
    """Replace an op by one with other indices and dimension numbers."""
    program = op.program
    attributes = copy(op.attributes)
    attributes[kind.attribute] = RawAttribute(text)
    for flag in kind.flags:
        attributes.setdefault(flag, False)
    # Only the operand that holds the indices changes, even if the same value is another operand, too.
    number = op.operands.index(indices, 1)
    operands = [*op.operands[:number], new_indices, *op.operands[number + 1 :]]
    regions = op.take_regions()
    new = Op(program, op.name, operands, [value.type for value in op.results], attributes, regions)
    op.parent.insert_before(op, new)  # type: ignore[union-attr]
    for old_value, new_value in zip(op.results, new.results, strict=True):
        if old_value.id in program.shardings:
            program.shardings[new_value.id] = program.shardings.pop(old_value.id)
        old_value.replace_all_uses_with(new_value)
    op.erase()


def _without(dims: Dims, dim: int) -> Dims:
    return tuple(item for item in dims if item != dim)


def hoist_constants(program: Program, semantics: OpSemantics) -> None:
    """Hoist all constants, but not those of the sdy dialect, which are there not to be merged.

    The last one comes to stand first; a constant that follows a hoisted one is left where it is.
    """
    unique_constants: dict[Hashable, Op] = {}
    hoisted: set[Op] = set()
    for op in [op for op in program.walk() if AsSdyConstant in semantics.get_traits(op)]:
        block = _hoisting_block(op, semantics)
        if block is None or op.parent is None:
            continue
        first = unique_constants.setdefault((id(block), freeze(op.attributes["value"]), op.result.type), op)
        if first is not op:
            op.result.replace_all_uses_with(first.result)
            op.erase()
            continue
        hoisted.add(op)
        if op.parent is not block or (op.prev is not None and op.prev not in hoisted):
            op.parent.remove(op)
            block.insert_after(None, op)


def _hoisting_block(op: Op, semantics: OpSemantics) -> Block | None:
    """Return the first block of the outermost region from which values can be used where the op stands."""
    block = op.parent
    while block is not None and block.parent is not None:
        around = block.parent_op
        if around is None or around.name == "func.func" or IsolatedFromAbove in semantics.get_traits(around):
            return block.parent.blocks[0]
        block = around.parent
    return None

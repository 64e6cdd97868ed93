"""Gather and scatter: window dimensions, batch dimensions, collapsed dimensions and the index vector.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardy_dialects.stablehlo.attributes import (
    DimensionNumbers,
    Dims,
    dimension_numbers_of,
    integer_of,
    integers_of,
)
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets, refuse_bounds, shape_of
from shardy_dialects.stablehlo.regions import common_reduction, first_operands, region_combiner
from shardy_py.indexing import op_maps
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import RecursiveMemoryEffects, Scatter
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, Shape, tensor_shape
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_dialects.stablehlo.definitions import Maps

FACETS = LazyFacets(__name__)
GATHER, SCATTER = "stablehlo.gather", "stablehlo.scatter"


def register(definitions: Definitions) -> None:
    """Define gather, scatter and their kin."""
    definitions.define(
        GATHER,
        gather_rule,
        maps=gather_maps,
        body=FACETS.body("gather_body", module="gather"),
        local=FACETS.local("localize_gather", "gather"),
        cost=FACETS.cost("GatherCost"),
    )
    definitions.define("stablehlo.dynamic_gather", gather_rule, extended=True, local=refuse_bounds)
    definitions.define(
        "stablehlo.torch_index_select",
        torch_index_select_rule,
        extended=True,
        local=FACETS.local("localize_torch_index_select", "gather"),
    )
    # The rule depends on the computation of the region.
    definitions.define(
        SCATTER,
        scatter_rule,
        traits=(RecursiveMemoryEffects, Scatter),
        contextual=common_reduction,
        combiner=region_combiner,
        initial_of=first_operands,
        local=FACETS.local("localize_scatter", "scatter"),
        cost=FACETS.cost("ScatterCost"),
    )


@frozen
class _Factor:
    """A factor over the three kinds of tensors; None where one of them lacks it."""

    size: int
    input_dim: int | None = None
    indices_dim: int | None = None
    slices_dim: int | None = None
    kind: FactorKind = FactorKind.PASS_THROUGH
    blocked: bool = False


@frozen
class _Geometry:
    """The common geometry of gather and scatter, in the terms of gather.

    Attributes:
        input_shape: The shape that is gathered from, or scattered into.
        indices_shape: The shape of the start indices.
        slices_shape: The shape of the gathered slices, or of the updates.
        offset_dims: The dimensions of the slices that run over a window of the input.
        collapsed_dims: The dimensions of the input along which a window has size 1 and no dimension.
        input_batching_dims: The batching dimensions of the input.
        indices_batching_dims: The batching dimensions of the indices, in the same order.
        index_vector_dim: The dimension of the indices that holds one index each.
    """

    input_shape: Shape
    indices_shape: Shape
    slices_shape: Shape
    offset_dims: Dims
    collapsed_dims: Dims
    input_batching_dims: Dims
    indices_batching_dims: Dims
    index_vector_dim: int

    @property
    def has_index_vector(self) -> bool:
        """True if a dimension of the indices holds one index each; otherwise an element is an index."""
        return self.index_vector_dim < len(self.indices_shape)

    def window_dims(self) -> Iterator[tuple[int, int]]:
        """Yield (slices dimension, input dimension) of each window dimension."""
        window = [
            dim
            for dim in range(len(self.input_shape))
            if dim not in self.collapsed_dims and dim not in self.input_batching_dims
        ]
        slices = [dim for dim in range(len(self.slices_shape)) if dim in self.offset_dims]
        return zip(slices, window, strict=True)

    def batch_dims(self) -> Iterator[tuple[int, int, int | None]]:
        """Yield (slices dimension, indices dimension, input dimension if it is a batching one)."""
        slices = [dim for dim in range(len(self.slices_shape)) if dim not in self.offset_dims]
        for position, slices_dim in enumerate(slices):
            indices_dim = position if position < self.index_vector_dim else position + 1
            if indices_dim in self.indices_batching_dims:
                yield slices_dim, indices_dim, self.input_batching_dims[self.indices_batching_dims.index(indices_dim)]
            else:
                yield slices_dim, indices_dim, None

    def index_vector_factors(self) -> Iterator[_Factor]:
        """Yield the factor of the index vector, if it has a dimension."""
        if self.has_index_vector:
            size = self.indices_shape[self.index_vector_dim]
            yield _Factor(size, indices_dim=self.index_vector_dim, kind=FactorKind.NEED_REPLICATION)


def gather_rule(op: Op) -> OpShardingRule:
    """Reduce along collapsed and single-element dimensions, pass unsliced and batch dimensions through."""
    geometry = _gather_geometry(op, dimension_numbers_of(op, "dimension_numbers"))
    builder = OpShardingRuleBuilder.for_op(op)
    for factor in _gather_factors(geometry):
        dims = (factor.input_dim, factor.indices_dim)
        builder.add_factor(
            {number: dim for number, dim in enumerate(dims) if dim is not None},
            [factor.slices_dim],
            factor.size,
            kind=factor.kind,
            blocked=factor.blocked,
        )
    return builder.build()


def scatter_rule(op: Op) -> OpShardingRule:
    """Pass scattered dimensions through; implicit batch dimensions are reduced where the computation allows it."""
    num_inputs = len(op.results)
    updates = num_inputs + 1
    numbers = dimension_numbers_of(op, "scatter_dimension_numbers")
    geometry = _scatter_geometry(op, numbers, updates)
    batch_kind = FactorKind.NEED_REPLICATION if common_reduction(op) is None else FactorKind.REDUCTION
    builder = OpShardingRuleBuilder.for_op(op)
    for factor in _scatter_factors(geometry, batch_kind):
        inputs = [factor.input_dim] * num_inputs
        builder.add_factor(
            [*inputs, factor.indices_dim, *[factor.slices_dim] * num_inputs],
            inputs,
            factor.size,
            kind=factor.kind,
            blocked=factor.blocked,
        )
    return builder.build()


def torch_index_select_rule(op: Op) -> OpShardingRule:
    """Return the rule of a gather of whole slices along one dimension, which is reduced."""
    dim, batch_dims = integer_of(op, "dim"), integer_of(op, "batch_dims")
    shape, index_shape = tensor_shape(op.operands[0]), tensor_shape(op.operands[1])
    builder = OpShardingRuleBuilder.for_op(op)
    for batch_dim in range(batch_dims):
        builder.add_factor({0: batch_dim, 1: batch_dim}, {0: batch_dim}, shape[batch_dim])
    for before in range(batch_dims, dim):
        builder.add_factor({0: before}, {0: before}, shape[before])
    builder.add_factor({0: dim}, {}, shape[dim], kind=FactorKind.REDUCTION)
    added = len(index_shape) - batch_dims
    for position in range(added):
        index_dim = batch_dims + position
        builder.add_factor({1: index_dim}, {0: dim + position}, index_shape[index_dim])
    for after in range(dim + 1, len(shape)):
        builder.add_factor({0: after}, {0: after + added - 1}, shape[after])
    return builder.build()


def _gather_geometry(op: Op, numbers: DimensionNumbers) -> _Geometry:
    return _Geometry(
        tensor_shape(op.operands[0]),
        tensor_shape(op.operands[1]),
        tensor_shape(op.results[0]),
        numbers.dims("offset_dims"),
        numbers.dims("collapsed_slice_dims"),
        numbers.dims("operand_batching_dims"),
        numbers.dims("start_indices_batching_dims"),
        numbers.number("index_vector_dim"),
    )


def _scatter_geometry(op: Op, numbers: DimensionNumbers, updates: int) -> _Geometry:
    return _Geometry(
        tensor_shape(op.operands[0]),
        tensor_shape(op.operands[updates - 1]),
        tensor_shape(op.operands[updates]),
        numbers.dims("update_window_dims"),
        numbers.dims("inserted_window_dims"),
        numbers.dims("input_batching_dims"),
        numbers.dims("scatter_indices_batching_dims"),
        numbers.number("index_vector_dim"),
    )


def _gather_factors(geometry: _Geometry) -> Iterator[_Factor]:
    by_slices_dim: dict[int, list[_Factor]] = {}
    for slices_dim, input_dim in geometry.window_dims():
        by_slices_dim[slices_dim] = list(_gather_window_factors(geometry, slices_dim, input_dim))
    for slices_dim, indices_dim, batching_dim in geometry.batch_dims():
        size = geometry.slices_shape[slices_dim]
        by_slices_dim[slices_dim] = [_Factor(size, batching_dim, indices_dim, slices_dim)]
    for slices_dim in sorted(by_slices_dim):
        yield from by_slices_dim[slices_dim]
    for dim in geometry.collapsed_dims:
        # There is nothing to shard, thus nothing to reduce, along a dimension of size 1.
        kind = FactorKind.NEED_REPLICATION if geometry.input_shape[dim] == 1 else FactorKind.REDUCTION
        yield _Factor(geometry.input_shape[dim], dim, kind=kind)
    yield from geometry.index_vector_factors()


def _gather_window_factors(geometry: _Geometry, slices_dim: int, input_dim: int) -> Iterator[_Factor]:
    size, slice_size = geometry.input_shape[input_dim], geometry.slices_shape[slices_dim]
    if size == slice_size:
        yield _Factor(size, input_dim, None, slices_dim)
    elif slice_size == 1:
        # Every device looks its element up where it has it, the results are then summed.
        yield _Factor(size, input_dim, kind=FactorKind.REDUCTION)
        yield _Factor(slice_size, slices_dim=slices_dim, kind=FactorKind.NEED_REPLICATION)
    else:
        yield _Factor(size, input_dim, None, slices_dim, FactorKind.NEED_REPLICATION, blocked=True)


def _scatter_factors(geometry: _Geometry, batch_kind: FactorKind) -> Iterator[_Factor]:
    by_slices_dim: dict[int, list[_Factor]] = {}
    for slices_dim, input_dim in geometry.window_dims():
        by_slices_dim[slices_dim] = list(_scatter_window_factors(geometry, slices_dim, input_dim))
    for slices_dim, indices_dim, batching_dim in geometry.batch_dims():
        # Updates along a dimension that the input lacks are combined into the same elements.
        kind = batch_kind if batching_dim is None else FactorKind.PASS_THROUGH
        size = geometry.slices_shape[slices_dim]
        by_slices_dim[slices_dim] = [_Factor(size, batching_dim, indices_dim, slices_dim, kind)]
    for slices_dim in sorted(by_slices_dim):
        yield from by_slices_dim[slices_dim]
    for dim in geometry.collapsed_dims:
        yield _Factor(geometry.input_shape[dim], dim)
    yield from geometry.index_vector_factors()


def _scatter_window_factors(geometry: _Geometry, slices_dim: int, input_dim: int) -> Iterator[_Factor]:
    size, slice_size = geometry.input_shape[input_dim], geometry.slices_shape[slices_dim]
    if size == slice_size:
        yield _Factor(size, input_dim, None, slices_dim)
        return
    yield _Factor(size, input_dim, kind=FactorKind.NEED_REPLICATION)
    yield _Factor(slice_size, slices_dim=slices_dim, kind=FactorKind.NEED_REPLICATION)


def gather_maps(op: Op) -> Maps:
    """Read slices at starts that are known at run time."""
    numbers = dimension_numbers_of(op, "dimension_numbers")
    output, shape, indices = (shape_of(value) for value in (op.results[0], *op.operands))
    geometry = _gather_geometry(op, numbers)
    return op_maps.gather(
        output,
        shape,
        integers_of(op, "slice_sizes"),
        numbers.dims("start_index_map"),
        window_dims={operand_dim: slices_dim for slices_dim, operand_dim in geometry.window_dims()},
        batch_dims={indices_dim: slices_dim for slices_dim, indices_dim, _ in geometry.batch_dims()},
        operand_batch_dims={
            operand_dim: slices_dim for slices_dim, _, operand_dim in geometry.batch_dims() if operand_dim is not None
        },
        index_vector_dim=numbers.number("index_vector_dim") if geometry.has_index_vector else None,
        indices_rank=len(indices),
    )

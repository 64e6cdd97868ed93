"""Reduce the shardings of inputs and outputs to whole axes that divide their dimensions evenly.

Mirrors remove_sub_axes_in_input_output_shardings.cc::RemoveSubAxesInInputOutputShardingsPass and
update_non_divisible_input_output_shardings.cc::UpdateNonDivisibleInputOutputShardingsPass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from math import gcd
from typing import ClassVar

from attrs import evolve

from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.op_names import CALL, FUNCTION
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import Type, static_shape
from shardy_py.ir.graph.walk import entry_arguments, ops_among
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.support.identity import identity
from shardy_py.values import NoFields


class RemoveSubAxesInInputOutputShardingsPass(NoFields):
    """Cut the open dimensions of the main function's arguments and results before their first sub-axis.

    It comes after dimensions were made to divide evenly, which a prefix leaves true. Closed dimensions are what the
    user wanted.
    """

    name: ClassVar[str] = "sdy-remove-sub-axes-in-input-output-shardings"

    def run(self, program: Program, context: PassContext) -> None:
        """Cut the shardings of the main function.

        Raises:
            UnsupportedError: several functions, none of them ``main``.
        """
        main = main_function(program)
        if main is None:
            return
        table = program.shardings
        arguments = [value for region in main.regions for block in region.blocks[:1] for value in block.arguments]
        for value in [*arguments, *main.function_results]:
            sharding = table.get(value.id)
            if sharding is not None:
                table[value.id] = sharding.map_dims(whole_axes)


def whole_axes(dim: DimensionSharding) -> DimensionSharding:
    """Return an open dimension without its first sub-axis and what follows it; a closed one stays as it is."""
    return dim if dim.is_closed else without_sub_axes(dim)


def without_sub_axes(dim: DimensionSharding) -> DimensionSharding:
    """Return a dimension without its first sub-axis and what follows it."""
    if not any(axis.sub_axis for axis in dim.axes):
        return dim
    return evolve(dim, axes=tuple(takewhile(lambda axis: axis.sub_axis is None, dim.axes)))


class UpdateNonDivisibleInputOutputShardingsPass(NoFields):
    """Shard arguments and results of functions and calls by the longest prefix that divides their dimensions evenly.

    The same holds for values that a data-flow op needs sharded evenly, such as those of a manual computation.
    """

    name: ClassVar[str] = "sdy-update-non-divisible-input-output-shardings"

    def run(self, program: Program, context: PassContext) -> None:
        """Update the shardings of all inputs and outputs."""
        even = _Even(program.meshes)
        table = program.shardings
        names = context.semantics.names_with_data_flow(program.op_names)
        for op in ops_among(program, (FUNCTION, CALL, *names)):
            for value in inputs_and_outputs(op, context.semantics):
                sharding = table.get(value.id)
                if sharding is not None:
                    table[value.id] = even.of(sharding, value.type)


def inputs_and_outputs(op: Op, semantics: OpSemantics) -> Sequence[Value]:
    """Return the values of a function, a call or a data-flow op whose shardings must divide their sizes."""
    values: Sequence[Value] = ()
    if op.name == FUNCTION:
        values = (*entry_arguments(op), *op.function_results)
    elif op.name == CALL:
        values = op.results
    data_flow = semantics.get_data_flow(op)
    if data_flow is None or not data_flow.should_keep_edge_owner_shardings_divisible(op):
        return values
    return (*values, *data_flow.get_block_argument_edge_owners(op), *data_flow.get_op_result_edge_owners(op))


class _Even:
    """Makes shardings even; inputs and outputs have the same few types and shardings over and over."""

    __slots__ = ("_known", "_meshes")

    def __init__(self, meshes: Mapping[str, Mesh]) -> None:
        self._meshes = meshes
        # The key is of identities, so the entry keeps the objects alive.
        self._known: dict[tuple[int, int], tuple[TensorSharding, Type, TensorSharding]] = {}

    def of(self, sharding: TensorSharding, type_: Type) -> TensorSharding:
        """Return a sharding for values of a type, see `evenly_sharded`; where sizes or axes are unknown it stays."""
        known = self._known.get((identity(sharding), identity(type_)))
        if known is None:
            shape, mesh = static_shape(type_), resolve_mesh(sharding.mesh, self._meshes)
            even = sharding if shape is None or mesh is None else evenly_sharded(sharding, shape, mesh)
            known = self._known[identity(sharding), identity(type_)] = sharding, type_, even
        return known[2]


@lru_cache(maxsize=8192)
def evenly_sharded(sharding: TensorSharding, shape: tuple[int, ...], mesh: Mesh) -> TensorSharding:
    """Return a sharding whose dimensions are sharded by the longest prefix of their axes that divides them.

    The last axis may be a part of the one it was. A dimension that changes loses its priority.

    Mirrors update_non_divisible_input_output_shardings.cc::getEvenlySharded.
    """
    # A sharding on a single device has no dimensions, whatever the shape.
    pairs = list(zip(sharding.dim_shardings, shape, strict=False))
    if all(size % dim.sharded_size(mesh) == 0 for dim, size in pairs):
        return sharding
    return evolve(sharding, dim_shardings=tuple(_evenly_sharded_dim(dim, size, mesh) for dim, size in pairs))


def _evenly_sharded_dim(dim: DimensionSharding, size: int, mesh: Mesh) -> DimensionSharding:
    if size % dim.sharded_size(mesh) == 0:
        return dim
    axes: list[AxisRef] = []
    for axis in dim.axes:
        common = gcd(axis.size(mesh), size)
        # An axis of size one ends it, too, as in the reference; there should be none any more.
        if common == 1:
            break
        if common < axis.size(mesh):
            axes.append(AxisRef(axis.name, SubAxis(axis.pre_size, common)))
            break
        axes.append(axis)
        size //= common
    return DimensionSharding(tuple(axes), dim.is_closed)

"""Put a closed sharding constraint on every tensor: XLA reads no shardings of ops but those of constraints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from attrs import evolve, field

from shardy_py.ir.graph.data_flow import shardable_value
from shardy_py.ir.graph.op_names import CONSTRAINT, FUNCTION, MANUAL_COMPUTATION, MESH
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.ir.interfaces.ops import ConstantLike, OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.support.identity import identity
from shardy_py.transforms.finish.input_output_shardings import evenly_sharded
from shardy_py.values import define, frozen

_HOLDERS = (CONSTRAINT, MESH)
_CONSTANT_OPERANDS = frozenset(
    f"stablehlo.{name}"
    for name in (
        "dynamic_broadcast_in_dim",
        "dynamic_conv",
        "dynamic_gather",
        "dynamic_iota",
        "dynamic_pad",
        "dynamic_reshape",
        "real_dynamic_slice",
    )
)
"""Ops that XLA knows only where the operands that say something about shapes are constants."""


@frozen
class ConstrainValuesPass:
    """Put every tensor with dimensions through an ``sdy.sharding_constraint`` that is closed.

    A tensor that propagation left alone is constrained to be replicated. What flows along a data-flow edge is
    constrained at both ends: where a value enters it, and where it comes out.

    Args:
        leave_open: Whether tensors without a sharding stay as they are, so that XLA may shard them.
    """

    name: ClassVar[str] = "xla-constrain-values"

    leave_open: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Constrain the values of all functions."""
        mesh = default_mesh(program.meshes)
        if mesh is None:
            return
        constrainer = _Constrainer(program, context.semantics, mesh, self.leave_open)
        for function in program.functions.values():
            constrainer.visit_function(function)


def default_mesh(meshes: Mapping[str, Mesh]) -> str | None:
    """Return the name of the first mesh with several devices, or None."""
    return next((name for name, mesh in meshes.items() if mesh.axes), None)


def closed(sharding: TensorSharding) -> TensorSharding:
    """Return a sharding that nothing may be added to, without priorities."""
    dims = tuple(DimensionSharding(dim.axes) for dim in sharding.dim_shardings)
    return TensorSharding(sharding.mesh, dims, (), sharding.unreduced_axes, sharding.reduction_op)


def has_dimensions(value: Value) -> bool:
    """Return whether a value is a tensor of known sizes, with at least one dimension."""
    return isinstance(value.type, TensorType) and bool(value.type.shape) and value.type.is_static


@define
class _Constrainer:
    program: Program
    semantics: OpSemantics
    mesh: str
    leave_open: bool
    _replicated: dict[int, TensorSharding] = field(factory=dict)
    _closed: dict[int, tuple[TensorSharding, TensorSharding]] = field(factory=dict)

    def visit_function(self, function: Op) -> None:
        """Close the interface of the main function; constrain what is inside."""
        if not function.regions or not function.regions[0].blocks:
            return
        table = self.program.shardings
        arguments = function.regions[0].blocks[0].arguments
        is_main = function.attributes.get("sym_name") == "main"
        for value in (*arguments, *function.function_results):
            sharding = self._closed_sharding(value)
            if is_main and sharding is not None:
                # Arrays that go in and out are whole: nobody outside would add up the parts.
                table[value.id] = evolve(sharding, unreduced_axes=())
        even = self._even_interface((*arguments, *function.function_results)) if is_main else {}
        constrained = [value for value in arguments if value.id in even] if is_main else arguments
        for block in function.regions[0].blocks:
            self._visit_block(block, constrained)
        table.update(even)
        if not is_main:
            for value in (*arguments, *function.function_results):
                table.pop(value.id, None)

    def _even_interface(self, values: Iterable[Value]) -> dict[int, TensorSharding]:
        """Return even shardings for the arguments or results with uneven ones, which JAX arrays cannot have.

        An array goes in by the whole axes that divide its sizes; a constraint inside has the sharding of the program.
        """
        even_shardings = {}
        for value in values:
            sharding = self._closed_sharding(value)
            if sharding is None:
                continue
            mesh = resolve_mesh(sharding.mesh, self.program.meshes)
            shape = static_shape(value.type)
            even = sharding if mesh is None or shape is None else evenly_sharded(sharding, shape, mesh)
            if even != sharding:
                even_shardings[value.id] = evolve(
                    even, dim_shardings=tuple(map(_common_axes, even.dim_shardings, sharding.dim_shardings))
                )
        return even_shardings

    def _visit_block(self, block: Block, arguments: Sequence[Value]) -> None:
        """Constrain the results of the ops of a block, what their regions hold, and some arguments of the block."""
        for op in list(block.ops):
            if op.name not in _HOLDERS:
                self._visit_op(op)
        for value in reversed(arguments):
            self._constrain(value)

    def _visit_op(self, op: Op) -> None:
        if op.name != MANUAL_COMPUTATION:
            self._constrain_sources(op)
        for value in reversed(op.results):
            self._constrain(value)
        is_loop = op.name == "stablehlo.while"
        for region in self._regions_of_values(op):
            for block in region:
                self._visit_block(block, block.arguments)
            if is_loop:
                self._constrain_captured(region)

    def _regions_of_values(self, op: Op) -> Iterator[Sequence[Block]]:
        """Yield the regions whose values are tensors of the program, and not the scalars that a reduction combines."""
        flows = self.semantics.get_data_flow(op) is not None
        for region in op.regions:
            if flows or not any(block.arguments for block in region.blocks):
                yield region.blocks

    def _constrain_sources(self, op: Op) -> None:
        """Constrain the sources of a data-flow edge to its sharding."""
        data_flow = self.semantics.get_data_flow(op)
        if data_flow is None:
            return
        for owner in data_flow.get_op_result_edge_owners(op):
            sharding = self._closed_sharding(owner)
            if sharding is None:
                continue
            for source in data_flow.get_edge_sources(op, owner):
                if self._closed_sharding(source.value) == sharding:
                    continue
                constraint = self._new(source.value, sharding)
                source.op.parent.insert_before(source.op, constraint)  # type: ignore[union-attr]
                source.op.set_operand(source.number, constraint.results[0])

    def _constrain_captured(self, blocks: Sequence[Block]) -> None:
        """Constrain the values that a region uses from outside, where it uses them."""
        inside = {identity(block) for block in blocks}
        for block in blocks:
            inside.update(identity(inner) for op in block.walk() for region in op.regions for inner in region.blocks)
        captured: dict[int, tuple[Value, list[tuple[Op, int]]]] = {}
        for block in blocks:
            for op in block.walk():
                for number, value in enumerate(op.operands):
                    if identity(_block_of(value)) not in inside and has_dimensions(value):
                        captured.setdefault(value.id, (value, []))[1].append((op, number))
        for value, uses in captured.values():
            sharding = self._closed_sharding(value)
            if sharding is None:
                continue
            constraint = self._new(value, sharding)
            blocks[0].insert_after(None, constraint)
            for op, number in uses:
                op.set_operand(number, constraint.results[0])

    def _constrain(self, value: Value) -> None:
        sharding = self._closed_sharding(value)
        if sharding is None or not value.uses:
            return
        constraint = self._new(value, sharding)
        value.insert_after(constraint)
        result = constraint.results[0]
        value.replace_all_uses_with(result, except_op=constraint)
        op = value.defining_op
        if op is None or ConstantLike not in self.semantics.get_traits(op):
            return
        for user, number in list(result.uses):
            if user.name in _CONSTANT_OPERANDS:
                user.set_operand(number, value)

    def _new(self, value: Value, sharding: TensorSharding) -> Op:
        op = Op(self.program, CONSTRAINT, (value,), (value.type,), {"sharding": sharding})
        self.program.shardings[op.results[0].id] = sharding
        return op

    def _closed_sharding(self, value: Value) -> TensorSharding | None:
        """Return the closed sharding of a value, or None for a value that cannot have a constraint."""
        if not has_dimensions(value):
            return None
        sharding = self.program.shardings.get(value.id)
        if sharding is None:
            carrier = shardable_value(value, self.semantics)
            sharding = None if carrier is None else self.program.shardings.get(carrier.id)
        # The results of an op with several have a sharding as soon as one of them has; it is empty, and closed by now.
        if self.leave_open and sharding is not None and sharding.empty_axes and value.owning_op.name != FUNCTION:
            sharding = None
        if sharding is None:
            return None if self.leave_open else self._replicate(value.type.rank)  # type: ignore[union-attr]
        known = self._closed.get(identity(sharding))
        if known is None:
            known = self._closed[identity(sharding)] = sharding, closed(sharding)
        return known[1]

    def _replicate(self, rank: int) -> TensorSharding:
        sharding = self._replicated.get(rank)
        if sharding is None:
            sharding = self._replicated[rank] = TensorSharding.fully_closed(self.mesh, rank)
        return sharding


def _common_axes(even: DimensionSharding, original: DimensionSharding) -> DimensionSharding:
    """Return an even dimension with only the axes of the original; a sub-axis of one of its axes is dropped."""
    return evolve(even, axes=tuple(axis for axis in even.axes if axis in original.axes))


def _block_of(value: Value) -> Block | None:
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent

"""Modes of the ops of a program: sharded along some axes, or whole along them on every device."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from attrs import evolve, field

from shardy_py.ir.graph.op_names import CONSTANT, FUNCTION, MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.ir.interfaces.ops import (
    ConstantLike,
    IsTerminator,
    OpOperand,
    OpSemantics,
    Pure,
    RecursiveMemoryEffects,
    ShardableDataFlowOpInterface,
)
from shardy_py.local.communication.axis_group import AxisGroup, UnfitAxes
from shardy_py.local.communication.balance import Balance
from shardy_py.local.communication.known_modes import KnownModes
from shardy_py.local.communication.mode_choice import SHARDED, WHOLE, ModeChoice, Modes
from shardy_py.local.communication.moves import shard_bytes
from shardy_py.local.communication.operations import operations_of
from shardy_py.local.communication.own_exchanges import OwnExchanges
from shardy_py.local.communication.routes import STEPS, Routes, source_of
from shardy_py.local.communication.run_counts import RunCounts
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule, with_collectives_only
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.values import define


@define(eq=False)
class ModeChoices:
    """The choices of a function.

    Attributes:
        program: The program.
        semantics: What is known about ops.
        group: The axes.
        routes: The routes of values.
        counts: How often blocks run.
        exchanges: What local forms send.
        machine: What else costs as much as a byte that is sent.
        partial_values: The values that ops use as partial results, which stay as they are.
        known: Modes that are known already, along the same axes.
    """

    program: Program
    semantics: OpSemantics
    group: AxisGroup
    routes: Routes
    counts: RunCounts
    exchanges: OwnExchanges
    machine: Balance
    partial_values: Collection[int] = ()
    known: KnownModes = field(factory=KnownModes)
    by_use: dict[tuple[int, int], ModeChoice] = field(factory=dict, init=False)
    by_value: dict[int, ModeChoice] = field(factory=dict, init=False)
    values: list[Value] = field(factory=list, init=False)
    _count: int = field(default=0, init=False)

    def add_function(self, function: Op) -> None:
        """Add what is in a function; its arguments and results stay as they are."""
        for region in function.regions:
            for block in region.blocks:
                self._add_values(block.arguments, self._new())
                self._add_block(block, is_open=True)

    def _add_block(self, block: Block, *, is_open: bool) -> None:
        for op in block.ops:
            if op.name in STEPS:
                continue
            flow = self.semantics.get_data_flow(op)
            if is_open and flow is not None and op.regions and op.name not in (MANUAL_COMPUTATION, FUNCTION):
                self._add_edges(op, flow)
                for region in op.regions:
                    for inner in region.blocks:
                        self._add_values(
                            [item for item in inner.arguments if item.id not in self.by_value], self._new()
                        )
                        self._add_block(inner, is_open=True)
                continue
            self._add_op(op, is_open=is_open)
            for region in op.regions:
                for inner in region.blocks:
                    self._add_values(inner.arguments, self._new())
                    self._add_block(inner, is_open=False)

    def _new(self) -> ModeChoice:
        self._count += 1
        return ModeChoice(self._count)

    def _add_values(self, values: Iterable[Value], choice: ModeChoice) -> None:
        for value in values:
            sharding = self.routes.sharding(value)
            choice.value_modes[value.id] = (sharding, sharding)
            self.by_value[value.id] = choice
            self.values.append(value)

    def _add_uses(self, op: Op, numbers: Iterable[int], choice: ModeChoice) -> None:
        for number in numbers:
            sharding = self.routes.sharding(op.operands[number])
            choice.operand_modes[op.id, number] = (sharding, sharding)
            self.by_use[op.id, number] = choice

    def _add_op(self, op: Op, *, is_open: bool) -> None:
        if op.parent is not None and op is op.parent.last and not op.results:
            # What a block hands on belongs to its edges, or stays as it is: each operand by itself.
            for number in range(len(op.operands)):
                if (op.id, number) not in self.by_use:
                    self._add_uses(op, [number], self._new())
            return
        choice = self._new()
        self._add_uses(op, range(len(op.operands)), choice)
        self._add_values(op.results, choice)
        if not is_open:
            return
        try:
            self._set_modes(op, choice)
        except UnfitAxes:
            self._add_uses(op, range(len(op.operands)), choice)
            choice.value_modes.update({value.id: (self.routes.sharding(value),) * 2 for value in op.results})
            choice.modes, choice.current = (WHOLE,), WHOLE

    def _is_flexible(self, op: Op) -> bool:
        if op.name == CONSTANT or self.semantics.has_trait(op, ConstantLike):
            return True
        if self.semantics.has_trait(op, IsTerminator) or self.semantics.get_data_flow(op) is not None:
            return False
        has_no_effects = self.semantics.has_trait(op, Pure) or self.semantics.has_trait(op, RecursiveMemoryEffects)
        return has_no_effects and self.semantics.get_sharding_rule(op) is not None

    def _set_modes(self, op: Op, choice: ModeChoice) -> None:
        """Give an op its modes; it keeps the one that it has where nothing around it has the axes.

        Raises:
            UnfitAxes: they cannot be told.
        """
        group = self.group
        sources = list(map(source_of, op.operands))
        if any(value.id in self.partial_values for value in (*sources, *op.results)):
            raise UnfitAxes
        operands = [choice.operand_modes[op.id, number][0] for number in range(len(op.operands))]
        results = [choice.value_modes[value.id][0] for value in op.results]
        summed = [axis for value in op.results for route in self.routes.of(value) for axis in route.summed_axes]
        partial = group.own_axes(summed)
        held = [
            self.by_value[item.id].value_modes[item.id][SHARDED] if item.id in self.by_value else None
            for item in sources
        ]
        if not partial and not any(map(group.shards, (*operands, *results, *held))):
            return
        if not self._is_flexible(op):
            return
        rule = self.semantics.get_sharding_rule(op)
        runs = self.counts.of_block(op.parent)
        key = self.known.key(op, self.semantics, rule, (*operands, *results, *held), partial, runs)
        if self.known.recall(key, op, choice):
            return
        for number, sharding in enumerate(operands):
            choice.operand_modes[op.id, number] = (sharding, group.without(sharding))
        for value, sharding in zip(op.results, results, strict=True):
            choice.value_modes[value.id] = (sharding, group.without(sharding))
        if partial or any(map(group.shards, (*operands, *results))):
            choice.modes, choice.current = (SHARDED, WHOLE), SHARDED
        elif rule is not None and self._shard_along_gathered(op, choice, rule):
            choice.modes = (SHARDED, WHOLE)
        if rule is not None and len(choice.modes) > 1 and op.operands:
            choice.work = self._work(op, rule, choice)
        if rule is not None and op.operands:
            self._count_sent(op, rule, choice)
        self.known.remember(key, choice)

    def _count_sent(self, op: Op, rule: OpShardingRule, choice: ModeChoice) -> None:
        """Set the bytes that the local form of an op sends in each mode."""
        runs = self.counts.of_block(op.parent)
        for mode in choice.modes:
            operands = [choice.operand_modes[op.id, number][mode] for number in range(len(op.operands))]
            results = [choice.value_modes[value.id][mode] for value in op.results]
            choice.sent[mode] = runs * self.exchanges.sent(op, rule, operands, results)
        source = source_of(op.operands[0])
        if source.id not in self.by_value:
            return
        sharding = self.by_value[source.id].value_modes[source.id][SHARDED]
        whole_sharding = choice.operand_modes[op.id, 0][WHOLE]
        if sharding is None or not self.group.shards(sharding):
            return
        rank = sharding.rank
        whole_axes = [] if whole_sharding is None else [dim.axes for dim in whole_sharding.dim_shardings]
        moved = [
            axis
            for dim in sharding.dim_shardings
            for axis in dim.axes
            if not any(axis in dim_axes for dim_axes in whole_axes)
        ]
        others = sharding.map_dims(lambda dim: DimensionSharding(tuple(axis for axis in dim.axes if axis not in moved)))
        if self.group.closed(others, rank) == self.group.closed(whole_sharding, rank):
            results = [choice.value_modes[value.id][WHOLE] for value in op.results]
            collected = self.exchanges.collected(op, rule, sharding, moved, results)
            if collected is not None:
                choice.collected[op.id, 0] = runs * collected
                # It reads the part that the device has then, too.
                choice.work = 0.0

    def _shard_along_gathered(self, op: Op, choice: ModeChoice, rule: OpShardingRule) -> bool:
        """Let a whole op run along the factor along which an operand was gathered; return whether it can."""
        group = self.group
        reductions = self.semantics.get_reductions(op)
        if self.exchanges.has_form(op):
            # Its local form counts initial values once.
            reductions = evolve(reductions, initial_operands=())
        types = [getattr(value.type, "element_type", "") for value in op.results]
        rule, words = with_collectives_only(rule, reductions, types)
        factor, axes = self._gathered_factor(op, rule)
        if factor is None:
            return False
        is_reduced = factor in rule.reduction_factors
        if not is_reduced and not all(any(factor in dim for dim in mapping) for mapping in rule.result_mappings):
            return False
        if not is_reduced and not rule.is_pass_through(factor) and not self._moves_by_itself(op, rule, factor):
            return False
        if is_reduced and (reductions.initial_operands or words.get(factor) is None):
            return False
        for number, mapping in enumerate(rule.operand_mappings):
            whole_sharding = choice.operand_modes[op.id, number][WHOLE]
            choice.operand_modes[op.id, number] = (
                self._with_axes(whole_sharding, mapping, factor, axes),
                whole_sharding,
            )
        for value, mapping in zip(op.results, rule.result_mappings, strict=True):
            whole_sharding = choice.value_modes[value.id][WHOLE]
            choice.value_modes[value.id] = (self._with_axes(whole_sharding, mapping, factor, axes), whole_sharding)
        if is_reduced:
            choice.partial, choice.reduction = axes, words[factor]
        return group.mesh is not None

    def _moves_by_itself(self, op: Op, rule: OpShardingRule, factor: int) -> bool:
        """Return whether the local form of an op moves elements along a factor of the first operand."""
        dims = [dim for dim, factors in enumerate(rule.operand_mappings[0]) if factor in factors]
        group = self.group
        return any(self.exchanges.ops.exchanged(op, dim, axes_size(group.axes, group.mesh)) is not None for dim in dims)

    def _gathered_factor(self, op: Op, rule: OpShardingRule) -> tuple[int | None, tuple[AxisRef, ...]]:
        """Return the factor along which an operand is sharded before it is gathered, and the axes."""
        for operand, mapping in zip(op.operands, rule.operand_mappings, strict=True):
            source = source_of(operand)
            choice = self.by_value.get(source.id)
            sharding = None if choice is None else choice.value_modes[source.id][SHARDED]
            if sharding is None or not self.group.shards(sharding):
                continue
            for dim, factors in enumerate(mapping):
                axes = self.group.own_axes(sharding.of_dimension(dim).axes)
                if axes and len(factors) == 1 and rule.factor_sizes[factors[0]] > 1:
                    return factors[0], axes
        return None, ()

    def _with_axes(
        self, sharding: TensorSharding | None, mapping: Sequence[Sequence[int]], factor: int, axes: tuple[AxisRef, ...]
    ) -> TensorSharding | None:
        """Return a sharding with further axes along a factor.

        Raises:
            UnfitAxes: the factor is only a part of a dimension.
        """
        dims = [dim for dim, factors in enumerate(mapping) if factor in factors]
        if not dims:
            return sharding
        if len(dims) > 1 or len(mapping[dims[0]]) > 1:
            raise UnfitAxes
        base = sharding or TensorSharding.fully_closed(self.group.mesh_name, len(mapping))
        dim_shardings = list(base.dim_shardings)
        dim_shardings[dims[0]] = DimensionSharding((*dim_shardings[dims[0]].axes, *axes))
        return self.routes.same(evolve(base, dim_shardings=tuple(dim_shardings)))

    def _work(self, op: Op, rule: OpShardingRule, choice: ModeChoice) -> float:
        """Return what an op costs more where it is whole: its operations, and the bytes that it reads and writes."""
        mesh, group = self.group.mesh, self.group
        sharded: set[AxisRef] = set()
        others: set[AxisRef] = set()
        for first, second in (*choice.operand_modes.values(), *choice.value_modes.values()):
            for axes, sharding in ((sharded, first), (others, second)):
                axes.update(axis for dim in (sharding.dim_shardings if sharding else ()) for axis in dim.axes)
        count = axes_size(group.own_axes(sharded), mesh)
        operations = operations_of(op, rule, self.semantics) / max(1, axes_size(others, mesh))
        touched = 0.0
        for number, value in enumerate((*op.operands, *op.results)):
            is_operand = number < len(op.operands)
            modes = choice.operand_modes[op.id, number] if is_operand else choice.value_modes[value.id]
            sharded_bytes, whole_bytes = (shard_bytes(value.type, item, mesh) for item in modes)
            touched += whole_bytes - sharded_bytes
        cost = self.machine.operations(operations * (1 - 1 / count)) + self.machine.touched(touched)
        return cost * self.counts.of_block(op.parent)

    def _add_edges(self, op: Op, flow: ShardableDataFlowOpInterface) -> None:
        """Add the edges of a loop or a branch, each a choice of its own."""
        self._add_uses(op, range(len(op.operands)), self._new())
        self._add_values(op.results, self._new())
        for owner in (*flow.get_op_result_edge_owners(op), *flow.get_block_argument_edge_owners(op)):
            choice = self._new()
            sharding = self.routes.sharding(owner)
            modes: Modes = (sharding, sharding)
            try:
                is_partial = owner.id in self.partial_values
                if not is_partial and self.group.shards(sharding) and self._fits_in_loop(op, owner, sharding):
                    modes = (sharding, self.group.without(sharding))
                    choice.modes, choice.current = (SHARDED, WHOLE), SHARDED
            except UnfitAxes:
                pass
            targets = (owner, *flow.get_non_edge_owner_targets(op, owner))
            assign_edge(self, choice, modes, flow.get_edge_sources(op, owner), targets)

    def _fits_in_loop(self, op: Op, owner: Value, sharding: TensorSharding | None) -> bool:
        if not isinstance(owner.type, TensorType) or static_shape(owner.type) is None:
            return False
        whole_bytes = shard_bytes(owner.type, self.group.without(sharding), self.group.mesh)
        return whole_bytes - shard_bytes(owner.type, sharding, self.group.mesh) <= self.machine.loop_memory


class ChoiceTables(Protocol):
    """The choices of a function by use and by value, and the values in their order."""

    by_use: dict[tuple[int, int], ModeChoice]
    by_value: dict[int, ModeChoice]
    values: list[Value]


def assign_edge(
    tables: ChoiceTables, choice: ModeChoice, modes: Modes, sources: Iterable[OpOperand], targets: Iterable[Value]
) -> None:
    """Assign one choice to all sources and targets of an edge of a loop or a branch.

    Args:
        tables: The choices of the function.
        choice: The choice of the edge.
        modes: The sharding of the edge in each mode.
        sources: The operands that flow into it.
        targets: The values that it gives.
    """
    for source in sources:
        choice.operand_modes[source.op.id, source.number] = modes
        tables.by_use[source.op.id, source.number] = choice
    for target in targets:
        choice.value_modes[target.id] = modes
        if target.id not in tables.by_value:
            tables.values.append(target)
        tables.by_value[target.id] = choice


def functions_with_bodies(program: Program) -> Iterator[Op]:
    """Yield the functions that have a body."""
    for function in program.functions.values():
        if function.regions and function.regions[0].blocks:
            yield function


def meshes_by_name(program: Program) -> Mapping[str, Mesh]:
    """Return the meshes of several devices, by name."""
    return {name: mesh for name, mesh in program.meshes.items() if mesh.axes and not mesh.is_maximal}

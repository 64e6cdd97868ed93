"""The ops that could run on partial results: which operands may be partial, and what flows around loops as such."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from attrs import field

from shardy_py.ir.graph.enum_attributes import combiner_of_collective
from shardy_py.ir.graph.op_names import FUNCTION, MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.ops import OpSemantics, ShardableDataFlowOpInterface
from shardy_py.local.communication.axis_group import AxisGroup, UnfitAxes
from shardy_py.local.communication.balance import Balance
from shardy_py.local.communication.choices import assign_edge
from shardy_py.local.communication.mode_choice import ModeChoice
from shardy_py.local.communication.moves import shard_bytes
from shardy_py.local.communication.routes import STEPS, SUMS, Routes, source_of
from shardy_py.local.communication.run_counts import RunCounts
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.tensor import ReductionOp, TensorSharding
from shardy_py.values import define, frozen

PARTIAL, COMPLETE = 0, 1
COMBINERS: Mapping[ReductionOp, Combiner] = {"sum": Combiner.ADD, "max": Combiner.MAX, "min": Combiner.MIN}
Distribution = Callable[[Op, Combiner], Sequence[Collection[int]]]
"""Returns the groups of operands in which an op may take partial results, so that its results are partial, too."""


@frozen
class PartialSums:
    """A kind of partial results.

    Args:
        group: The axes along which they are partial.
        reduction: How they combine.
    """

    group: AxisGroup
    reduction: ReductionOp


@define(eq=False)
class PartialChoices:
    """The choices of a function: each op, and each edge of a loop, runs on partial results or on complete ones.

    Attributes:
        program: The program.
        semantics: What is known about ops.
        kind: The kind of partial results.
        routes: The routes of values.
        counts: How often blocks run.
        distribution: The operands in which ops take partial results.
        machine: What else costs as much as a byte that is sent.
    """

    program: Program
    semantics: OpSemantics
    kind: PartialSums
    routes: Routes
    counts: RunCounts
    distribution: Distribution
    machine: Balance
    by_use: dict[tuple[int, int], ModeChoice] = field(factory=dict, init=False)
    by_value: dict[int, ModeChoice] = field(factory=dict, init=False)
    partial_uses: set[tuple[int, int]] = field(factory=set, init=False)
    values: list[Value] = field(factory=list, init=False)
    _able: dict[int, int] = field(factory=dict, init=False)
    """The ops between each value that could be partial and one that is."""
    _groups: dict[int, Collection[int]] = field(factory=dict, init=False)
    """The numbers of the operands that may be partial together, by op."""
    _relevant: set[int] = field(factory=set, init=False)
    """The values that could be partial, and those that ops on partial results and edges take."""
    _edges: list[tuple[Op, Value, list[Value], list[Value]]] = field(factory=list, init=False)
    _count: int = field(default=0, init=False)

    def add_function(self, function: Op) -> bool:
        """Add what is in a function; return whether there is any choice."""
        blocks = [block for region in function.regions for block in region.blocks]
        for block in blocks:
            self._find_edges(block)
        if not self._find_able(blocks):
            return False
        self._relevant.update(self._able)
        for block in blocks:
            self._find_relevant_in(block)
        for block in blocks:
            self._pin_values(block.arguments)
            self._add_block(block)
        return any(len(choice.modes) > 1 for choice in self.by_value.values())

    def is_produced_partial(self, value: Value) -> bool:
        """Return whether the op that makes a value makes partial results of this kind."""
        routes = self.routes.of(value)
        if not routes or not routes[0].summed_axes:
            return False
        return set(routes[0].summed_axes) == set(self.kind.group.axes) and self._combines(value)

    def _combines(self, value: Value) -> bool:
        """Return whether all collectives on a value combine it with the combiner of this kind."""
        steps = [step for route in self.routes.of(value) for step in route.steps if step.name in SUMS]
        combiners = {combiner_of_collective(step, self.semantics) for step in steps}
        return combiners == {COMBINERS[self.kind.reduction]}

    def _find_edges(self, block: Block) -> None:
        """Find the edges of loops, each with the values that flow into it and those that it gives."""
        for op in block.ops:
            flow = self.semantics.get_data_flow(op) if op.regions else None
            if flow is None or op.name in (MANUAL_COMPUTATION, FUNCTION):
                continue
            for owner in (*flow.get_op_result_edge_owners(op), *flow.get_block_argument_edge_owners(op)):
                targets = [owner, *flow.get_non_edge_owner_targets(op, owner)]
                sources = [item.value for item in flow.get_edge_sources(op, owner) if item.op is not op]
                self._edges.append((op, owner, targets, sources))
            for region in op.regions:
                for inner in region.blocks:
                    self._find_edges(inner)

    def _find_able(self, blocks: Sequence[Block]) -> bool:
        """Find the values that could be partial; return whether some are."""
        edges = [edge for edge in self._edges if _can_add(edge[1])]
        while True:
            self._able = dict.fromkeys((target.id for edge in edges for target in edge[2]), 0)
            self._groups = {}
            makes_partial = [self._find_able_in(block) for block in blocks]
            if not any(makes_partial):
                return False
            remaining = [edge for edge in edges if all(self._gets_partial(edge, source) for source in edge[3])]
            if len(remaining) == len(edges):
                return True
            edges = remaining

    def _gets_partial(self, edge: tuple[Op, Value, list[Value], list[Value]], source: Value) -> bool:
        """Return whether what a region hands on to an edge could be partial, and is not the edge itself."""
        value = source_of(source)
        return value.id in self._able and all(value is not target for target in edge[2])

    def _find_able_in(self, block: Block) -> bool:
        """Add the results of a block that could be partial; return whether some ops make partial results."""
        makes_partial = False
        for op in block.ops:
            if op.name in STEPS or self.semantics.get_data_flow(op) is None:
                for value in op.results if op.name not in STEPS else ():
                    if _can_add(value) and self.is_produced_partial(value):
                        self._able[value.id] = 0
                        makes_partial = True
                group = self._partial_group(op)
                if group is not None:
                    self._groups[op.id] = group
                    self._able[op.results[0].id] = self._distance(op, group) + 1
                continue
            for region in op.regions:
                for inner in region.blocks:
                    makes_partial |= self._find_able_in(inner)
        return makes_partial

    def _partial_group(self, op: Op) -> Collection[int] | None:
        """Return the numbers of the operands that may be partial together, if one of them can be; otherwise None."""
        if op.name in STEPS or not op.operands or len(op.results) != 1 or not _can_add(op.results[0]):
            return None
        sources = [source_of(value).id for value in op.operands]
        if self._able.keys().isdisjoint(sources):
            return None
        routes = self.routes.of(op.results[0])
        if routes and routes[0].summed_axes:
            return None
        groups = self.distribution(op, COMBINERS[self.kind.reduction])
        able = [group for group in groups if any(sources[number] in self._able for number in group)]
        if not able:
            return None
        # Of a product of two that could be partial, the one that was made just before: the other one may have to be
        # complete for other ops between.
        group = min(able, key=lambda group: self._distance(op, group))
        others = (source for number, source in enumerate(sources) if number not in group)
        return group if {sources[number] for number in group}.isdisjoint(others) else None

    def _distance(self, op: Op, group: Collection[int]) -> int:
        sources = (source_of(op.operands[number]).id for number in group)
        return min(self._able[source] for source in sources if source in self._able)

    def _find_relevant_in(self, block: Block) -> None:
        """Find what ops on partial results take, and what flows into edges and out of regions."""
        for op in block.ops:
            if op.id in self._groups or op.regions or (op is block.last and not op.results):
                self._relevant.update(source_of(value).id for value in op.operands)
            for region in op.regions:
                for inner in region.blocks:
                    self._find_relevant_in(inner)

    def _is_relevant(self, op: Op) -> bool:
        """Return whether an op makes or takes a value that could be partial, or goes with one to another op."""
        if any(value.id in self._relevant for value in op.results):
            return True
        return any(source_of(value).id in self._relevant for value in op.operands)

    def _add_block(self, block: Block) -> None:
        for op in block.ops:
            if op.name in STEPS or (not op.regions and not self._is_relevant(op)):
                continue
            flow = self.semantics.get_data_flow(op)
            if flow is not None and op.regions and op.name not in (MANUAL_COMPUTATION, FUNCTION):
                self._add_edges(op, flow)
                for region in op.regions:
                    for inner in region.blocks:
                        self._pin_values([item for item in inner.arguments if item.id not in self.by_value])
                        self._add_block(inner)
                continue
            if op is block.last and not op.results:
                self._pin_uses(op, [n for n in range(len(op.operands)) if (op.id, n) not in self.by_use])
                continue
            self._add_op(op)
            for inner in (inner for region in op.regions for inner in region.blocks):
                for nested in inner.walk():
                    self._pin_uses(nested, range(len(nested.operands)))
                    self._pin_values(nested.results)

    def _new(self) -> ModeChoice:
        self._count += 1
        return ModeChoice(self._count)

    def _pin_values(self, values: Sequence[Value]) -> None:
        choice = self._new()
        for value in values:
            sharding = self.routes.sharding(value)
            choice.value_modes[value.id] = (sharding, sharding)
            self.by_value[value.id] = choice
            self.values.append(value)

    def _pin_uses(self, op: Op, numbers: Sequence[int]) -> None:
        for number in numbers:
            choice = self._new()
            sharding = self.routes.sharding(op.operands[number])
            choice.operand_modes[op.id, number] = (sharding, sharding)
            self.by_use[op.id, number] = choice

    def _add_op(self, op: Op) -> None:
        choice, group = self._new(), self._groups.get(op.id)
        try:
            for number, value in enumerate(op.operands):
                sharding = self.routes.sharding(value)
                choice.operand_modes[op.id, number] = (sharding if group is None else self._without(sharding), sharding)
            for value in op.results:
                sharding = self.routes.sharding(value)
                choice.value_modes[value.id] = (sharding if group is None else self._without(sharding), sharding)
        except UnfitAxes:
            self._pin_uses(op, range(len(op.operands)))
            self._pin_values(op.results)
            return
        self.by_use.update(dict.fromkeys(choice.operand_modes, choice))
        self.by_value.update(dict.fromkeys(choice.value_modes, choice))
        self.values.extend(op.results)
        if group is None:
            return
        self.partial_uses.update((op.id, number) for number in group)
        choice.modes, choice.current = (PARTIAL, COMPLETE), COMPLETE
        growth = self._growth(op.results[0], *choice.value_modes[op.results[0].id])
        # What runs on whole tensors instead of shards reads and writes more.
        choice.work = -growth * self.counts.of_block(op.parent) / self.machine.memory_per_byte

    def _without(self, sharding: TensorSharding | None) -> TensorSharding | None:
        return self.kind.group.without(sharding)

    def _growth(self, value: Value, after: TensorSharding | None, before: TensorSharding | None) -> float:
        """Return the bytes that a value takes more on a device under another sharding."""
        mesh = self.kind.group.mesh
        return shard_bytes(value.type, after, mesh) - shard_bytes(value.type, before, mesh)

    def _add_edges(self, op: Op, flow: ShardableDataFlowOpInterface) -> None:
        self._pin_uses(op, range(len(op.operands)))
        self._pin_values(op.results)
        for owner in (*flow.get_op_result_edge_owners(op), *flow.get_block_argument_edge_owners(op)):
            choice, sharding = self._new(), self.routes.sharding(owner)
            modes = (sharding, sharding)
            sources = flow.get_edge_sources(op, owner)
            if owner.id in self._able:
                try:
                    remaining = self.kind.group.without(sharding)
                    if self._growth(owner, remaining, sharding) <= self.machine.loop_memory:
                        modes = (remaining, sharding)
                        choice.modes, choice.current = (PARTIAL, COMPLETE), COMPLETE
                        self.partial_uses.update((item.op.id, item.number) for item in sources)
                except UnfitAxes:
                    pass
            assign_edge(self, choice, modes, sources, (owner, *flow.get_non_edge_owner_targets(op, owner)))


def _can_add(value: Value) -> bool:
    """Return whether a value is a tensor of numbers that can be split into parts that add up."""
    type_ = value.type
    return isinstance(type_, TensorType) and type_.is_static and type_.element_type != "i1" and not type_.is_foreign

"""Compiled form of a program: steps over integer slots, which can be solved any number of times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from attrs import field

from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.ops import DataFlowShardingTransformType, ShardableDataFlowOpInterface, Trait
from shardy_py.propagation.dependents import Dependents
from shardy_py.propagation.sharding_table import ShardingTable
from shardy_py.propagation.step_outcomes import StepOutcomes
from shardy_py.propagation.steps.factors import Direction
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define

if TYPE_CHECKING:
    from shardy_py.propagation.dead_ops import RemovalPlan

NO_RULE = -1


class GroupTies(NamedTuple):
    """The other members of the sharding group of a slot: their slots, and the steps to visit again for each.

    Attributes:
        members: The ids of all members, each with its slot and steps; the slots of a group share them.
        own: The id of the member whose slot it is.
    """

    members: Sequence[tuple[int, tuple[int, tuple[int, ...]]]]
    own: int

    def others(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield the other members."""
        for value_id, member in self.members:
            if value_id != self.own:
                yield member


NO_TIES = GroupTies((), 0)


class StepGroup(NamedTuple):
    """Description of the steps that behave alike under every schedule without predicates.

    Attributes:
        name: The op's name.
        traits: The op's traits.
        rule: The id of the class of its rule, or `NO_RULE` for an op that only matters because it may be erased.
        multi_use: Whether an operand that is not a scalar has not exactly one use.
        fixed: The direction that overrides the schedule (barriers), or None.
        is_elementwise: Whether the op counts as elementwise.
        conservative: Whether conservative propagation applies (to ops, not to edges).
    """

    name: str
    traits: frozenset[Trait]
    rule: int
    multi_use: bool
    fixed: Direction | None = None
    is_elementwise: bool = False
    conservative: bool = False


Transform = tuple[Callable[[TensorSharding], TensorSharding], Callable[[TensorSharding], TensorSharding]]
"""Maps from the sharding of an edge's target to that seen from the sources, and back."""


@define
class Problem:
    """Steps and slots of a program, as flat lists indexed by step or slot.

    Attributes:
        outcomes: Classes of rules, interned shardings, memoised outcomes.
        slot_values: Slot to the value that stands for it.
        initial: Slot to the id of the sharding it starts with; one more entry, always 0, for values without slot.
        siblings: Slot of one of several results of an op to the (slot, rank) of all of them.
        step_ops: Step to op.
        step_slots: Step to the slots of its operands and results; -1 for a value without slot.
        step_rules: Step to its rule, or None where it has none.
        step_groups: Step to the index of its `StepGroup`.
        groups: The distinct step groups.
        transforms: Step to the transform of its last slot, where it has one.
        function_results: (rule, slot of the returned value, slot of the function result) of the main function.
        group_steps: Step group to its steps.
        dependents: Slot to the steps that see a change of it.
        tied: Slot to the other members of its sharding group.
        removal: The ops without uses, or None where there are none.
        slot_of: Value id to slot, for every value that can be sharded; several values may share one.
    """

    outcomes: StepOutcomes
    slot_values: list[Value]
    initial: list[int]
    siblings: dict[int, tuple[tuple[int, int], ...]]
    step_ops: list[Op] = field(factory=list)
    step_slots: list[tuple[int, ...]] = field(factory=list)
    step_rules: list[OpShardingRule | None] = field(factory=list)
    step_groups: list[int] = field(factory=list)
    groups: list[StepGroup] = field(factory=list)
    group_steps: list[list[int]] = field(factory=list)
    dependents: Dependents = field(init=False)
    transforms: dict[int, Transform] = field(factory=dict)
    function_results: list[tuple[OpShardingRule, int, int]] = field(factory=list)
    tied: dict[int, GroupTies] = field(factory=dict)
    removal: RemovalPlan | None = None
    slot_of: Mapping[int, int] = field(factory=dict)
    _group_ids: dict[StepGroup, int] = field(factory=dict)

    @property
    def table(self) -> ShardingTable:
        """The interned shardings."""
        return self.outcomes.table

    @property
    def num_steps(self) -> int:
        """The number of steps."""
        return len(self.step_ops)

    def intern_group(self, group: StepGroup) -> int:
        """Return the index of a step group."""
        group_id = self._group_ids.get(group)
        if group_id is None:
            group_id = self._group_ids[group] = len(self.groups)
            self.groups.append(group)
            self.group_steps.append([])
        return group_id

    def add_step(self, op: Op, slots: tuple[int, ...], rule: OpShardingRule | None, group: int) -> int:
        """Add a step and return its number."""
        step = self.num_steps
        self.step_ops.append(op)
        self.step_slots.append(slots)
        self.step_rules.append(rule)
        self.step_groups.append(group)
        self.group_steps[group].append(step)
        return step


def edge_transform(data_flow: ShardableDataFlowOpInterface, op: Op, owner: Value) -> Transform:
    """Return the transform of an edge, as the data flow of its op gives it."""

    def before(sharding: TensorSharding) -> TensorSharding:
        kind = DataFlowShardingTransformType.BEFORE_EDGE_PROPAGATION
        return data_flow.transform_target_sharding(op, owner, sharding, kind)

    def after(sharding: TensorSharding) -> TensorSharding:
        kind = DataFlowShardingTransformType.AFTER_EDGE_PROPAGATION
        return data_flow.transform_target_sharding(op, owner, sharding, kind)

    return before, after

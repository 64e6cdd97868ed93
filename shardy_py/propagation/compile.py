"""Program to problem: every thing that propagates becomes a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shardy_py.errors import Diagnostic, RuleError, UnsupportedError
from shardy_py.ir.attributes import RawAttribute
from shardy_py.ir.callgraph import main_function
from shardy_py.ir.data_flow import DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE
from shardy_py.ir.graph import Block, Op, Program, Value
from shardy_py.ir.interfaces import (
    DataFlowShardingTransformType,
    Elementwise,
    IsTerminator,
    OpSemantics,
    PropagationBarrier,
    ShardableDataFlowOpInterface,
    Trait,
)
from shardy_py.ir.types import OpaqueType, TensorType, static_shape
from shardy_py.ir.unused import find_unused_ops
from shardy_py.propagation.factors import Direction
from shardy_py.propagation.notifications import CALL, FUNCTION, RETURN, Notifications
from shardy_py.propagation.problem import NO_RULE, Problem, StepGroup, Transform
from shardy_py.propagation.removal import plan_removal, removable_ops
from shardy_py.propagation.slots import NO_SLOT, Slots, assign_slots, entry_block
from shardy_py.propagation.transitions import ShardingTable, Transitions
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import identity_rule
from shardy_py.sharding.tensor import TensorSharding


def compile_program(program: Program, semantics: OpSemantics, *, conservative: bool = False) -> Problem:
    """Return the problem of a program, with the shardings of its table as the start.

    Args:
        program: The program; it is not changed.
        semantics: What the dialects say about the ops.
        conservative: Whether ops may not introduce sub-axes.

    Raises:
        UnsupportedError: dynamic shapes, tuples, or several functions without one named ``main``.
        RuleError: a rule that does not fit its op.
    """
    check_types(program)
    return _Compiler(program, semantics, conservative=conservative).run()


def check_types(program: Program, *, arguments: bool = False) -> None:
    """Check that every result has a type that can be sharded, or none at all.

    Args:
        program: The program.
        arguments: Whether to check the arguments of blocks, too. The reference does not, although it leaves such
            arguments without a sharding.

    Raises:
        UnsupportedError: a dynamic shape or a tuple; every such op is named.
    """
    found: list[Diagnostic] = []
    seen: set[TensorType | OpaqueType] = set()
    for op in program.walk():
        values = [*op.results, *_arguments(op)] if arguments and op.regions else op.results
        for value in values:
            type_ = value.type
            if type_ in seen:
                continue
            message = _type_problem(type_)
            if message is None:
                seen.add(type_)
            else:
                hint = "give every dimension a size, and pass the elements of a tuple one by one"
                what = f"argument {value.index}: " if isinstance(value.owner, Block) else ""
                found.append(Diagnostic("unsupported-type", f"{what}{message}", op.location, op.name, hint))
    if found:
        raise UnsupportedError(*found)


def _arguments(op: Op) -> Iterator[Value]:
    return (argument for region in op.regions for block in region.blocks for argument in block.arguments)


def _type_problem(type_: TensorType | OpaqueType) -> str | None:
    if isinstance(type_, TensorType):
        if type_.is_static:
            return None
        return f"Shardy propagation only supports ranked tensors with a static shape. type: {type_}"
    if type_.is_tuple:
        return f"Shardy propagation doesn't support tuples: {type_}"
    if type_.text.startswith("tensor<*"):
        return f"Shardy propagation only supports ranked tensors with a static shape. type: {type_}"
    return None


class _Compiler:
    """Builds one problem."""

    def __init__(self, program: Program, semantics: OpSemantics, *, conservative: bool) -> None:
        self.program = program
        self.semantics = semantics
        self.conservative = conservative
        self.slots: Slots = assign_slots(program, semantics)
        transitions = Transitions(ShardingTable(program.meshes))
        self.problem = Problem(transitions, self.slots.values, [], {}, slot_of=self.slots.of_value)
        self.step_of: dict[int, int] = {}

    def run(self) -> Problem:
        """Return the problem."""
        main = main_function(self.program)
        unused = find_unused_ops(self.program, self.semantics)
        candidates = removable_ops(unused, self.semantics)
        removable = {op.id for op in candidates}
        for op in self.program.walk():
            self._add_op(op, is_removable=op.id in removable)
        self.problem.removal = plan_removal(unused, candidates, self.step_of)
        self._add_siblings()
        self._add_start()
        if main is not None:
            self._add_function_results(main)
        notifications = Notifications(self.program, self.semantics, self.slots, self.step_of)
        self._add_groups(notifications)
        self.problem.notify = [notifications.of(value) for value in self.slots.values]
        return self.problem

    def _add_op(self, op: Op, *, is_removable: bool) -> None:
        if op.name == FUNCTION or op.name == "sdy.mesh":
            return
        traits = self.semantics.get_traits(op)
        if op.name == DATA_FLOW_EDGE:
            self._add_edge(op, traits)
        elif op.name == FUNC_DATA_FLOW_EDGE:
            self._add_func_edge(op, traits)
        elif PropagationBarrier in traits:
            direction = parse_direction(op.attributes.get("allowed_direction"))
            self._add_identity(op, traits, op.operands, op.results[0], fixed=direction)
        else:
            rule = self.semantics.get_sharding_rule(op)
            if rule is not None:
                self._add_step(op, traits, rule, [*op.operands, *op.results], conservative=self.conservative)
        if is_removable and op.id not in self.step_of:
            self._append(op, (), None, StepGroup(op.name, frozenset(), NO_RULE, multi_use=False))

    def _add_identity(
        self,
        op: Op,
        traits: frozenset[Trait],
        sources: Sequence[Value],
        result: Value,
        *,
        fixed: Direction | None = None,
    ) -> None:
        """Add a step that shards all sources like the result."""
        shape = static_shape(result.type)
        if shape is None or not sources:
            return
        rule = identity_rule(shape, num_operands=len(sources))
        self._add_step(op, traits, rule, [*sources, result], fixed=fixed)

    def _add_edge(self, op: Op, traits: frozenset[Trait]) -> None:
        info = self.slots.edges.get(op.id)
        if info is None:
            raise UnsupportedError(
                Diagnostic(
                    "dangling-edge",
                    "the input of the data flow edge is not an edge owner with no other use",
                    op.location,
                    op.name,
                    "its input must be a block argument or result of an op with data flow edges, used nowhere else",
                )
            )
        sources = [source.value for source in info.data_flow.get_edge_sources(info.owner_op, info.owner)]
        self._add_identity(op, traits, sources, op.results[0])
        if op.id in self.step_of and _transforms(info.data_flow):
            self.problem.transforms[self.step_of[op.id]] = _edge_transform(info.data_flow, info.owner_op, info.owner)

    def _add_func_edge(self, op: Op, traits: frozenset[Trait]) -> None:
        owner = op.operands[0]
        self._add_identity(op, traits, list(self._func_edge_sources(owner)), op.results[0])

    def _func_edge_sources(self, owner: Value) -> Iterator[Value]:
        """Return what flows into a function argument from its calls, or into a call result from the callee."""
        if owner.is_block_argument:
            name = owner.owning_op.attributes["sym_name"]
            for op in self.program.walk():
                if op.name == CALL and op.attributes["callee"].name == name:
                    yield op.operands[owner.index]
            return
        call = owner.owning_op
        callee = self.program.functions.get(call.attributes["callee"].name)
        block = entry_block(callee) if callee else None
        if block and block.last and block.last.name == RETURN:
            yield block.last.operands[owner.index]

    def _add_step(
        self,
        op: Op,
        traits: frozenset[Trait],
        rule: OpShardingRule,
        values: Sequence[Value],
        *,
        fixed: Direction | None = None,
        conservative: bool = False,
    ) -> None:
        mappings = (*rule.operand_mappings, *rule.result_mappings)
        if len(mappings) != len(values):
            raise RuleError(
                Diagnostic(
                    "rule-arity",
                    f"the rule {rule} is for {len(mappings)} operands and results, the op has {len(values)}",
                    op.location,
                    op.name,
                    "give one tensor mapping per operand and per result",
                )
            )
        group = StepGroup(
            op.name,
            traits,
            self.problem.transitions.intern_rule(rule),
            has_multi_use(op),
            fixed,
            Elementwise in traits,
            conservative,
        )
        get = self.slots.of_value.get
        self._append(op, tuple([get(value.id, NO_SLOT) for value in values]), rule, group)

    def _append(self, op: Op, slots: tuple[int, ...], rule: OpShardingRule | None, group: StepGroup) -> None:
        problem = self.problem
        self.step_of[op.id] = len(problem.step_ops)
        problem.step_ops.append(op)
        problem.step_slots.append(slots)
        problem.step_rules.append(rule)
        problem.step_groups.append(problem.intern_group(group))

    def _add_start(self) -> None:
        """Set the ids of the shardings the program starts with."""
        intern = self.problem.table.intern
        shardings = self.program.shardings
        self.problem.initial = [intern(shardings.get(value.id)) for value in self.slots.values]
        self.problem.initial.append(0)
        self._open_siblings()
        for value, sharding_id in zip(self.slots.values, self.problem.initial, strict=False):
            sharding = self.problem.table.values[sharding_id]
            if sharding is not None:
                self._check_sharding(value, sharding)

    def _open_siblings(self) -> None:
        """Open the results of which only others have a sharding: one attribute holds those of all results."""
        initial = self.problem.initial
        for slot, siblings in self.problem.siblings.items():
            if initial[slot] == 0:
                continue
            for other, rank in siblings:
                if initial[other] == 0:
                    initial[other] = self.problem.table.fully_open_like(initial[slot], rank)

    def _check_sharding(self, value: Value, sharding: TensorSharding) -> None:
        mesh = self.problem.table.mesh_of(sharding)
        rank = value.type.rank if isinstance(value.type, TensorType) else 0
        if not mesh.is_maximal and sharding.rank != rank:
            op = value.owning_op
            raise UnsupportedError(
                Diagnostic(
                    "rank-mismatch",
                    f"sharding {sharding} has rank {sharding.rank}, the value has type {value.type}",
                    op.location,
                    op.name,
                    "give one dimension sharding per dimension",
                )
            )

    def _add_siblings(self) -> None:
        """Note the other results of ops with several: one sharded result makes the others open."""
        for slot, value in enumerate(self.slots.values):
            op = value.defining_op
            if op is None or value.index >= len(op.results) or op.results[value.index] is not value:
                continue
            if len(op.results) > 1:
                self.problem.siblings[slot] = tuple(self._siblings_of(op, value))

    def _siblings_of(self, op: Op, value: Value) -> Iterator[tuple[int, int]]:
        for other in op.results:
            slot = self.slots.get(other)
            if other is not value and slot != NO_SLOT and self.slots.values[slot] is other:
                yield slot, other.type.rank if isinstance(other.type, TensorType) else 0

    def _add_groups(self, notifications: Notifications) -> None:
        """Tie the slots of sharding groups together."""
        members: dict[int, list[Value]] = {}
        for op in self.program.walk():
            if op.name == "sdy.sharding_group":
                members.setdefault(int(op.attributes["group_id"]), []).append(op.operands[0])
        for values in members.values():
            placed = [(value, self.slots.get(value)) for value in values]
            placed = [(value, slot) for value, slot in placed if slot != NO_SLOT]
            ties = [(value, (slot, notifications.of(value))) for value, slot in placed]
            for value, slot in placed:
                # A member that shares its slot with others, as an argument of a loop's body does, follows the group,
                # but the group does not follow the others.
                if self.slots.values[slot] is value:
                    self.problem.tied[slot] = tuple(tie for member, tie in ties if member is not value)

    def _add_function_results(self, main: Op) -> None:
        block = entry_block(main)
        if block is None or block.last is None or IsTerminator not in self.semantics.get_traits(block.last):
            return
        for operand, result in zip(block.last.operands, main.function_results, strict=True):
            shape = static_shape(operand.type)
            slot = self.slots.get(operand)
            if shape is not None and slot != NO_SLOT:
                self.problem.function_results.append((identity_rule(shape), slot, self.slots.get(result)))


def _count_uses(value: Value) -> int:
    return len(value.uses)


def has_multi_use(op: Op, count_uses: Callable[[Value], int] = _count_uses) -> bool:
    """Return whether an operand that is not a scalar has not exactly one use.

    Args:
        op: The op.
        count_uses: Returns the number of uses of a value.
    """
    for value in op.operands:
        if count_uses(value) != 1 and not (isinstance(value.type, TensorType) and value.type.rank == 0):
            return True
    return False


def parse_direction(attribute: object) -> Direction:
    """Return the direction of a propagation barrier from its attribute (a name or the enum's integer)."""
    if isinstance(attribute, int):
        return Direction(attribute)
    text = attribute.text if isinstance(attribute, RawAttribute) else str(attribute)
    for direction in (Direction.FORWARD, Direction.BACKWARD, Direction.BOTH):
        if str(direction.name) in text:
            return direction
    return Direction.NONE


def _transforms(data_flow: ShardableDataFlowOpInterface) -> bool:
    """Return whether the interface has a transform of its own."""
    own = getattr(type(data_flow), "transform_target_sharding", None)
    return own is not ShardableDataFlowOpInterface.transform_target_sharding


def _edge_transform(data_flow: ShardableDataFlowOpInterface, op: Op, owner: Value) -> Transform:
    def before(sharding: TensorSharding) -> TensorSharding:
        kind = DataFlowShardingTransformType.BEFORE_EDGE_PROPAGATION
        return data_flow.transform_target_sharding(op, owner, sharding, kind)

    def after(sharding: TensorSharding) -> TensorSharding:
        kind = DataFlowShardingTransformType.AFTER_EDGE_PROPAGATION
        return data_flow.transform_target_sharding(op, owner, sharding, kind)

    return before, after

"""Compilation of a program to a problem: each op, edge and barrier that propagates becomes a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from shardy_py.errors import Diagnostic, RuleError, UnsupportedError
from shardy_py.ir.graph.dead_ops import find_dead_ops
from shardy_py.ir.graph.enum_attributes import direction_code
from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.kinds import SharedOpKind, kinds_of, shares_facts
from shardy_py.ir.graph.op_names import CALL, DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE, FUNCTION, MESH, RETURN
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.symbols import calls_by_callee
from shardy_py.ir.graph.types import is_scalar, static_shape
from shardy_py.ir.graph.walk import all_ops, entry_block
from shardy_py.ir.interfaces.ops import (
    Elementwise,
    IsTerminator,
    OpFacts,
    OpSemantics,
    PropagationBarrier,
    ShardableDataFlowOpInterface,
    Trait,
)
from shardy_py.propagation.dead_ops import plan_removal, removable_ops
from shardy_py.propagation.dependents import Dependents
from shardy_py.propagation.initial_shardings import initial_shardings, members_by_group, sibling_results
from shardy_py.propagation.problem import NO_RULE, GroupTies, Problem, StepGroup, edge_transform
from shardy_py.propagation.sharding_table import ShardingTable
from shardy_py.propagation.slots import NO_SLOT, IdMap, Slots, assign_slots, check_types, slots_of
from shardy_py.propagation.step_outcomes import StepOutcomes
from shardy_py.propagation.steps.factors import Direction
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import identity_rule


def compile_program(program: Program, semantics: OpSemantics, *, conservative: bool = False) -> Problem:
    """Return the problem of a program, with the shardings of its table as the start.

    Args:
        program: The program; it is not changed.
        semantics: The traits, rules and data flow of the ops.
        conservative: Whether ops may not introduce sub-axes.

    Raises:
        UnsupportedError: dynamic shapes, tuples, or several functions without one named ``main``.
        RuleError: a rule that does not fit its op.
    """
    check_types(program)
    return compile_checked(program, semantics, conservative=conservative)


def compile_checked(
    program: Program, semantics: OpSemantics, *, conservative: bool = False, outcomes: StepOutcomes | None = None
) -> Problem:
    """Return the problem of a program whose types were checked; see `compile_program`.

    Args:
        program: The program; it is not changed.
        semantics: The traits, rules and data flow of the ops.
        conservative: Whether ops may not introduce sub-axes.
        outcomes: Outcomes of steps under the meshes of the program, as far as they are known.

    Raises:
        UnsupportedError: several functions without one named ``main``.
        RuleError: a rule that does not fit its op.
    """
    outcomes = outcomes or StepOutcomes(ShardingTable(program.meshes))
    return _Compiler(program, semantics, outcomes, conservative=conservative).run()


_OPS_WITHOUT_RULE_STEP = frozenset((FUNCTION, MESH, DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE))
"""Ops whose steps, if they have any, do not come from a rule of their own."""


class _Plan:
    """Common properties of the steps of ops with the same facts.

    Attributes:
        traits: The traits of the ops.
        rule: The rule, or None where there is no step.
        fixed: The direction that overrides the schedule, or None.
        conservative: Whether conservative propagation applies.
        is_barrier: Whether the ops are propagation barriers.
        groups: The step group of ops whose operands have one use each, then of the others; None until it is needed.
    """

    __slots__ = ("conservative", "fixed", "groups", "is_barrier", "rule", "traits")

    def __init__(
        self,
        traits: frozenset[Trait],
        rule: OpShardingRule | None,
        *,
        fixed: Direction | None = None,
        conservative: bool = False,
    ) -> None:
        self.traits = traits
        self.rule = rule
        self.fixed = fixed
        self.conservative = conservative
        self.is_barrier = PropagationBarrier in traits
        self.groups: list[int | None] = [None, None]


class _Compiler:
    """Compiler of one program."""

    def __init__(self, program: Program, semantics: OpSemantics, outcomes: StepOutcomes, *, conservative: bool) -> None:
        self.program = program
        self.semantics = semantics
        self.conservative = conservative
        self.slots: Slots = assign_slots(program, semantics)
        self.problem = Problem(outcomes, self.slots.values, [], {}, slot_of=self.slots.of_value)
        self.step_of = IdMap(len(self.slots.numbers))
        self._edge_steps: list[int] = []
        self._plans: dict[OpFacts, _Plan] = {}
        self._identities: dict[tuple[object, ...], _Plan] = {}
        self._groups: dict[tuple[object, ...], int] = {}
        self._has_transform: dict[type, bool] = {}

    def run(self) -> Problem:
        """Return the problem."""
        main = main_function(self.program)
        unused = find_dead_ops(self.program, self.semantics, unused=self.slots.unused)
        candidates = removable_ops(unused, self.semantics)
        self._add_steps(frozenset([op.id for op in candidates]))
        self.problem.removal = plan_removal(unused, candidates, self.step_of)
        self.problem.siblings.update(sibling_results(self.slots))
        self.problem.initial = initial_shardings(self.program, self.problem)
        if main is not None:
            self._add_function_results(main)
        self.problem.dependents = Dependents(
            self.program, self.semantics, self.slots, self.step_of, self.problem.step_slots, self._edge_steps
        )
        self._add_groups()
        return self.problem

    def _add_steps(self, removable: frozenset[int]) -> None:
        """Add the steps of all ops, in program order.

        Args:
            removable: The ids of the ops that may be erased; each gets a step, with or without a rule.
        """
        facts_of, plans, slot_of = self.semantics.facts_of(self.program), self._plans, self.slots.of_value.numbers
        problem = self.problem
        step_ops, step_slots, step_rules, step_groups, group_steps = (
            problem.step_ops,
            problem.step_slots,
            problem.step_rules,
            problem.step_groups,
            problem.group_steps,
        )
        step_of, numbers = self.step_of.numbers, self.slots.numbers
        # Those of ops of a kind, which mostly share their facts, so that these need not be asked for.
        plans_of_kinds: dict[SharedOpKind | None, _Plan] = {}
        slots: tuple[int, ...]
        ops = all_ops(self.program)
        for op, kind in zip(ops, kinds_of(self.program, ops), strict=True):
            plan = plans_of_kinds.get(kind)
            if plan is None and op.name in _OPS_WITHOUT_RULE_STEP:
                self._add_edge(op)
            else:
                if plan is None:
                    facts = facts_of(op)
                    plan = plans.get(facts) or self._make_plan(op, facts)
                    if kind is not None and shares_facts(kind, op.program, facts):
                        plans_of_kinds[kind] = plan
                if plan.rule is not None:
                    # As `has_multi_use`, `slots_of` and `Problem.add_step`, without calls: nearly every op comes here.
                    operands, results = op.operands, op.results
                    if len(operands) == 2 and len(results) == 1:
                        first, second = operands
                        slots = slot_of[first.id], slot_of[second.id], slot_of[results[0].id]
                        multi_use = (len(first.uses) != 1 and not is_scalar(first.type)) or (
                            len(second.uses) != 1 and not is_scalar(second.type)
                        )
                    elif len(operands) == 1 and len(results) == 1:
                        (first,) = operands
                        slots = slot_of[first.id], slot_of[results[0].id]
                        multi_use = len(first.uses) != 1 and not is_scalar(first.type)
                    else:
                        slots = slots_of(operands, results, self.slots.of_value)
                        multi_use = has_multi_use(op)
                    group = plan.groups[multi_use]
                    if group is None:
                        group = self._make_group(op, plan, multi_use=multi_use)
                    step = step_of[op.id] = numbers[len(step_ops)]
                    group_steps[group].append(step)
                    step_ops.append(op)
                    step_slots.append(slots)
                    step_rules.append(plan.rule)
                    step_groups.append(group)
                elif plan.is_barrier:
                    direction = parse_direction(op.attributes.get("allowed_direction"))
                    self._add_identity(op, op.operands, op.results[0], fixed=direction)
            if removable and op.id in removable and not (step_ops and step_ops[-1] is op):
                group = problem.intern_group(StepGroup(op.name, frozenset(), NO_RULE, multi_use=False))
                self.step_of[op.id] = problem.add_step(op, (), None, group)

    def _make_plan(self, op: Op, facts: OpFacts) -> _Plan:
        """Return the plan of the steps of an op and of all with the same facts.

        Mirrors basic_propagation.cc::PropagateRegisteredOp.
        """
        # A barrier directs its step itself, whatever its rule.
        rule = None if PropagationBarrier in facts.traits else facts.rule
        if rule is not None:
            _check_arity(op, rule, len(op.operands) + len(op.results))
        plan = self._plans[facts] = _Plan(facts.traits, rule, conservative=self.conservative)
        return plan

    def _make_group(self, op: Op, plan: _Plan, *, multi_use: bool) -> int:
        """Return the step group of an op, and keep it in its plan."""
        assert plan.rule is not None, "only asked for ops with a rule"
        is_elementwise = Elementwise in plan.traits
        rule_id = self.problem.outcomes.intern_rule(plan.rule)
        # Enum members are hashed slowly, and so are groups; most are known already.
        key = (op.name, plan.traits, rule_id, multi_use, plan.fixed and int(plan.fixed), plan.conservative)
        cached_group = self._groups.get(key)
        if cached_group is None:
            group = StepGroup(op.name, plan.traits, rule_id, multi_use, plan.fixed, is_elementwise, plan.conservative)
            cached_group = self._groups[key] = self.problem.intern_group(group)
        plan.groups[multi_use] = cached_group
        return cached_group

    def _add_edge(self, op: Op) -> None:
        if op.name == DATA_FLOW_EDGE:
            self._add_data_flow_edge(op)
        elif op.name == FUNC_DATA_FLOW_EDGE:
            self._enter_edge(self._add_identity(op, list(self._func_edge_sources(op)), op.results[0]))

    def _add_identity(
        self,
        op: Op,
        sources: Sequence[Value],
        result: Value,
        *,
        fixed: Direction | None = None,
        multi_use: bool | None = None,
    ) -> int | None:
        """Add a step that shards all sources like the result, and return it; None where there is nothing to shard."""
        shape = static_shape(result.type)
        if shape is None or not sources:
            return None
        key = (op.name, shape, len(sources), fixed)
        plan = self._identities.get(key)
        if plan is None:
            rule = identity_rule(shape, num_operands=len(sources))
            plan = self._identities[key] = _Plan(self.semantics.get_traits(op), rule, fixed=fixed)
        if multi_use is None:
            multi_use = has_multi_use(op)
        group = plan.groups[multi_use]
        if group is None:
            group = self._make_group(op, plan, multi_use=multi_use)
        slots = slots_of(sources, (result,), self.slots.of_value)
        step = self.step_of[op.id] = self.problem.add_step(op, slots, plan.rule, group)
        return step

    def _add_data_flow_edge(self, op: Op) -> None:
        """Add the step of an edge inside a function.

        Mirrors basic_propagation.cc::PropagateDataFlowEdgeOp.
        """
        info = self.slots.edges.get(op.id)
        if info is None:
            raise _dangling_edge(op, "a block argument or result of an op with data flow edges, used nowhere else")
        sources = [user.operands[number] for user, number in info.data_flow.get_edge_sources(info.owner_op, info.owner)]
        # The edge of an owner is its only user.
        step = self._add_identity(op, sources, op.results[0], multi_use=False)
        self._enter_edge(step)
        if step is not None and self._transforms(info.data_flow):
            self.problem.transforms[step] = edge_transform(info.data_flow, info.owner_op, info.owner)

    def _enter_edge(self, step: int | None) -> None:
        if step is not None:
            self._edge_steps.append(step)

    def _transforms(self, data_flow: ShardableDataFlowOpInterface) -> bool:
        """Return whether the interface has a transform of its own."""
        class_ = type(data_flow)
        has_transform = self._has_transform.get(class_)
        if has_transform is None:
            method = getattr(class_, "transform_target_sharding", None)
            has_transform = method is not ShardableDataFlowOpInterface.transform_target_sharding
            self._has_transform[class_] = has_transform
        return has_transform

    def _func_edge_sources(self, op: Op) -> Iterator[Value]:
        """Yield the values that flow into a function argument from its calls, or into a call result from the callee.

        Mirrors basic_propagation.cc::PropagateFuncDataFlowEdgeOp.
        """
        owner = op.operands[0]
        around = owner.owning_op
        if owner.is_block_argument and around.name == FUNCTION:
            for call in self._callers.get(around.attributes["sym_name"], ()):
                yield call.operands[owner.index]
        elif not owner.is_block_argument and around.name == CALL:
            callee = self.program.functions.get(around.attributes["callee"].name)
            block = entry_block(callee) if callee else None
            if block and block.last and block.last.name == RETURN:
                yield block.last.operands[owner.index]
        else:
            raise _dangling_edge(op, "an argument of a function or the result of a call")

    @cached_property
    def _callers(self) -> dict[str, list[Op]]:
        return calls_by_callee(self.program)

    def _add_groups(self) -> None:
        """Tie the slots of sharding groups together."""
        for values in members_by_group(self.program).values():
            placed = [(value, self.slots.get(value)) for value in values]
            placed = [(value, slot) for value, slot in placed if slot != NO_SLOT]
            members = tuple((value.id, (slot, self.problem.dependents.of_value(value))) for value, slot in placed)
            for value, slot in placed:
                # A member that shares its slot with others, as an argument of a loop's body does, follows the group,
                # but the group does not follow the others.
                if self.slots.values[slot] is value:
                    self.problem.tied[slot] = GroupTies(members, value.id)

    def _add_function_results(self, main: Op) -> None:
        block = entry_block(main)
        if block is None or block.last is None or IsTerminator not in self.semantics.get_traits(block.last):
            return
        rules: dict[tuple[int, ...], OpShardingRule] = {}
        for operand, result in zip(block.last.operands, main.function_results, strict=True):
            shape = static_shape(operand.type)
            slot = self.slots.get(operand)
            if shape is not None and slot != NO_SLOT:
                rule = rules.get(shape) or rules.setdefault(shape, identity_rule(shape))
                self.problem.function_results.append((rule, slot, self.slots.get(result)))


def _dangling_edge(op: Op, wanted: str) -> UnsupportedError:
    message = "the input of the data flow edge is not an edge owner with this edge as its only use"
    return UnsupportedError(Diagnostic("dangling-edge", message, op.location, op.name, f"its input must be {wanted}"))


def _check_arity(op: Op, rule: OpShardingRule, count: int) -> None:
    arity = len(rule.operand_mappings) + len(rule.result_mappings)
    if arity != count:
        message = f"the rule {rule} is for {arity} operands and results, the op has {count}"
        hint = "give one tensor mapping per operand and per result"
        raise RuleError(Diagnostic("rule-arity", message, op.location, op.name, hint))


def has_multi_use(op: Op, count_uses: Callable[[Value], int] | None = None) -> bool:
    """Return whether an operand that is not a scalar has not exactly one use.

    Args:
        op: The op.
        count_uses: Returns the number of uses of a value; by default those it has.
    """
    for value in op.operands:
        count = len(value.uses) if count_uses is None else count_uses(value)
        if count != 1 and not is_scalar(value.type):
            return True
    return False


def parse_direction(attribute: object) -> Direction:
    """Return the direction of a propagation barrier from its attribute."""
    return Direction(direction_code(attribute) or 0)

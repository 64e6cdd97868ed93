"""Ops that run as their users want the result: axes go along another dimension before the op instead of twice.

Where an axis may not stay along a dimension of an operand, the op gets it along the first dimension that it divides.
If its users want it along another one, `x[i]` in a loop, for example, would move the operand and then each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from attrs import evolve

from shardy_py.ir.graph.op_names import ALL_TO_ALL, COLLECTIVE_PERMUTE, REDUCE_SCATTER
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.walk import ops_among
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.communication.choices import meshes_by_name
from shardy_py.local.communication.exchange_in_place import bytes_to, unmoved
from shardy_py.local.communication.explicit_steps import write_collectives
from shardy_py.local.communication.moves import collective_bytes, is_one_reduce_scatter, moved_axes
from shardy_py.local.communication.program_facts import ProgramFacts
from shardy_py.local.communication.report import CommunicationChange, record_change
from shardy_py.local.communication.rewriting import reshard
from shardy_py.local.communication.routes import STEPS, Route
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.values import NoFields


class RunAsUsedPass(NoFields):
    """Shard an op as all its users want its result, where that sends less than moving the result."""

    name: ClassVar[str] = "run-as-used"

    def run(self, program: Program, context: PassContext) -> None:
        """Change the ops whose results move along other dimensions, the last ones first."""
        steps = list(ops_among(program, (ALL_TO_ALL, COLLECTIVE_PERMUTE)))
        facts = ProgramFacts.of(program, context) if steps else None
        changed = False
        for step in reversed(steps):
            op = step.operands[0].defining_op if step.parent is not None else None
            if facts is None or op is None or op.name in STEPS or not step.operands[0].has_one_use:
                continue
            if any(value.id in context.partial_values for value in (*op.operands, *op.results)):
                continue
            change = _run_as_used(op, facts)
            if change is not None:
                record_change(context, change)
                changed, facts = True, facts.after_change()
        if changed:
            write_collectives(program, context.semantics, context)


def _run_as_used(op: Op, facts: ProgramFacts) -> CommunicationChange | None:
    """Change an op, and return what was done, or None."""
    rule, routes = facts.semantics.get_sharding_rule(op), facts.routes.of(op.results[0])
    target = routes[0].sharding if routes else None
    mesh = None if target is None else meshes_by_name(op.program).get(str(target.mesh))
    if rule is None or target is None or mesh is None or op.regions or len(op.results) != 1:
        return None
    if any(route.summed_axes or route.sharding != target for route in routes):
        return None
    current_shardings = [facts.routes.sharding(value) for value in op.operands]
    target_shardings = _operand_shardings(rule, target)
    if target_shardings is None or not all(
        _is_handed_on(rule, number, item) for number, item in enumerate(current_shardings)
    ):
        return None
    before, after = 0.0, 0.0
    moves: list[tuple[int, Value, TensorSharding, Block]] = []
    for number, (value, end) in enumerate(zip(op.operands, target_shardings, strict=True)):
        current = current_shardings[number] or TensorSharding.fully_closed(target.mesh, end.rank)
        if end.is_equivalent(current):
            continue
        source = unmoved(value)
        definition = source.owner if isinstance(source.owner, Block) else source.owner.parent
        block = None if definition is None else facts.counts.placement(definition, [op])
        if block is None:
            return None
        while value is not source and value.has_one_use and value.defining_op is not None:
            before += _sent(value.defining_op, facts)
            value = value.defining_op.operands[0]
        scatter = _scatter_to(source, end, block, facts)
        if scatter is None:
            after += bytes_to(facts.routes, source, end, mesh) * facts.counts.of_block(block)
        else:
            # It sends as much to the other parts, and the collective behind it becomes part of it.
            before += _sent(scatter, facts)
            after += _sent(scatter, facts)
        moves.append((number, source, end, block))
    if not before:
        # The result moves once, not twice; whether anything else is better is for the plan to say.
        return None
    before += sum(_sent(step, facts) for step in _steps_of(routes))
    if after >= before:
        return None
    for number, source, end, block in moves:
        op.set_operand(number, reshard(op.program, source, end, block, _ancestor(op, block)))
    _hand_on(op, target, routes)
    return CommunicationChange(f"{op.name} runs as its users want its result", before, after, op.location)


def _operand_shardings(rule: OpShardingRule, target: TensorSharding) -> list[TensorSharding] | None:
    """Return the shardings of operands for that of the result; None where an axis is not handed on as it is."""
    axes_by_factor: dict[int, tuple[AxisRef, ...]] = {}
    for item, factors in zip(target.dim_shardings, rule.result_mappings[0], strict=True):
        if item.axes and (len(factors) != 1 or not rule.is_pass_through(factors[0])):
            return None
        if item.axes:
            axes_by_factor[factors[0]] = item.axes
    shardings = []
    for mapping in rule.operand_mappings:
        if any(len(factors) > 1 and not axes_by_factor.keys().isdisjoint(factors) for factors in mapping):
            return None
        axes = [axes_by_factor.get(factors[0], ()) if factors else () for factors in mapping]
        shardings.append(TensorSharding(target.mesh, tuple(map(DimensionSharding, axes))))
    return shardings


def _is_handed_on(rule: OpShardingRule, number: int, sharding: TensorSharding | None) -> bool:
    """Return whether the op hands all axes of an operand on to its result."""
    if sharding is None:
        return True
    in_result = {factor for factors in rule.result_mappings[0] for factor in factors}
    pairs = zip(sharding.dim_shardings, rule.operand_mappings[number], strict=True)
    return all(not item.axes or in_result.issuperset(factors) for item, factors in pairs)


def _scatter_to(source: Value, end: TensorSharding, block: Block, facts: ProgramFacts) -> Op | None:
    """Return the reduce-scatter in a block that makes a value and could give it a sharding at once, or None."""
    step, mesh = source.defining_op, meshes_by_name(facts.program).get(str(end.mesh))
    if step is None or step.name != REDUCE_SCATTER or step.parent is not block or not source.has_one_use:
        return None
    partial = facts.routes.sharding(step.operands[0])
    if partial is None or mesh is None:
        return None
    return step if is_one_reduce_scatter(source.type, partial, end, moved_axes(step), mesh) else None


def _sent(step: Op, facts: ProgramFacts) -> float:
    """Return the bytes that a device sends in all runs of a collective."""
    sharding = facts.program.sharding(step.results[0])
    mesh = None if sharding is None else meshes_by_name(facts.program).get(str(sharding.mesh))
    if mesh is None:
        return 0.0
    sent = collective_bytes(step, facts.routes.sharding(step.operands[0]), mesh)
    return sent * facts.counts.of_block(step.parent)


def _steps_of(routes: Sequence[Route]) -> list[Op]:
    """Return the collectives on some routes, the last ones first."""
    depths = {step: depth for route in routes for depth, step in enumerate(route.steps)}
    return sorted(depths, key=lambda step: -depths[step])


def _ancestor(op: Op, block: Block) -> Op:
    """Return the op of a block that is, or has in it, an op."""
    while op.parent is not block and op.parent_op is not None:
        op = op.parent_op
    return op


def _hand_on(op: Op, target: TensorSharding, routes: Sequence[Route]) -> None:
    """Give the result of an op its sharding, and the result to its users as it is."""
    op.program.shardings[op.results[0].id] = evolve(target)
    for route in routes:
        route.user.set_operand(route.number, op.results[0])
    for step in _steps_of(routes):
        step.erase()

"""Partial results combined as late as possible: once for a sum of several, and once after a loop that adds them up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from attrs import evolve, field

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.enum_attributes import combiner_of_collective
from shardy_py.ir.graph.op_names import ALL_REDUCE, REDUCE_SCATTER, REPLICATED_TO_UNREDUCED
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import ops_among
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import NO_TEXT, PassContext
from shardy_py.local.communication.axis_group import AxisGroup
from shardy_py.local.communication.balance import Balance
from shardy_py.local.communication.choices import functions_with_bodies, meshes_by_name
from shardy_py.local.communication.explicit_steps import write_collectives
from shardy_py.local.communication.moves import moved_axes
from shardy_py.local.communication.partial_choices import PartialChoices, PartialSums
from shardy_py.local.communication.partial_deliveries import PartialDelivery, partial_deliveries
from shardy_py.local.communication.program_facts import ProgramFacts
from shardy_py.local.communication.report import CommunicationChange, record_change
from shardy_py.local.communication.rewriting import (
    first_names,
    first_user,
    has_changed_delivery,
    insert,
    reshard,
    set_shardings,
)
from shardy_py.local.communication.routes import Route, erase_unused_steps
from shardy_py.local.communication.solve import Improvement, improvements
from shardy_py.sharding.combiner import Combiner, reduction_op_text
from shardy_py.sharding.op_attributes import AxisRefList
from shardy_py.sharding.tensor import ReductionOp, TensorSharding
from shardy_py.values import frozen

_WORDS: Mapping[Combiner | None, ReductionOp] = {Combiner.ADD: "sum", Combiner.MAX: "max", Combiner.MIN: "min"}


@frozen
class CombinePartialSumsLatePass:
    """Let partial results flow through the ops that are linear in them, to where combining them sends least.

    Sums are reordered: results change by what rounding makes of that.

    Args:
        machine: What else costs as much as a byte that is sent.
    """

    name: ClassVar[str] = "combine-partial-sums-late"

    machine: Balance = field(default=Balance(), metadata=NO_TEXT)

    def run(self, program: Program, context: PassContext) -> None:
        """Move the collectives that combine partial results."""
        facts = ProgramFacts.of(program, context)
        for kind in _kinds(program, context.semantics):
            if self._improve(facts, context, kind):
                facts = facts.after_change()

    def _improve(self, facts: ProgramFacts, context: PassContext, kind: PartialSums) -> bool:
        """Combine results of one kind later, and return whether anything changed."""
        program, semantics = facts.program, facts.semantics

        def distribution(op: Op, combiner: Combiner) -> Sequence[Collection[int]]:
            return facts.ops.partial_operands(op, combiner)

        changed = False
        for function in functions_with_bodies(program):
            choices = PartialChoices(program, semantics, kind, facts.routes, facts.counts, distribution, self.machine)
            if not choices.add_function(function):
                continue
            for item in improvements(list(partial_deliveries(choices))):
                record_change(context, _describe(item))
                _apply(program, item, context)
                changed = True
        if changed:
            write_collectives(program, semantics, context)
        return changed


def _kinds(program: Program, semantics: OpSemantics) -> list[PartialSums]:
    """Return the kinds of partial results that collectives combine."""
    meshes = meshes_by_name(program)
    kinds: dict[tuple[object, ...], PartialSums] = {}
    for op in ops_among(program, (ALL_REDUCE, REDUCE_SCATTER)):
        sharding = program.sharding(op.results[0])
        axes = moved_axes(op)
        if sharding is None or not isinstance(sharding.mesh, str) or sharding.mesh not in meshes or not axes:
            continue
        reduction = _WORDS.get(combiner_of_collective(op, semantics))
        if reduction is None:
            continue
        kind = PartialSums(AxisGroup(sharding.mesh, meshes[sharding.mesh], axes), reduction)
        kinds.setdefault((sharding.mesh, frozenset(axes), reduction), kind)
    return list(kinds.values())


def _describe(item: Improvement) -> CommunicationChange:
    makers = [
        delivery.value.defining_op
        for delivery in item.deliveries
        if delivery.sent and delivery.value.defining_op is not None
    ]
    concerned = [delivery for delivery in item.deliveries if has_changed_delivery(delivery, item)]
    ops = [delivery.value.defining_op for delivery in concerned] + [
        route.user for delivery in concerned for route in delivery.routes
    ]
    locations = tuple(dict.fromkeys(op.location for op in ops if op is not None and op.location))
    description = f"partial results of {first_names(dict.fromkeys(op.name for op in makers))} are combined later"
    return CommunicationChange(description, item.before, item.after, makers[0].location if makers else "", locations)


def _apply(program: Program, item: Improvement, context: PassContext) -> None:
    changed = {choice.number: choice for delivery in item.deliveries for choice in (delivery.producer, *delivery.users)}
    for choice in changed.values():
        if item.mode_of(choice) != choice.current:
            set_shardings(program, choice, item.mode_of(choice))
            for delivery in item.deliveries:
                if delivery.producer is choice and isinstance(delivery, PartialDelivery):
                    context.partial_values[delivery.value.id] = _marked(delivery, delivery.source(item.mode_of))
    for delivery in item.deliveries:
        if not isinstance(delivery, PartialDelivery):
            continue
        concerned = any(item.mode_of(choice) != choice.current for choice in (delivery.producer, *delivery.users))
        if concerned or delivery.cost(item.mode_of) < delivery.sent:
            _deliver(program, delivery, item, context)


def _deliver(program: Program, delivery: PartialDelivery, item: Improvement, context: PassContext) -> None:
    mode_of = item.mode_of
    source, is_partial = delivery.source(mode_of), delivery.is_partial(mode_of)
    targets = delivery.targets(mode_of)
    complete = [route for (_, wants_partial), routes in targets.items() if not wants_partial for route in routes]
    value = delivery.value
    if is_partial and complete:
        value = _all_reduce(program, delivery, source, complete)
    for (target, wants_partial), routes in targets.items():
        arrived = delivery.value if wants_partial else value
        block = delivery.placement(routes)
        anchor = first_user(block, routes)
        if target != source:
            arrived = reshard(program, arrived, target, block, anchor)
        if wants_partial and not is_partial:
            arrived = _keep_on_first(program, arrived, delivery, target, routes)
            context.partial_values[arrived.id] = _marked(delivery, target)
        elif wants_partial:
            context.partial_values[delivery.value.id] = _marked(delivery, source)
        for route in routes:
            route.user.set_operand(route.number, arrived)
    erase_unused_steps(delivery.routes)


def _all_reduce(program: Program, delivery: PartialDelivery, source: TensorSharding, routes: Sequence[Route]) -> Value:
    """Insert the collective that combines partial results for the users that want them complete."""
    block = delivery.placement(routes)
    attributes: dict[str, object] = {"reduction_axes": AxisRefList(delivery.group.axes), "out_sharding": source}
    if delivery.choices.kind.reduction != "sum":
        attributes["reduction_op"] = RawAttribute(reduction_op_text(delivery.choices.kind.reduction))
    return insert(program, ALL_REDUCE, delivery.value, attributes, source, block, first_user(block, routes))


def _keep_on_first(
    program: Program, value: Value, delivery: PartialDelivery, sharding: TensorSharding, routes: Sequence[Route]
) -> Value:
    """Make partial results of a complete value: it is on one device, and neutral elements are on the others."""
    target = _marked(delivery, sharding)
    attributes = {"axes": AxisRefList(delivery.group.axes), "out_sharding": target}
    block = delivery.placement(routes)
    marked = evolve(target, unreduced_axes=())
    return insert(program, REPLICATED_TO_UNREDUCED, value, attributes, marked, block, first_user(block, routes))


def _marked(delivery: PartialDelivery, sharding: TensorSharding) -> TensorSharding:
    """Return a sharding that says along which axes a value is partial."""
    return evolve(sharding, unreduced_axes=delivery.group.axes, reduction_op=delivery.choices.kind.reduction)

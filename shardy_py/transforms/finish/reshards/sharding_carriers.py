"""The carriers of the shardings of all values, found in one walk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import field

from shardy_py.ir.graph.data_flow import target_carrier
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import complete
from shardy_py.ir.graph.walk import all_ops, inner_first, names_with_trait, ops_among, outermost
from shardy_py.ir.interfaces.ops import OpSemantics, PropagationBarrier, ShardableDataFlowOpInterface, Trait
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define

NOWHERE = -1
"""The id of no value: what has it carries no sharding."""


@define(eq=False)
class OpInfo:
    """Traits and data flow of the ops of one name, as their dialect says."""

    traits: frozenset[Trait]
    data_flow: ShardableDataFlowOpInterface | None


Visit = tuple[Op, OpInfo]
"""One op with what its dialect says about it."""


@define(eq=False)
class CarrierSurvey:
    """The carriers of shardings of a program, valid as long as ops are only inserted.

    Attributes:
        carriers: Value id to the id of the value that carries its sharding, where that is another one.
        barriers: Id of the result of a propagation barrier to the barrier, whose operand may change.
        sharing: Values whose shardings one attribute holds.
    """

    carriers: dict[int, int] = field(factory=dict)
    barriers: dict[int, Op] = field(factory=dict)
    sharing: list[Sequence[Value]] = field(factory=list)

    @classmethod
    def of(cls, program: Program, semantics: OpSemantics) -> CarrierSurvey:
        """Look at all functions of a program."""
        survey = cls()
        data_flow_names = semantics.names_with_data_flow(program.op_names)
        for op in [op for op in all_ops(program) if op.regions or len(op.results) != 1 or op.name in data_flow_names]:
            is_data_flow = op.name in data_flow_names
            if (is_data_flow or op.regions) and op.parent is not program.body:
                survey._find_carriers(op, semantics)
            if not is_data_flow and len(op.results) > 1:
                survey.sharing.append(op.results)
        for op in ops_among(program, names_with_trait(program, semantics, PropagationBarrier)):
            if semantics.has_trait(op, PropagationBarrier):
                survey.barriers[op.results[0].id] = op
        return survey

    def _find_carriers(self, op: Op, semantics: OpSemantics) -> None:
        """Enter the values that carry the shardings of an op's block arguments and results."""
        data_flow = semantics.get_data_flow(op)
        values = [value for region in op.regions for block in region.blocks for value in block.arguments]
        if data_flow is None:
            self.carriers.update((value.id, NOWHERE) for value in values)
            return
        self.sharing.append(data_flow.get_op_result_edge_owners(op))
        self.sharing.append(data_flow.get_block_argument_edge_owners(op))
        for value in (*values, *op.results):
            carrier = target_carrier(op, data_flow, value)
            self.carriers[value.id] = NOWHERE if carrier is None else carrier.id

    def open_partial_shardings(self, table: dict[int, TensorSharding]) -> None:
        """Give open shardings to the values that share an attribute with one that has a sharding.

        An op holds the shardings of its results together, a data-flow op also those of its block arguments, so that
        the others have one, too, as soon as one has.
        """
        for values in self.sharing:
            shardings = complete(table, values)
            table.update(zip((value.id for value in values), shardings, strict=False))


def visits_named(program: Program, names: Iterable[str], semantics: OpSemantics) -> dict[Op, list[Visit]]:
    """Return function to the ops of some names in it, each after those in its regions."""
    visits: dict[Op, list[Visit]] = {}
    known: dict[str, OpInfo] = {}
    for op in inner_first(ops_among(program, names)):
        info = known.get(op.name) or _ask(op, semantics, known)
        visits.setdefault(outermost(op), []).append((op, info))
    return visits


def visits_of(function: Op, semantics: OpSemantics) -> list[Visit]:
    """Return all ops in a function, each after those in its regions."""
    visits: list[Visit] = []
    _enter(function, semantics, visits, {})
    return visits


def _ask(op: Op, semantics: OpSemantics, known: dict[str, OpInfo]) -> OpInfo:
    """Return the traits and the data flow of an op, cached where they hold for all ops of the name."""
    info = OpInfo(semantics.get_traits(op), semantics.get_data_flow(op))
    if semantics.traits_of_name(op.name) is not None:
        known[op.name] = info
    return info


def _enter(op: Op, semantics: OpSemantics, visits: list[Visit], known: dict[str, OpInfo]) -> None:
    for region in op.regions:
        for block in region.blocks:
            inner = block.first
            while inner is not None:
                if inner.regions:
                    _enter(inner, semantics, visits, known)
                visits.append((inner, known.get(inner.name) or _ask(inner, semantics, known)))
                inner = inner.next

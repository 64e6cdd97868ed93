"""Where the sharding of every value is held, found in one walk, so that each look-up is a look-up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, field

from shardy_py.ir.data_flow import shardable_value
from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.interfaces import OpSemantics, PropagationBarrier, ShardableDataFlowOpInterface, Trait
from shardy_py.ir.shardings import complete
from shardy_py.sharding.tensor import TensorSharding

NOWHERE = -1
"""The id of no value: what has it carries no sharding."""


@define(eq=False)
class Visit:
    """One op with what its dialect says about it."""

    op: Op
    traits: frozenset[Trait]
    data_flow: ShardableDataFlowOpInterface | None


@define(eq=False)
class Survey:
    """What holds for all ops of a program as long as only ops are inserted.

    Attributes:
        visits: The ops in every function, by its name, each after those in its regions.
        carriers: Value id to the id of the value that carries its sharding, where that is another one.
        barriers: Id of the result of a propagation barrier to the barrier, whose operand may change.
    """

    visits: dict[str, list[Visit]] = field(factory=dict)
    carriers: dict[int, int] = field(factory=dict)
    barriers: dict[int, Op] = field(factory=dict)

    @classmethod
    def of(cls, program: Program, semantics: OpSemantics) -> Survey:
        """Look at all functions of a program."""
        survey = cls()
        for name, function in program.functions.items():
            visits: list[Visit] = []
            survey._enter(function, semantics, visits)
            survey.visits[name] = visits
        return survey

    def _enter(self, op: Op, semantics: OpSemantics, visits: list[Visit]) -> None:
        get_traits, get_data_flow = semantics.get_traits, semantics.get_data_flow
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    if inner.regions:
                        self._enter(inner, semantics, visits)
                    visit = Visit(inner, get_traits(inner), get_data_flow(inner))
                    visits.append(visit)
                    if visit.data_flow is not None or inner.regions:
                        self._find_carriers(visit, semantics)
                    if PropagationBarrier in visit.traits:
                        self.barriers[inner.results[0].id] = inner

    def _find_carriers(self, visit: Visit, semantics: OpSemantics) -> None:
        """Enter the values that carry the shardings of an op's block arguments and results."""
        op = visit.op
        values = [value for region in op.regions for block in region.blocks for value in block.arguments]
        if visit.data_flow is None:
            self.carriers.update((value.id, NOWHERE) for value in values)
            return
        for value in (*values, *op.results):
            carrier = shardable_value(value, semantics)
            self.carriers[value.id] = NOWHERE if carrier is None else carrier.id

    def open_partial_shardings(self, table: dict[int, TensorSharding]) -> None:
        """Give open shardings to the values that share an attribute with one that has a sharding.

        An op holds the shardings of its results together, a data-flow op also those of its block arguments, so that
        the others have one, too, as soon as one has.
        """
        for visits in self.visits.values():
            for visit in visits:
                for values in _sharing_an_attribute(visit):
                    shardings = complete(table, values)
                    table.update(zip((value.id for value in values), shardings, strict=False))


def _sharing_an_attribute(visit: Visit) -> Iterable[Sequence[Value]]:
    op, data_flow = visit.op, visit.data_flow
    if data_flow is not None:
        yield data_flow.get_op_result_edge_owners(op)
        yield data_flow.get_block_argument_edge_owners(op)
    elif len(op.results) > 1:
        yield op.results

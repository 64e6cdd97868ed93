"""A plan as shardings of a program: of its inputs alone, of all tensors, or with constraints on resharded operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from attrs import field

from shardy_py.api.main_function import arguments_of
from shardy_py.ir.graph.op_names import CONSTRAINT
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.plans.graph import Placement, PlanGraph
from shardy_py.plans.model import Choice, need
from shardy_py.plans.prices import Prices
from shardy_py.plans.strategies import seen_by
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.values import define

Way = Literal["inputs", "constraints"]
"""The extent to which a plan is written: shardings of inputs and tied results, or all of it."""


@define(eq=False)
class PlanWriter:
    """Writes a choice into a program.

    Attributes:
        graph: The graph of the program.
        prices: What knows the axes.
        mesh_name: The name of the mesh.
        choice: The strategies.
        tied: The results of the function that have the placement of an argument: result number to node.
    """

    graph: PlanGraph
    prices: Prices
    mesh_name: str
    choice: Choice
    tied: dict[int, int] = field(factory=dict)

    def sharding(self, placement: Placement, rank: int) -> TensorSharding:
        """Return the closed sharding of a placement."""
        axes: list[list[AxisRef]] = [[] for _ in range(rank)]
        for (name, _), dim in zip(self.prices.axes, placement, strict=True):
            if dim is not None:
                axes[dim].append(AxisRef(name))
        return TensorSharding(self.mesh_name, tuple(DimensionSharding(tuple(names), is_closed=True) for names in axes))

    def out(self, number: int) -> Placement:
        """Return the placement of a node's results."""
        return self.choice[self.graph.head(number)].out

    def inputs(self) -> dict[str, TensorSharding]:
        """Return the shardings of the arguments by name."""
        arguments = (node for node in self.graph.nodes if node.op is None)
        return {
            node.name: self.sharding(self.out(node.number), len(self.graph.shape(node.results[0])))
            for node in arguments
        }

    def results(self) -> dict[int, TensorSharding]:
        """Return the shardings of the results that are tied to arguments, by number."""
        return {
            number: self.sharding(self.out(node), len(self.graph.shape(self.graph.nodes[node].results[0])))
            for number, node in self.tied.items()
        }

    def resharded(self) -> list[tuple[int, int, TensorSharding]]:
        """Return the operands that are resharded: op id, number of the operand, the sharding that it needs."""
        operands = []
        for node in self.graph.nodes:
            head = self.graph.head(node.number)
            for number in node.live:
                slot = node.operands[number]
                root, dims = self.graph.views[slot]
                want = need(node, number, self.choice[head], head)
                have = seen_by(self.out(self.graph.node_of[root]), dims)
                if node.op is not None and slot not in self.graph.thin and want != have:
                    operands.append((node.op.id, number, self.sharding(want, len(self.graph.shape(slot)))))
        return operands

    def on_given(self, way: Way) -> Callable[[Program, Op], None]:
        """Return what writes the plan into the program that was given, before any pass."""
        slots = self.graph.session.problem.slot_of
        argument_slots = {
            node.results[0]: self.sharding(self.out(node.number), len(self.graph.shape(node.results[0])))
            for node in self.graph.nodes
            if way == "constraints" or node.op is None
            if node.results[0] >= 0 and self.graph.shape(node.results[0])
        }

        def write(program: Program, main: Op) -> None:
            ops: dict[int, Op] = {}
            values: list[Value] = list(arguments_of(main))
            for op in main.regions[0].blocks[0].ops:
                ops[op.id] = op
                values.extend(op.results)
            for value in values:
                sharding = argument_slots.get(slots.get(value.id, -1))
                if sharding is not None:
                    program.shardings[value.id] = sharding
            results = main.function_results
            program.shardings.update({results[number].id: item for number, item in self.results().items()})
            if way == "constraints":
                _constrain(program, ops, self.resharded())

        return write


def _constrain(program: Program, ops: dict[int, Op], operands: list[tuple[int, int, TensorSharding]]) -> None:
    """Put constraints before ops; operands that need the same sharding of a tensor share one."""
    written: dict[tuple[int, TensorSharding], Op] = {}
    for op_id, number, sharding in operands:
        op = ops.get(op_id)
        if op is None or number >= len(op.operands):
            continue
        value = op.operands[number]
        constraint = written.get((value.id, sharding))
        if constraint is None:
            constraint = Op(program, CONSTRAINT, [value], [value.type])
            value.insert_after(constraint)
            program.shardings[constraint.result.id] = sharding
            written[value.id, sharding] = constraint
        op.set_operand(number, constraint.result)

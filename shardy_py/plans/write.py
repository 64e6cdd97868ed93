"""A plan as shardings of a program: of its inputs, of results of ops, and constraints on resharded operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field

from shardy_py.api.main_function import arguments_of
from shardy_py.ir.graph.op_names import CONSTRAINT
from shardy_py.ir.graph.program import Op, Program
from shardy_py.plans.graph import Placement, PlanGraph
from shardy_py.plans.model import Choice, need
from shardy_py.plans.prices import Prices
from shardy_py.plans.strategies import seen_by
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define, frozen


@frozen
class Pin:
    """A sharding inside a program.

    Args:
        op: The id of an op.
        operand: The number of its operand that has a constraint; None for its first result.
        sharding: The sharding.
    """

    op: int
    operand: int | None
    sharding: TensorSharding


@frozen
class WrittenPlan:
    """Shardings of a plan by their places in the program, which may be read anew, and in another process.

    Args:
        arguments: Number of an argument to its sharding.
        results: Number of a result to its sharding.
        pins: The shardings inside.
        uses: A use of the result of each op with a sharding, by op and operand: the data-flow edge behind a call is not
            in the program as it is before any pass, and what uses its result is.
    """

    arguments: Mapping[int, TensorSharding]
    results: Mapping[int, TensorSharding]
    pins: tuple[Pin, ...]
    uses: Mapping[int, tuple[int, int]]

    def write_into(self, program: Program, main: Op) -> None:
        """Write the plan into the program, as it is before any pass."""
        arguments, results = arguments_of(main), main.function_results
        program.shardings.update({arguments[number].id: item for number, item in self.arguments.items()})
        program.shardings.update({results[number].id: item for number, item in self.results.items()})
        ops = {op.id: op for op in main.regions[0].blocks[0].ops}
        for pin in self.pins:
            if pin.operand is not None:
                continue
            user, number = self.uses.get(pin.op, (-1, 0))
            if pin.op in ops:
                program.shardings[ops[pin.op].results[0].id] = pin.sharding
            elif user in ops and number < len(ops[user].operands):
                program.shardings[ops[user].operands[number].id] = pin.sharding
        _constrain(program, ops, [(pin.op, pin.operand, pin.sharding) for pin in self.pins if pin.operand is not None])


@define(eq=False)
class PlanWriter:
    """Writes a choice into a program.

    Attributes:
        graph: The graph of the program.
        prices: The prices, with the axes of the mesh.
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
        return self.prices.sharding(placement, rank, self.mesh_name)

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

    def pins(self) -> tuple[Pin, ...]:
        """Return all shardings inside: those of the results of ops, then those of operands that are resharded."""
        results, operands = [], []
        for node in self.graph.nodes:
            if node.op is None:
                continue
            head, shape = self.graph.head(node.number), self.graph.shape(node.results[0])
            if node.results[0] >= 0 and shape:
                results.append(Pin(node.op.id, None, self.sharding(self.out(node.number), len(shape))))
            for number in node.live:
                slot = node.operands[number]
                root, dims = self.graph.views[slot]
                want = need(node, number, self.choice[head], head)
                have = seen_by(self.out(self.graph.node_of[root]), dims)
                if slot not in self.graph.thin and want != have:
                    operands.append(Pin(node.op.id, number, self.sharding(want, len(self.graph.shape(slot)))))
        return (*results, *operands)

    def written(self, pins: Sequence[Pin]) -> WrittenPlan:
        """Return the plan with some of its shardings inside."""
        slots = self.graph.session.problem.slot_of
        nodes = {node.results[0]: node for node in self.graph.nodes if node.op is None}
        arguments = {}
        for number, value in enumerate(arguments_of(self.graph.session.main)):
            node = nodes.get(slots.get(value.id, -1))
            if node is not None:
                arguments[number] = self.sharding(self.out(node.number), len(self.graph.shape(node.results[0])))
        return WrittenPlan(arguments, self.results(), tuple(pins), self._uses_of_edges(pins))

    def _uses_of_edges(self, pins: Sequence[Pin]) -> dict[int, tuple[int, int]]:
        """Return a use, by op and operand, of the result of each op with a sharding; the last one of several."""
        pinned = {pin.op for pin in pins if pin.operand is None}
        return {
            value.defining_op.id: (op.id, number)
            for op in self.graph.session.main.regions[0].blocks[0].ops
            for number, value in enumerate(op.operands)
            if value.defining_op is not None and value.defining_op.id in pinned
        }


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

"""The graph of a program as planning sees it: arguments, ops that have a choice, and views between them.

Nothing here knows an op by name: what an op may do follows from its sharding rule. An op with one operand that passes
all factors through, such as a transpose or a conversion, is a view: no choice, just a map of dimensions; unless it is
larger than what it views and has several users, as it is sent to those that need another sharding than it has. An
elementwise op with several operands follows its latest full operand. Ops of constants only are free, as each user
makes them again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from math import prod

from attrs import field

from shardy_py.api.main_function import argument_names, arguments_of
from shardy_py.cost.session import Session
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.support.element_types import mlir_element_bits
from shardy_py.values import define, frozen

Placement = tuple[int | None, ...]
"""For each axis of the mesh the dimension that it shards, or None."""
Dims = tuple[int | None, ...]
"""For each dimension of a view the dimension of its root, or None for one that was added."""

_SEVERAL = 2
"""The number of users from which a view that is larger than what it views is sent, not made again."""


@define(eq=False)
class PlanNode:
    """An argument, which has no op, or an op with a choice.

    Attributes:
        number: Its position among the nodes.
        name: The name of the argument or of the op.
        results: The slots of its results; of an argument its own.
        operands: The slots of its operands.
        live: The numbers of the operands that depend on arguments.
        place: The position in the order of data flow; -1 for arguments.
        op: The op.
        rule: Its rule.
        leader: The number of the node that it follows, or None.
        primary: The number of the operand by which it follows.
    """

    number: int
    name: str
    results: tuple[int, ...]
    operands: tuple[int, ...] = ()
    live: tuple[int, ...] = ()
    place: int = -1
    op: Op | None = None
    rule: OpShardingRule | None = None
    leader: int | None = None
    primary: int | None = None

    @property
    def is_elementwise(self) -> bool:
        """True if all its operands and its one result have the same factors."""
        rule = self.rule
        return (
            rule is not None
            and _passes_all_through(rule)
            and len(self.results) == 1
            and all(rule.operand_mappings[number] == rule.result_mappings[0] for number in self.live)
        )


@frozen
class NodeUse:
    """A use of a tensor by a node, past views: which operand, the map of dimensions, and the bytes that are sent."""

    node: int
    operand: int
    dims: Dims
    bytes: float


@define(eq=False)
class PlanGraph:
    """Nodes, views and uses of a session's program.

    Attributes:
        session: The session.
        nodes: Arguments, then ops in the order of data flow.
        views: Slot to the slot of its root and the map of dimensions.
        node_of: Slot of a root to its node.
        uses: Slot of a root to its uses.
        trails: Slot to the views, or the op of constants, that it is made by, each with the map of the slot's
            dimensions to those of that op's result.
        thin: Slots that have added dimensions; these are not worth a sharding of their own.
    """

    session: Session
    nodes: list[PlanNode] = field(factory=list)
    views: dict[int, tuple[int, Dims]] = field(factory=dict)
    node_of: dict[int, int] = field(factory=dict)
    uses: dict[int, list[NodeUse]] = field(factory=lambda: defaultdict(list))
    trails: dict[int, tuple[tuple[Op, Dims], ...]] = field(factory=dict)
    thin: set[int] = field(factory=set)
    _free: set[int] = field(factory=set)
    _users: Counter[int] = field(factory=Counter)

    @classmethod
    def of(cls, session: Session) -> PlanGraph:
        """Return the graph of a session's program."""
        graph = cls(session)
        graph._add_arguments()
        steps = list(graph._in_order(graph._steps()))
        graph._users.update(slot for _, slots, rule in steps for slot in slots[: len(rule.operand_mappings)])
        graph._users.update(value for value, _ in graph.returned())
        for place, (op, slots, rule) in enumerate(steps):
            graph._add(place, op, slots, rule)
        for node in graph.nodes:
            for number in node.live:
                if number != node.primary:
                    root, dims = graph.views[node.operands[number]]
                    size = min(graph.bytes(root), graph.bytes(node.operands[number]))
                    graph.uses[root].append(NodeUse(node.number, number, dims, size))
        return graph

    def shape(self, slot: int) -> tuple[int, ...]:
        """Return the shape of a slot; empty for one that cannot be sharded."""
        kind = self.session.problem.slot_values[slot].type if slot >= 0 else None
        if not isinstance(kind, TensorType) or any(size is None for size in kind.shape):
            return ()
        return tuple(size or 0 for size in kind.shape)

    def type_text(self, slot: int) -> str:
        """Return the type of a slot as text."""
        return str(self.session.problem.slot_values[slot].type)

    def element_type(self, slot: int) -> str:
        """Return the element type of a slot."""
        return str(getattr(self.session.problem.slot_values[slot].type, "element_type", "f32"))

    def bytes(self, slot: int) -> float:
        """Return the bytes of a slot, unsharded."""
        return prod(self.shape(slot)) * max(8, mlir_element_bits(self.element_type(slot)) or 32) / 8

    def head(self, number: int) -> int:
        """Return the node whose choice a node follows; itself if it has its own."""
        while (leader := self.nodes[number].leader) is not None:
            number = leader
        return number

    def returned(self) -> list[tuple[int, int]]:
        """Return the slots of returned values with those of the function's results."""
        return [(value, result) for _, value, result in self.session.problem.function_results]

    def _add_arguments(self) -> None:
        problem, main = self.session.problem, self.session.main
        produced = {
            slot
            for slots, rule in zip(problem.step_slots, problem.step_rules, strict=False)
            if rule is not None
            for slot in slots[len(rule.operand_mappings) :]
        }
        for name, value in zip(argument_names(main), arguments_of(main), strict=True):
            slot = problem.slot_of.get(value.id)
            if slot is not None and self.shape(slot):
                self._new(PlanNode(len(self.nodes), name, (slot,)))
        self._free.update(set(range(len(problem.slot_values))) - produced - self.node_of.keys())

    def _new(self, node: PlanNode) -> None:
        self.nodes.append(node)
        for slot in node.results:
            if slot >= 0:
                self.node_of[slot] = node.number
                self.views[slot] = (slot, tuple(range(len(self.shape(slot)))))

    def _steps(self) -> list[tuple[Op, tuple[int, ...], OpShardingRule]]:
        """Return the steps with rules, and the ops without a rule with one that takes and gives whole tensors.

        Ops whose results nothing uses are left out.
        """
        problem = self.session.problem
        unused = set() if problem.removal is None else {op.id for op in problem.removal.ops}
        ruled = zip(problem.step_ops, problem.step_slots, problem.step_rules, strict=False)
        steps = [(op, tuple(slots), rule) for op, slots, rule in ruled if rule is not None and op.id not in unused]
        seen: set[int] = set()
        for slot in sorted(self._free):
            op = problem.slot_values[slot].defining_op
            if op is None or op.id in seen or op.id in unused or not self.shape(slot):
                continue
            seen.add(op.id)
            operands = tuple(problem.slot_of.get(value.id, -1) for value in op.operands)
            results = tuple(problem.slot_of.get(value.id, -1) for value in op.results)
            if any(map(self.shape, operands)):
                rule = _whole_rule([self.shape(slot) for slot in operands], [self.shape(slot) for slot in results])
                steps.append((op, operands + results, rule))
                self._free.difference_update(results)
        return steps

    def _in_order(
        self, steps: list[tuple[Op, tuple[int, ...], OpShardingRule]]
    ) -> Iterator[tuple[Op, tuple[int, ...], OpShardingRule]]:
        """Yield steps in the order of data flow."""
        maker = {
            slot: number
            for number, (_, slots, rule) in enumerate(steps)
            for slot in slots[len(rule.operand_mappings) :]
            if slot >= 0
        }
        entered: set[int] = set()
        for first in range(len(steps)):
            stack = [(first, False)]
            while stack:
                number, is_done = stack.pop()
                if is_done:
                    yield steps[number]
                elif number not in entered:
                    entered.add(number)
                    stack.append((number, True))
                    _, slots, rule = steps[number]
                    makers = (maker.get(slot) for slot in slots[: len(rule.operand_mappings)])
                    stack.extend((number, False) for number in makers if number is not None and number not in entered)

    def _add(self, place: int, op: Op, slots: tuple[int, ...], rule: OpShardingRule) -> None:
        count = len(rule.operand_mappings)
        operands, results = slots[:count], slots[count:]
        live = tuple(number for number, slot in enumerate(operands) if slot in self.views and self.shape(slot))
        if not live or not results:
            if len(results) == 1 and self.shape(results[0]):
                self.trails[results[0]] = ((op, tuple(range(len(self.shape(results[0]))))),)
            return
        produced = [slot for slot in results if slot >= 0]
        if len(live) == 1 and len(produced) == 1 and produced[0] == results[0] and _passes_all_through(rule):
            self._add_view(op, operands[live[0]], results[0], rule, live[0])
            if results[0] not in self.thin or self._users[results[0]] < _SEVERAL:
                return
            self.thin.discard(results[0])
            del self.trails[results[0]]
            self._new(PlanNode(len(self.nodes), op.name, results, operands, live, place, op, rule))
            return
        if results[0] < 0 or not produced:
            return
        node = PlanNode(len(self.nodes), op.name, results, operands, live, place, op, rule)
        if node.is_elementwise:
            if all(operands[number] in self.thin for number in live):
                self.thin.add(results[0])
            self._follow(node)
        self._new(node)

    def _add_view(self, op: Op, source: int, result: int, rule: OpShardingRule, operand: int) -> None:
        major = {factors[0]: dim for dim, factors in enumerate(rule.operand_mappings[operand]) if factors}
        root, root_dims = self.views[source]
        steps = [
            major.get(factors[0]) if factors and rule.factor_sizes[factors[0]] > 1 else None
            for factors in rule.result_mappings[0]
        ]
        dims = [None if dim is None else root_dims[dim] for dim in steps]
        trail = self.trails.get(source, ())
        shape = self.shape(result)
        self.views[result] = (root, tuple(dims))
        if source in self.thin or any(dim is None and size > 1 for dim, size in zip(dims, shape, strict=True)):
            self.thin.add(result)
        passed = tuple((other, tuple(None if dim is None else inside[dim] for dim in steps)) for other, inside in trail)
        self.trails[result] = (*passed, (op, tuple(range(len(dims)))))

    def _follow(self, node: PlanNode) -> None:
        """Let an elementwise op follow its latest operand that is a full tensor of an op."""
        rank = len(self.shape(node.results[0]))
        full = []
        for number in node.live:
            root, dims = self.views[node.operands[number]]
            leader = self.nodes[self.node_of[root]]
            is_same = dims == tuple(range(rank)) and len(self.shape(root)) == rank and leader.results[0] == root
            if is_same and leader.op is not None and node.operands[number] not in self.thin:
                full.append((leader.place, -number, leader.number))
        if full:
            _, primary, node.leader = max(full)
            node.primary = -primary


def _passes_all_through(rule: OpShardingRule) -> bool:
    return not (rule.reduction_factors or rule.need_replication_factors or rule.permutation_factors)


def _whole_rule(operands: list[tuple[int, ...]], results: list[tuple[int, ...]]) -> OpShardingRule:
    """Return the rule of an op without one: whole tensors, unless one operand and one result have the same shape."""
    if len(operands) == len(results) == 1 and operands == results:
        same = tuple((dim,) for dim in range(len(operands[0])))
        return OpShardingRule(operands[0], (same,), (same,))
    sizes: list[int] = []
    mappings = []
    for shape in operands + results:
        mappings.append(tuple((len(sizes) + dim,) for dim in range(len(shape))))
        sizes += shape
    factors = tuple(range(len(sizes)))
    count = len(operands)
    return OpShardingRule(
        tuple(sizes), tuple(mappings[:count]), tuple(mappings[count:]), need_replication_factors=factors
    )

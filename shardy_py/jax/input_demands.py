"""Demands of a program on its inputs: those of its ops, followed back to where their operands come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import evolve, field

from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.symbols import calls_by_callee
from shardy_py.ir.graph.types import TensorType
from shardy_py.jax.demand_sources import (
    FORWARDING,
    Demands,
    base_name,
    demands_of,
    is_integer,
    largest_value,
)
from shardy_py.jax.demands import INSIDE_UNIT, POSITIVE, Demand
from shardy_py.values import define

NOTHING = Demand()


def find_input_demands(program: Program, main: Op) -> list[Demand]:
    """Return the demand of the program on each argument of its main function.

    Demands of ops go back through ops that hand elements on, loops, branches and calls; where arithmetic is in
    between, as far as that is safe.

    Args:
        program: The program; its ops are those of StableHLO, CHLO, Shardy and ``func``.
        main: Its main function.
    """
    search = _Search(program)
    for op in program.walk():
        for value, demand in demands_of(op):
            search.demand(value, demand)
    search.run()
    return [search.demands.get(value.id, NOTHING) for value in main.regions[0].blocks[0].arguments]


@define
class _Search:
    """Demands by the ids of values, and the values whose demands have yet to be followed."""

    program: Program
    demands: dict[int, Demand] = field(factory=dict)
    _pending: list[Value] = field(factory=list)
    _calls: dict[str, list[Op]] = field(init=False)
    _functions: dict[str, Op] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._calls = calls_by_callee(self.program)
        self._functions = self.program.functions

    def demand(self, value: Value, demand: Demand) -> None:
        """Demand something of a value."""
        if not isinstance(value.type, TensorType):
            return
        if demand.definite and not _is_square(value.type):
            demand = evolve(demand, definite=False)
        known = self.demands.get(value.id, NOTHING)
        merged = known.merge(demand)
        if merged != known:
            self.demands[value.id] = merged
            self._pending.append(value)

    def run(self) -> None:
        """Follow all demands to where the values come from."""
        while self._pending:
            value = self._pending.pop()
            demand = self.demands[value.id]
            followed = self._before_argument(value) if isinstance(value.owner, Block) else self._before_result(value)
            for source, moved in followed(demand) if callable(followed) else ((item, demand) for item in followed):
                self.demand(source, _moved(moved, value, source))

    def _before_argument(self, value: Value) -> list[Value]:
        """Return the values that an argument of a block takes."""
        assert isinstance(value.owner, Block)
        op = value.owner.parent_op
        if op is None:
            return []
        if op.name == FUNCTION:
            return [call.operands[value.index] for call in self._calls.get(op.attributes["sym_name"], ())]
        block = value.owner
        sources = [op.operands[value.index]] if len(op.operands) == len(block.arguments) else []
        if base_name(op) == "while":
            sources.append(_returned(op.regions[-1].blocks[0])[value.index])
        return [item for item in sources if _same_elements(item, value)]

    def _before_result(self, value: Value) -> list[Value] | Callable[[Demand], Demands]:
        """Return the values whose elements a result holds, or what follows for the operands from a demand."""
        op = value.owner
        assert isinstance(op, Op)
        name = base_name(op)
        callee = callee_of(op)
        if callee is not None:
            function = self._functions.get(callee)
            blocks = function.regions[0].blocks if function is not None and function.regions else ()
            return [_returned(block)[value.index] for block in blocks]
        if name in FORWARDING:
            return [op.operands[0]] if _forwards(op) else []
        if name in ("dynamic_update_slice", "select", "clamp", "sort", "scatter"):
            return _chosen(op, name, value)
        rule = _ARITHMETIC.get(name)
        if rule is not None:
            return lambda demand: rule(op, demand)
        return _through(op, value)


def _moved(demand: Demand, value: Value, source: Value) -> Demand:
    """Return a demand without what is about the last dimension, where that is another one."""
    if demand.total is None or _sizes(value)[-1:] == _sizes(source)[-1:]:
        return demand
    return evolve(demand, total=None)


def _chosen(op: Op, name: str, value: Value) -> list[Value]:
    """Return the operands one of which each element of a result comes from."""
    if name == "sort":
        return [op.operands[value.index]]
    if name == "scatter":
        return [op.operands[value.index], op.operands[len(op.results) + 1 + value.index]]
    return list({"dynamic_update_slice": op.operands[:2], "select": op.operands[1:], "clamp": op.operands[1:2]}[name])


def _through(op: Op, value: Value) -> list[Value]:
    """Return the values that reach a result through the regions of an op, or through one like an identity."""
    if op.regions:
        values = []
        for block in (block for region in op.regions for block in region.blocks):
            returned = _returned(block)
            if len(returned) == len(op.results):
                values.append(returned[value.index])
        if base_name(op) == "while":
            values.append(op.operands[value.index])
        return [item for item in values if _same_elements(item, value)]
    is_identity = op.name.startswith("sdy.") or base_name(op) in ("optimization_barrier", "custom_call", "composite")
    if not is_identity or len(op.operands) != len(op.results):
        return []
    source = op.operands[value.index]
    return [source] if source.type == value.type else []


def _forwards(op: Op) -> bool:
    """Return whether the operand's elements are as the result's: a float that becomes an index is computed."""
    return not (base_name(op) == "convert" and is_integer(op.results[0]) and not is_integer(op.operands[0]))


def _add(op: Op, demand: Demand) -> Iterator[tuple[Value, Demand]]:
    left, right = op.operands
    if not is_integer(left):
        yield from _to_all(op, demand)
        return
    for value, other in ((left, right), (right, left)):
        amount = largest_value(other)
        if amount is None and demand.high is not None:
            amount = demand.high - demand.high // 2
        shifted = None if amount is None else demand.shift(amount)
        if shifted is not None:
            yield value, shifted


def _subtract(op: Op, demand: Demand) -> Iterator[tuple[Value, Demand]]:
    left, right = op.operands
    if is_integer(left):
        amount = largest_value(right)
        if amount is not None and demand.high is not None and not demand.shifted:
            yield left, Demand(low=amount, high=demand.high + amount, shifted=True)
        return
    if left.defining_op is None or base_name(left.defining_op) not in ("constant", "broadcast_in_dim"):
        yield left, evolve(demand, high=None, definite=False)
    elif demand.low is not None and demand.low > 0:
        # As in log(1 - x).
        yield right, evolve(INSIDE_UNIT, low=0.1)


def _multiply(op: Op, demand: Demand) -> Iterator[tuple[Value, Demand]]:
    left, right = op.operands
    if not is_integer(left):
        # A square is positive whatever it is a square of.
        yield from () if left is right else _to_all(op, demand)
        return
    for value, other in ((left, right), (right, left)):
        factor = largest_value(other)
        if factor is not None and demand.high is not None and factor > 0:
            yield value, evolve(demand, high=demand.high // factor, total=None)


def _divide(op: Op, demand: Demand) -> Iterator[tuple[Value, Demand]]:
    if not is_integer(op.operands[0]):
        yield op.operands[0], demand


def _negate(op: Op, demand: Demand) -> Iterator[tuple[Value, Demand]]:
    if demand.low is not None and demand.low < 0 and demand.high is not None:
        yield op.operands[0], Demand(low=-demand.high, high=-demand.low)


def _to_all(op: Op, demand: Demand) -> Iterator[tuple[Value, Demand]]:
    for value in op.operands:
        yield value, demand


def _positive_to_all(op: Op, demand: Demand) -> Iterator[tuple[Value, Demand]]:
    if demand.low is not None and demand.low > 0:
        for value in op.operands:
            yield value, POSITIVE if not is_integer(value) else Demand(low=1)


_ARITHMETIC: dict[str, Callable[[Op, Demand], Demands]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "negate": _negate,
    "concatenate": _to_all,
    "pad": _to_all,
    "maximum": _to_all,
    "minimum": _to_all,
    "dot": _positive_to_all,
    "dot_general": _positive_to_all,
    "einsum": _positive_to_all,
    "convolution": _positive_to_all,
}


def _returned(block: Block) -> list[Value]:
    return list(block.last.operands) if block.last is not None else []


def _same_elements(value: Value, other: Value) -> bool:
    return getattr(value.type, "element_type", "") == getattr(other.type, "element_type", "")


def _sizes(value: Value) -> tuple[int | None, ...]:
    return value.type.shape if isinstance(value.type, TensorType) else ()


def _is_square(type_: TensorType) -> bool:
    return type_.rank >= 2 and type_.shape[-1] == type_.shape[-2]

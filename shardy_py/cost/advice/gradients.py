"""The gradients that a constraint shards, too: JAX transposes a constraint to one on the gradient of the same tensor.

The gradient of what a line makes is what the transposed ops of that line read. They have its location and a scope
with ``transpose(``. An op without any, such as an addition, passes its gradient on to its operands as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from attrs import field

from shardy_py.ir.graph.program import Op, Value
from shardy_py.propagation.problem import Problem
from shardy_py.values import define

TRANSPOSED = "transpose("
_DEPTH = 4
"""Number of ops without transposed ones that are followed."""


@define(eq=False)
class Gradients:
    """The gradients of a program that was differentiated.

    Attributes:
        problem: The problem of the program.
    """

    problem: Problem
    _transposed: dict[str, list[Op]] = field(factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, problem: Problem) -> Gradients:
        """Return the gradients of a problem."""
        gradients = cls(problem)
        ops = {
            value.defining_op.id: value.defining_op for value in problem.slot_values if value.defining_op is not None
        }
        for op in ops.values():
            if op.location and TRANSPOSED in op.scope:
                gradients._transposed[op.location].append(op)
        return gradients

    def slots_of(self, value: Value) -> tuple[int, ...]:
        """Return the slots of the gradient of a value; none where there is no gradient, or it is not known."""
        if not self._transposed:
            return ()
        slots = (self.problem.slot_of.get(gradient.id, -1) for gradient in self._gradients(value, _DEPTH))
        return tuple(dict.fromkeys(slot for slot in slots if slot >= 0))

    def _gradients(self, value: Value, depth: int) -> Iterator[Value]:
        op = value.defining_op
        if op is None or not depth:
            return
        readers = self._transposed.get(op.location, ())
        for reader in readers:
            for operand in reader.operands:
                if operand.type == value.type and self._is_read_from_behind(operand, op.location):
                    yield operand
        if not readers:
            for operand in op.operands:
                if operand.type == value.type and sum(1 for _ in operand.uses) == 1:
                    yield from self._gradients(operand, depth - 1)

    def _is_read_from_behind(self, operand: Value, location: str) -> bool:
        maker = operand.defining_op
        return maker is not None and TRANSPOSED in maker.scope and maker.location != location

"""Applying rewrite patterns to ops, in the order of MLIR's greedy driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import ops_among
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.tensor import TensorSharding

Pattern = Callable[["Rewriter", Op], bool]
"""Rewrites an op if it matches; returns whether it did."""


class Rewriter:
    """A worklist driver that rewrites a program, in the order of MLIR's greedy driver.

    Ops are looked at from the last one in the program to the first. After a rewrite it is the turn of what the ops
    that are gone used, of the users of their results, and of the new ops.

    Attributes:
        program: The program.
        semantics: Answers questions about its ops.
        meshes: Its meshes by name.
    """

    def __init__(self, program: Program, semantics: OpSemantics, patterns: Mapping[str, Sequence[Pattern]]) -> None:
        """Prepare for the patterns given by name of the op, each in the order in which they are tried."""
        self.program = program
        self.semantics = semantics
        self.meshes = program.meshes
        self._patterns = patterns
        # Keys in order of insertion: a stack without duplicates.
        self._stack: dict[Op, None] = {}

    def run(self) -> bool:
        """Rewrite until no pattern applies to an op of the worklist, and return whether anything changed."""
        self._stack = dict.fromkeys(ops_among(self.program, self._patterns))
        changed = False
        while self._stack:
            op, _ = self._stack.popitem()
            changed |= any(pattern(self, op) for pattern in self._patterns[op.name])
        return changed

    def insert_before(
        self, anchor: Op, name: str, operand: Value, attributes: Mapping[str, Attribute], sharding: TensorSharding
    ) -> Value:
        """Insert an op whose result has the type of its operand, and return the result."""
        op = Op(self.program, name, [operand], [operand.type], dict(attributes))
        if anchor.parent is not None:
            anchor.parent.insert_before(anchor, op)
        self.program.shardings[op.result.id] = sharding
        self._push([op])
        return op.result

    def replace(self, op: Op, value: Value) -> None:
        """Make the users of the result of an op use another value, and erase the op."""
        self._push(user for user, _ in op.result.uses)
        op.result.replace_all_uses_with(value)
        self.erase(op)

    def erase(self, op: Op) -> None:
        """Erase an op whose results are unused."""
        for value in op.results:
            self.program.shardings.pop(value.id, None)
        for value in op.operands:
            producer = value.defining_op
            # One use less may make a difference to a producer that has no, or one, other user left.
            if producer is not None and len({user.id for user, _ in value.uses} - {op.id}) <= 1:
                self._push([producer])
        self._stack.pop(op, None)
        op.erase()

    def _push(self, ops: Iterable[Op]) -> None:
        for op in ops:
            if op.name in self._patterns:
                self._stack.setdefault(op)

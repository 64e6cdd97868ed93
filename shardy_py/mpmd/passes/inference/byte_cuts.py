"""The ops that a mesh runs itself, and the values that move to it: a minimum cut of bytes."""

from __future__ import annotations

from typing import Any

from shardy_py.api.summary import tensor_bytes
from shardy_py.ir.graph.program import Op, Value

_SOURCE, _TARGET = "elsewhere", "here"


class ByteCut:
    """A flow network with a node for each op and each value; on the source's side is what other meshes have or run.

    An edge with bytes goes from an op to each of its results: it is cut where the op runs elsewhere and its result is
    needed here. An edge without a capacity is never cut: what is used by an op that runs here is here.
    """

    def __init__(self) -> None:
        import networkx

        # Reversed, as the cut that networkx returns is the one next to its sink: of equal cuts, values move as early
        # as they can, as in the reference.
        self._graph = networkx.DiGraph()
        self._graph.add_nodes_from((_SOURCE, _TARGET))
        self._ops: set[int] = set()
        self._leaves: set[int] = set()

    @property
    def op_count(self) -> int:
        """The number of ops."""
        return len(self._ops)

    def _edge(self, start: Any, end: Any, capacity: int | None = None) -> None:
        if capacity is None:
            self._graph.add_edge(end, start)
        else:
            self._graph.add_edge(end, start, capacity=capacity)

    def add_op(self, op: Op, *, is_fixed: bool, is_movable: bool) -> None:
        """Add an op with its results; a fixed one runs here in any case, and results that are movable may move."""
        self._ops.add(op.id)
        for value in op.results:
            self._edge(("op", op.id), ("value", value.id), _bytes(value) if is_movable else None)
        if is_fixed:
            self._edge(("op", op.id), _TARGET)

    def add_leaf(self, value: Value, *, is_elsewhere: bool) -> None:
        """Add a value that no op of the network makes: one that is elsewhere, or that costs nothing on one side."""
        if value.id in self._leaves:
            return
        self._leaves.add(value.id)
        self._edge(self._producer(value), ("value", value.id), _bytes(value))
        if is_elsewhere:
            self._edge(_SOURCE, self._producer(value))

    def use(self, value: Value, op: Op, *, is_together: bool) -> None:
        """Let an op use a value; together, the value's producer runs elsewhere where the op does."""
        self._edge(("value", value.id), ("op", op.id))
        if is_together:
            self._edge(("op", op.id), self._producer(value))

    def need(self, value: Value) -> None:
        """Let a value be needed here."""
        self._edge(("value", value.id), _TARGET)

    def _producer(self, value: Value) -> Any:
        return ("leaf", value.id) if value.id in self._leaves else ("op", value.owning_op.id)

    def solve(self) -> set[int]:
        """Return the ids of the ops that run here."""
        import networkx

        _, (target_side, _) = networkx.minimum_cut(self._graph, _TARGET, _SOURCE)
        return {op_id for op_id in self._ops if ("op", op_id) in target_side}


def _bytes(value: Value) -> int:
    """Return the bytes of a whole tensor; 1 for what has no known size, so that fewer such values move."""
    return tensor_bytes(value.type, None, None) or 1

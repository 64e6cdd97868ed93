"""Runs of the blocks of a program, and the block in which an op runs least often."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import field

from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import CALL, FUNCTION
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.local.communication.operations import cost_of
from shardy_py.support.identity import identity
from shardy_py.values import define

_UNKNOWN_TRIPS = 8.0
"""The runs of the body of a loop whose number no constant gives."""


@define(eq=False)
class RunCounts:
    """Counts the runs of blocks per run of the function around them.

    Attributes:
        semantics: What is known about ops.
    """

    semantics: OpSemantics
    _counts: dict[int, float] = field(factory=dict, init=False)
    _is_loop: dict[int, bool] = field(factory=dict, init=False)

    def of_block(self, block: Block | None) -> float:
        """Return the runs of a block; a branch counts as if it were always taken."""
        op = None if block is None else block.parent_op
        if block is None or op is None or op.name == FUNCTION:
            return 1.0
        if identity(block) not in self._counts:
            outer = self.of_block(op.parent)
            self._counts[identity(block)] = outer * self._runs(op, block) if self.is_loop(op) else outer
        return self._counts[identity(block)]

    def of_functions(self, program: Program, main: str = "main") -> dict[str, float]:
        """Return how often each function runs per run of the main one; 0 for what nothing calls.

        Args:
            program: A program without recursive functions.
            main: The name of the main function.
        """
        calls: dict[str, list[tuple[str, Block | None]]] = {}
        for name, function in program.functions.items():
            for op in function.walk():
                callee = callee_of(op) if op.name == CALL else None
                if callee is not None:
                    calls.setdefault(callee, []).append((name, op.parent))
        runs: dict[str, float] = {main: 1.0}

        def count(name: str) -> float:
            if name not in runs:
                runs[name] = 0.0
                runs[name] = sum(count(caller) * self.of_block(block) for caller, block in calls.get(name, ()))
            return runs[name]

        return {name: count(name) for name in program.functions}

    def is_loop(self, op: Op) -> bool:
        """Return whether what the end of a region of an op yields flows into an argument of a region."""
        if op.id not in self._is_loop:
            self._is_loop[op.id] = self._has_back_edge(op)
        return self._is_loop[op.id]

    def placement(self, definition: Block, users: Iterable[Op]) -> Block:
        """Return the block in which an op that serves all users of a value runs least often.

        It is outside of every loop that the value does not depend on, and inside of every branch that all users are
        in: what one branch needs is not sent for the others.

        Args:
            definition: The block in which the value is defined.
            users: The users.
        """
        paths = [self._path(definition, user) for user in users]
        common = paths[0]
        for path in paths[1:]:
            length = next((n for n, pair in enumerate(zip(common, path, strict=False)) if pair[0] is not pair[1]), None)
            common = common[: min(len(common), len(path)) if length is None else length]
        while len(common) > 1 and self._leads_into_loop(common[-1]):
            common.pop()
        return common[-1]

    def _path(self, definition: Block, user: Op) -> list[Block]:
        """Return the blocks from the one of a definition to that of a user."""
        path: list[Block] = []
        block = user.parent
        while block is not None and block is not definition:
            path.append(block)
            parent = block.parent_op
            block = None if parent is None else parent.parent
        return [definition, *reversed(path)]

    def _leads_into_loop(self, block: Block) -> bool:
        parent = block.parent_op
        return parent is not None and self.is_loop(parent)

    def _runs(self, op: Op, block: Block) -> float:
        cost = cost_of(op, self.semantics)
        if cost is None:
            return _UNKNOWN_TRIPS
        runs: Sequence[float | None] = cost.get_region_runs(op)
        number = next(n for n, region in enumerate(op.regions) if region is block.parent)
        trips = runs[number] if number < len(runs) else None
        return _UNKNOWN_TRIPS if trips is None else trips

    def _has_back_edge(self, op: Op) -> bool:
        flow = self.semantics.get_data_flow(op) if op.regions else None
        if flow is None:
            return False
        for owner in (*flow.get_op_result_edge_owners(op), *flow.get_block_argument_edge_owners(op)):
            targets = (owner, *flow.get_non_edge_owner_targets(op, owner))
            if any(source.op is not op for source in flow.get_edge_sources(op, owner)) and any(
                target.is_block_argument for target in targets
            ):
                return True
        return False

"""Number of runs of each op of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

from attrs import frozen

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.callgraph import callee_of
from shardy_py.ir.graph import Block, Op, Program
from shardy_py.ir.op_names import MANUAL_COMPUTATION
from shardy_py.ir.symbols import SYMBOL_NAME, functions_callees_first
from shardy_py.plugins import Registry
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import symbol

_SHARDINGS = ("in_shardings", "out_shardings")

RuleOf = Callable[[Op], OpShardingRule | None]


@frozen
class Run:
    """An op with how often it runs.

    Args:
        op: The op.
        count: The number of runs on one device; a fraction in a branch that may be taken or not.
        parts: How many parts of the whole program's work the op stands for: in a manual computation each group of
            devices has its own.
    """

    op: Op
    count: float
    parts: int


class Runs:
    """Number of runs of each op, counted from the main function.

    Attributes:
        notes: What was assumed.
    """

    def __init__(self, program: Program, main: Op, registry: Registry, rule_of: RuleOf) -> None:
        self.notes: dict[str, None] = {}
        self._program = program
        self._main = main
        self._registry = registry
        self._rule_of = rule_of
        self._callers: dict[str, list[tuple[float, int]]] = {}

    def __iter__(self) -> Iterator[Run]:
        """Iterate over the ops that compute or move something, functions after those that call them."""
        self._callers = {self._main.attributes[SYMBOL_NAME]: [(1.0, 1)]}
        done: set[str] = set()
        for function in reversed(functions_callees_first(self._program)):
            name = function.attributes[SYMBOL_NAME]
            done.add(name)
            calls = self._callers.get(name, [])
            # Calls from manual computations and from elsewhere differ in the parts.
            for parts in dict.fromkeys(parts for _, parts in calls):
                count = sum(count for count, other in calls if other == parts)
                for block in function.regions[0].blocks:
                    yield from self._block(block, count, parts, done)

    def _block(self, block: Block, count: float, parts: int, done: set[str]) -> Iterator[Run]:
        for op in block.ops:
            callee = callee_of(op)
            if callee is not None:
                if callee in done:
                    raise _recursion(op, callee)
                self._callers.setdefault(callee, []).append((count, parts))
                continue
            if not self.is_control_flow(op):
                yield Run(op, count, parts)
                continue
            inner_parts = parts * self._manual_groups(op)
            for region, runs in zip(op.regions, self._region_runs(op), strict=True):
                for inner in region.blocks:
                    yield from self._block(inner, count * runs, inner_parts, done)

    def is_control_flow(self, op: Op) -> bool:
        """Return whether what an op costs is what stands in its regions, rather than what its rule says."""
        return bool(op.regions) and (self._registry.get_data_flow(op) is not None or self._rule_of(op) is None)

    def _region_runs(self, op: Op) -> list[float]:
        cost = self._registry.get_cost(op)
        if cost is not None:
            runs = list(cost.get_region_runs(op))
        else:
            runs = [None if carries(op, self._registry) else 1.0] * len(op.regions)
        if any(number is None for number in runs):
            place = f" at {op.location}" if op.location else ""
            self.notes[f"how often {op.name}{place} runs its regions is not known: counted once"] = None
        return [1.0 if number is None else number for number in runs]

    def _manual_groups(self, op: Op) -> int:
        """Return the number of groups of devices that a manual computation gives work of their own; 1 for other ops."""
        if op.name != MANUAL_COMPUTATION:
            return 1
        meshes = self._program.meshes
        mentioned = [item for name in _SHARDINGS if name in op.attributes for item in op.attributes[name].shardings]
        mesh = next((found for item in mentioned if (found := resolve_mesh(item.mesh, meshes)) is not None), None)
        return 1 if mesh is None else prod(mesh.axis_size(name) for name in op.attributes["manual_axes"].names)


def carries(op: Op, registry: Registry) -> bool:
    """Return whether the results of an op start as its operands, as those of a loop do."""
    data_flow = registry.get_data_flow(op) if op.regions else None
    if data_flow is None:
        return False
    owners = (*data_flow.get_op_result_edge_owners(op), *data_flow.get_block_argument_edge_owners(op))
    return any(
        _starts_as_operand(op, [source.op for source in data_flow.get_edge_sources(op, owner)]) for owner in owners
    )


def _starts_as_operand(op: Op, sources: Sequence[Op]) -> bool:
    return op in sources and any(source is not op for source in sources)


def _recursion(call: Op, callee: str) -> UnsupportedError:
    message = f"the function {symbol(callee)} calls itself, directly or through others"
    hint = "unroll the recursion, or use a loop op"
    return UnsupportedError(Diagnostic("recursion", message, call.location, call.name, hint))

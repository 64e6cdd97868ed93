"""Peak memory of a device, from the live range of every value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from shardy_py.analysis.cost.runs import carries
from shardy_py.analysis.cost.sizes import LocalSizes
from shardy_py.analysis.cost.traffic import Traffic
from shardy_py.ir.callgraph import callee_of
from shardy_py.ir.graph import Block, Op, Program, Value
from shardy_py.ir.interfaces import IsTerminator
from shardy_py.ir.op_values import entry_arguments
from shardy_py.ir.symbols import SYMBOL_NAME, functions_callees_first
from shardy_py.plugins import Registry

HOW = (
    "by liveness: arguments and results, and at each op the stored values that are still used; elementwise ops and"
    " loops reuse the memory of what they are the last to use"
)
_DONATED = ("tf.aliasing_output", "jax.buffer_donor")
"""Attributes of arguments whose memory the results may take; JAX's names."""


@frozen
class MainMemory:
    """The memory of the main function on one device, in bytes."""

    arguments: int
    results: int
    peak: int


class Liveness:
    """Search for the largest sum of live bytes."""

    def __init__(self, program: Program, registry: Registry, sizes: LocalSizes, traffic: Traffic) -> None:
        self._program = program
        self._registry = registry
        self._sizes = sizes
        self._traffic = traffic
        self._functions: dict[str, int] = {}
        self._views: set[int] = set()

    def measure(self, main: Op) -> MainMemory:
        """Return the memory of the main function."""
        for function in functions_callees_first(self._program):
            if function is not main:
                block = function.regions[0].blocks[0]
                self._functions[function.attributes[SYMBOL_NAME]] = self._extra(block)
        arguments = entry_arguments(main)
        argument_bytes = self._sizes.total(arguments)
        result_bytes = self._sizes.total(main.function_results)
        given: Sequence[Mapping[str, Any]] = main.attributes.get("arg_attrs") or ({},) * len(arguments)
        donated = [
            value for value, item in zip(arguments, given, strict=True) if any(name in item for name in _DONATED)
        ]
        temporary = max((self._peak(block, donated) for region in main.regions for block in region.blocks), default=0)
        reused = min(self._sizes.total(donated), result_bytes)
        kept = argument_bytes - self._sizes.total(donated)
        return MainMemory(argument_bytes, result_bytes, max(kept + temporary, argument_bytes + result_bytes - reused))

    def _extra(self, block: Block) -> int:
        """Return the bytes of a block besides its arguments, whose memory it may use when it is done with them."""
        return max(0, self._peak(block, block.arguments) - self._sizes.total(block.arguments))

    def _peak(self, block: Block, owned: Sequence[Value]) -> int:
        """Return the largest sum of bytes of the values made in a block and of arguments whose memory it may use."""
        dying = _last_uses(block, owned)
        live = self._sizes.total(owned)
        peak = live
        for op in block.ops:
            self._note_views(op, dying.get(op.id, ()))
            made = 0 if self._registry.has_trait(op, IsTerminator) else self._made(op)
            freed = sum(self._bytes(value) for value in dying.get(op.id, ()))
            reused = min(made, freed) if self._traffic.may_overwrite(op) else 0
            inside = self._inside(op)
            # What a loop hands back lies where its initial values lay; elsewhere the results are made inside.
            during = made - reused + inside if carries(op, self._registry) else max(made - reused, inside)
            peak = max(peak, live + during)
            live += made - freed
            live -= sum(self._bytes(value) for value in op.results if not value.uses)
        return peak

    def _note_views(self, op: Op, dying: Sequence[Value]) -> None:
        """Find the results of a loop that it only reads: they are its operands, which others still need."""
        data_flow = self._registry.get_data_flow(op) if carries(op, self._registry) else None
        if data_flow is None:
            return
        for owner in data_flow.get_op_result_edge_owners(op):
            sources = data_flow.get_edge_sources(op, owner)
            handed_back = [source.value for source in sources if source.op is not op]
            is_read_only = all(
                value.is_block_argument
                and value.owning_op is op
                and data_flow.get_edge_owner_from_target(op, value) is owner
                for value in handed_back
            )
            still_needed = not any(source.value in dying for source in sources if source.op is op)
            if is_read_only and still_needed:
                self._views.add(owner.id)

    def _made(self, op: Op) -> int:
        return sum(self._bytes(value) for value in op.results)

    def _bytes(self, value: Value) -> int:
        return 0 if value.id in self._views else self._traffic.stored_bytes(value)

    def _inside(self, op: Op) -> int:
        """Return the bytes that an op needs for the ops inside of it."""
        callee = callee_of(op)
        if callee is not None:
            return self._functions.get(callee, 0)
        if not op.regions or self._registry.get_data_flow(op) is None:
            return 0
        return max((self._extra(block) for region in op.regions for block in region.blocks), default=0)


def _last_uses(block: Block, owned: Sequence[Value]) -> dict[int, list[Value]]:
    """Return, by op of a block, the values that are used for the last time in it or in its regions."""
    positions = {op.id: (index, op) for index, op in enumerate(block.ops)}
    result: dict[int, list[Value]] = {}
    for value in (*owned, *(value for _, op in positions.values() for value in op.results)):
        last = max((positions[user.id] for user in _users_in(value, block)), key=lambda item: item[0], default=None)
        if last is not None:
            result.setdefault(last[1].id, []).append(value)
    return result


def _users_in(value: Value, block: Block) -> list[Op]:
    """Return the ops of a block that use a value, themselves or in their regions."""
    found = []
    for op, _ in value.uses:
        user: Op | None = op
        while user is not None and user.parent is not block:
            user = user.parent_op
        if user is not None:
            found.append(user)
    return found

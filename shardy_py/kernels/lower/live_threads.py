"""Threads whose part of a phase anyone uses, so that the host leaves the others out.

After an exchange between lanes a sum is complete in the first lane only: one step before the end two lanes count, two
steps before it four. On devices the others compute along for nothing; on the host each of them takes its time.

A set of threads is an integer with a bit for each thread of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import eq, le, lt, or_
from types import MappingProxyType

from xdsl.dialects import arith, builtin, cf, func, llvm
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import SymbolTable

from shardy_py.kernels.dialect.gpu import ShuffleOp, ThreadIdOp
from shardy_py.kernels.dialect.memory_ops import ShuffleReduceOp
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.control import successors
from shardy_py.kernels.lower.phases import EXCHANGES, WAITS, Phase, Phases
from shardy_py.kernels.lower.regroup import is_pure
from shardy_py.kernels.passes.base import constant_value
from shardy_py.values import frozen

_COMPARISONS: Mapping[int, Callable[[int, int], bool]] = MappingProxyType({0: eq, 2: lt, 3: le, 6: lt, 7: le})
"""Comparisons of integers that are not negative, by the number of the predicate."""


@frozen
class LiveThreads:
    """The threads that have to run each phase of a kernel.

    Args:
        of_phases: For each phase these threads; along x.
        combining: For each phase that begins with a reduction over lanes those that combine values in its first step,
            counted over all dimensions; in later steps they are some of these.
    """

    of_phases: tuple[int, ...]
    combining: Mapping[int, int]


def live_threads(function: func.FuncOp, phases: Phases, launch: Launch, warp: int) -> LiveThreads:
    """Return the threads that have to run each phase.

    Args:
        function: The entry function, its blocks split where threads wait.
        phases: Its phases.
        launch: The grid.
        warp: The threads of a warp.
    """
    x, y, z = launch.threads
    reductions = {phase.number: phase.after for phase in phases.phases if isinstance(phase.after, ShuffleReduceOp)}
    if y * z > 1:
        of_phases = ((1 << x) - 1,) * len(phases.phases)
        return LiveThreads(of_phases, dict.fromkeys(reductions, (1 << x * y * z) - 1))
    analysis = _LiveThreads(function, x, warp)
    analysis.follow()
    of_phases = tuple(analysis.of_phase(phase, frozenset(phases.slots)) for phase in phases.phases)
    return LiveThreads(of_phases, {number: analysis.threads_of_reduction(op)[0] for number, op in reductions.items()})


def strips_of(threads: int, width: int) -> tuple[int, int]:
    """Return how many strips of a width threads are in, from the first one on, and how many places in a strip.

    Args:
        threads: The threads.
        width: The threads of a strip.
    """
    strips = max(1, -(-threads.bit_length() // width))
    in_any_strip = 0
    for first in range(0, strips * width, width):
        in_any_strip |= threads >> first & (1 << width) - 1
    return strips, max(1, in_any_strip.bit_length())


class _LiveThreads:
    """The threads in which each value is used."""

    def __init__(self, function: func.FuncOp, threads: int, warp: int) -> None:
        self._function = function
        self._threads = threads
        self._warp = warp
        self._all = (1 << threads) - 1
        self._used: dict[SSAValue, int] = {}
        self._computed = {op: self._is_computed(op) for block in function.body.blocks for op in block.ops}
        self._reached = self._reaching()

    def _reaching(self) -> dict[Block, int]:
        """Return the threads that can reach each block: those for which the conditions before it can hold."""
        before: dict[Block, list[tuple[Block, int]]] = {block: [] for block in self._function.body.blocks}
        for block in self._function.body.blocks:
            last = block.last_op
            assert last is not None
            for target, _ in () if isinstance(last, WAITS) else successors(last):
                then = isinstance(last, cf.ConditionalBranchOp) and last.then_block is target is not last.else_block
                before[target].append((block, self._holding(last.cond) if then else self._all))
        reaching: dict[Block, int] = {}
        for block in self._function.body.blocks:
            reached, item, seen = self._all, block, {block}
            while len(before[item]) == 1:
                ((item, threads),) = before[item]
                reached &= threads
                if item in seen:
                    break
                seen.add(item)
            reaching[block] = reached
        return reaching

    def _holding(self, condition: SSAValue) -> int:
        """Return the threads for which a condition can hold; all threads where it does not compare a thread id."""
        comparison = condition.owner
        if isinstance(comparison, arith.AndIOp):
            return self._holding(comparison.lhs) & self._holding(comparison.rhs)
        if not isinstance(comparison, arith.CmpiOp):
            return self._all
        compare, number = _COMPARISONS.get(comparison.predicate.value.data), constant_value(comparison.rhs)
        if compare is None or number is None or number < 0:
            return self._all
        rest = comparison.lhs.owner
        thread = rest.lhs.owner if isinstance(rest, arith.RemUIOp) else rest
        divisor = constant_value(rest.rhs) if isinstance(rest, arith.RemUIOp) else self._threads
        if not isinstance(thread, ThreadIdOp) or thread.dimension.data.value != "x" or not divisor:
            return self._all
        return sum(1 << item for item in range(self._threads) if compare(item % divisor, number))

    def follow(self) -> None:
        """Find the threads in which each value is used, from the last use to the first, until nothing changes."""
        is_changed = True
        while is_changed:
            is_changed = False
            for block in reversed(list(self._function.body.blocks)):
                for op in reversed(list(block.ops)):
                    is_changed |= self._follow_op(op, self._reached[block])

    def _follow_op(self, op: Operation, reached: int) -> bool:
        result_threads = 0
        for result in op.results:
            result_threads |= self._used.get(result, 0)
        if isinstance(op, ShuffleOp):
            distance, warp = (constant_value(value) for value in (op.offset, op.width))
            return self._use(op.value, result_threads | self._threads_read(result_threads, distance, warp))
        if isinstance(op, ShuffleReduceOp):
            _, used = self.threads_of_reduction(op)
            changes = [self._use(value, used) for value in op.arguments]
            return any(changes)
        used = result_threads if self._computed[op] else reached
        changes = [self._use(value, used) for value in op.operands]
        return any(changes)

    def threads_of_reduction(self, op: ShuffleReduceOp) -> tuple[int, int]:
        """Return the threads that combine values in the first step, which has the most, and those that have some."""
        if not self._is_pure_function(op, op.combiner):
            return self._all, self._all
        combining = having = 0
        for result in op.results:
            having |= self._used.get(result, 0)
        largest = op.max_distance.value.data
        for step in reversed(range(largest.bit_length())):
            combining = having
            having |= self._threads_read(having, largest >> step, self._warp)
        return combining, having

    def _threads_read(self, taking: int, distance: int | None, warp: int | None) -> int:
        """Return the threads whose values some threads read in an exchange."""
        if distance is None or warp is None or not 0 <= distance < warp:
            return self._all
        # A bit for the first lanes of each warp, behind which lies a lane at the distance.
        first_lanes = (1 << (warp - distance)) - 1
        reading = sum(first_lanes << first for first in range(0, self._threads, warp)) & self._all
        return (taking & reading) << distance & self._all

    def _use(self, value: SSAValue, threads: int) -> bool:
        before = self._used.get(value, 0)
        self._used[value] = before | threads
        return self._used[value] != before

    def _is_computed(self, op: Operation) -> bool:
        """Return whether an op does nothing but to compute its results, so that it may do so from anything."""
        return self._is_pure_function(op, op.callee) if isinstance(op, func.CallOp) else is_pure(op)

    def _is_pure_function(self, op: Operation, name: builtin.SymbolRefAttr) -> bool:
        called = SymbolTable.lookup_symbol(op, name)
        if not isinstance(called, func.FuncOp) or len(called.body.blocks) != 1:
            return False
        return all(isinstance(item, func.ReturnOp) or self._is_computed(item) for item in called.body.walk())

    def of_phase(self, phase: Phase, stored: frozenset[SSAValue]) -> int:
        """Return the threads that have to run a phase.

        Args:
            phase: The phase.
            stored: Values that are stored for later phases.
        """
        if len(phase.exits) > 1:
            return self._all
        threads = 0
        values: list[SSAValue] = list(phase.after.results) if phase.after is not None else []
        for block in phase.blocks:
            values += block.args
            for op in block.ops:
                values += op.results
                threads |= self._needing(op, block)
        for value in values:
            threads |= self._used.get(value, 0) if value in stored else 0
        return threads

    def _needing(self, op: Operation, block: Block) -> int:
        """Return the threads that have to run an op for more than its results."""
        if isinstance(op, EXCHANGES):
            values = op.arguments if isinstance(op, ShuffleReduceOp) else (op.value,)
            return reduce(or_, (self._used.get(value, 0) for value in values))
        if isinstance(op, llvm.LoadOp) or op is block.last_op or self._computed[op]:
            return 0
        return self._reached[block]

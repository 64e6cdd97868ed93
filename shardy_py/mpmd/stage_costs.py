"""Times and bytes of the ops of a program, and where it is cut into stages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from math import inf
from typing import Any

from shardy_py.api.result import Result
from shardy_py.api.summary import tensor_bytes
from shardy_py.cost.machines.toml import MachineLike, get_machine
from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.support.texts import format_bytes, format_seconds
from shardy_py.values import define, frozen

_MOST_PLACES = 400


@frozen
class StageCost:
    """One stage of a program that is cut: ops that follow each other.

    Args:
        first: The number of its first op.
        end: The number of the first op behind it.
        seconds: The time of its forward part on one mesh, with communication inside of the mesh.
        transfer_seconds: The time of what it sends to the next stages.
        sent_bytes: The bytes that each device sends on.
        argument_bytes: The bytes of the program's arguments that it uses, on one device.
        activation_bytes: The bytes of what its ops give, on one device, which the backward part may need.
        names: The names of its first and last op, with the types of their results.
    """

    first: int
    end: int
    seconds: float
    transfer_seconds: float
    sent_bytes: int
    argument_bytes: int
    activation_bytes: int
    names: tuple[str, str]

    def __str__(self) -> str:
        """Return the stage in one line."""
        sends = f", sends {format_bytes(self.sent_bytes)}" if self.sent_bytes else ""
        ops = f"ops {self.first} to {self.end - 1}"
        return f"{ops}, {self.names[0]} to {self.names[1]}: {format_seconds(self.seconds)}{sends}"


@define(eq=False, slots=False)
class ProgramCosts:
    """Times and bytes of the ops in the main block of a propagated program.

    Args:
        ops: The ops, without the terminator.
        seconds: The time of each, with the communication for it.
        bandwidth: The bytes per second that a device sends to another mesh.
        latency: The time of an empty transfer.
        machine_memory: The bytes of a device; None where the machine does not say.
    """

    ops: tuple[Op, ...]
    seconds: tuple[float, ...]
    bandwidth: float
    latency: float
    machine_memory: int | None

    @classmethod
    def of(cls, result: Result, machine: MachineLike) -> ProgramCosts:
        """Return the costs of a result on a machine; between meshes the slowest link of the machine counts."""
        known = get_machine(machine)
        block = main_block(result.program)
        ops = tuple(op for op in block.ops if op is not block.terminator)
        cost = result.cost(machine=known)
        times = [(kernel.location, kernel.seconds or 0.0) for kernel in cost.ops]
        times += [(transfer.location, (transfer.seconds or 0.0) * transfer.runs) for transfer in cost.transfers]
        # What is priced is the program of each device; its ops are where those are that they stand for.
        numbers = op_numbers(block)
        seconds = [0.0] * len(ops)
        for location, time in times:
            for number in numbers.get(location, ()):
                seconds[number] += time / len(numbers[location])
        total, placed = sum(time for _, time in times), sum(seconds)
        # What stands for no op of the program, such as a constant of the partitioner, is spread over all.
        seconds = [time * total / placed if placed else total / len(ops) for time in seconds]
        link = min(known.links, key=lambda item: item.bandwidth)
        memory = known.memory_bytes or None
        return cls(ops, tuple(seconds), link.bandwidth, link.latency, memory)

    @property
    def count(self) -> int:
        """The number of ops."""
        return len(self.ops)

    @cached_property
    def sums(self) -> tuple[float, ...]:
        """The time of the ops before each place."""
        return tuple(accumulate(self.seconds, initial=0.0))

    @cached_property
    def crossing(self) -> tuple[int, ...]:
        """The bytes on one device that are made before each place and used behind it."""
        change = [0] * (self.count + 2)
        numbers = {op.id: number for number, op in enumerate(self.ops)}
        for number, op in enumerate(self.ops):
            for value in op.results:
                last = max((self._place(user, numbers) for user, _ in value.uses), default=number)
                if last > number:
                    size = bytes_on_device(value)
                    change[number + 1] += size
                    change[min(last, self.count - 1) + 1] -= size
        return tuple(accumulate(change[: self.count + 1]))

    def _place(self, user: Op, numbers: dict[int, int]) -> int:
        while user.id not in numbers:
            parent = user.parent_op
            if parent is None or user.parent is None or user.parent is block_of_ops(self.ops):
                return self.count
            user = parent
        return numbers[user.id]

    def cut(self, first: int, end: int) -> StageCost:
        """Return the stage of some ops."""
        sent = self.crossing[end] if end < self.count else 0
        ops = self.ops[first:end]
        used = {value.id: value for op in ops for inner in op.walk() for value in inner.operands}
        block = block_of_ops(self.ops)
        return StageCost(
            first,
            end,
            self.sums[end] - self.sums[first],
            self.transfer_seconds(sent),
            sent,
            sum(bytes_on_device(value) for value in used.values() if value.owner is block),
            sum(bytes_on_device(value) for op in ops for value in op.results),
            (_name(ops[0]), _name(ops[-1])),
        )

    def transfer_seconds(self, count: int) -> float:
        """Return the time in which each device sends some bytes to another mesh."""
        return self.latency + count / self.bandwidth if count else 0.0


def main_block(program: Program) -> Block:
    """Return the body of the main function of a propagated program, which has one."""
    main = main_function(program)
    assert main is not None
    return block_of(main)


def op_numbers(block: Block) -> dict[str, list[int]]:
    """Return location to the numbers of the ops of a block that are there; results are resharded at the last one."""
    numbers: dict[str, list[int]] = {}
    last = sum(1 for _ in block.ops) - 2
    for number, op in enumerate(block.ops):
        for location in dict.fromkeys(inner.location for inner in op.walk()):
            if location:
                numbers.setdefault(location, []).append(min(number, last))
    return numbers


def block_of_ops(ops: Sequence[Op]) -> Any:
    """Return the block in which ops are."""
    return ops[0].parent


def bytes_on_device(value: Value) -> int:
    """Return the bytes of a value on one device; 0 unless it is a tensor of known shape and element type."""
    program = value.owning_op.program
    sharding = program.shardings.get(value.id)
    mesh = None if sharding is None else resolve_mesh(sharding.mesh, program.meshes)
    return tensor_bytes(value.type, sharding, mesh) or 0


def _name(op: Op) -> str:
    return " ".join([op.name, *(value.type.text for value in op.results[:1])])


def choose_cuts(costs: ProgramCosts, stages: int) -> tuple[StageCost, ...]:
    """Return the stages of which the slowest is fastest; among equal ones those that send least.

    Args:
        costs: The program.
        stages: The number of stages.
    """
    places = _places(costs, stages)
    # Per place, the best way to cut the ops before it into so many stages: slowest stage, bytes sent, cuts.
    best: dict[int, tuple[float, int, tuple[int, ...]]] = {0: (0.0, 0, ())}
    for stage in range(stages):
        ends = [costs.count] if stage == stages - 1 else places
        following: dict[int, tuple[float, int, tuple[int, ...]]] = {}
        for end in ends:
            sent = costs.crossing[end] if end < costs.count else 0
            options = (
                (max(slowest, costs.sums[end] - costs.sums[start]), total + sent, (*cuts, end))
                for start, (slowest, total, cuts) in best.items()
                if start < end
            )
            chosen = min(options, default=(inf, 0, ()))
            if chosen[0] < inf:
                following[end] = chosen
        best = following
    ends_of_best = best[costs.count][2]
    return tuple(costs.cut(first, end) for first, end in zip((0, *ends_of_best), ends_of_best, strict=False))


def _places(costs: ProgramCosts, stages: int) -> list[int]:
    """Return the places at which a program may be cut: of a long one, in each short time the one with least to send."""
    everywhere = list(range(1, costs.count))
    if len(everywhere) <= max(_MOST_PLACES, stages):
        return everywhere
    total, places = costs.sums[-1], set()
    for number in range(_MOST_PLACES):
        start, end = (bisect_left(costs.sums, total * (number + step) / _MOST_PLACES) for step in (0, 1))
        window = range(max(1, start), min(end + 1, costs.count))
        if window:
            places.add(min(window, key=lambda place: (costs.crossing[place], place)))
    if len(places) < stages - 1:
        # A few ops take nearly all the time.
        places.update(everywhere[:: len(everywhere) // stages])
    return sorted(places)

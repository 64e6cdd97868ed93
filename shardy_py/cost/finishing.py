"""Finishing of solutions: the passes after propagation over copies of a program."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.graph.walk import own_values
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.plugins import Registry
from shardy_py.propagation import Solution
from shardy_py.propagation.problem import Problem
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.finish.canonicalize_reshards import CanonicalizeReshardsPass, KeepReshardsPass
from shardy_py.transforms.finish.insert_explicit_reshards import InsertPartitionerReshardsPass
from shardy_py.transforms.finish.reshard_to_collectives import ReshardToCollectivesPass
from shardy_py.transforms.finish.split_partitioner_reshards import SplitPartitionerReshardsPass
from shardy_py.transforms.run import run
from shardy_py.values import define


@define(frozen=True, eq=False)
class Finisher:
    """Runs the passes after propagation over copies of a program.

    Attributes:
        template: The program without the ops that propagation erases; nothing changes it.
        slots: Every slot of the problem whose value the template has, with the id of that value.
        passes: The passes after propagation.
        registry: What is known about ops.
    """

    template: Program
    slots: tuple[tuple[int, int], ...]
    passes: tuple[Pass, ...]
    registry: Registry

    @classmethod
    def of(cls, program: Program, problem: Problem, registry: Registry, passes: tuple[Pass, ...]) -> Finisher:
        """Return the finisher of a program that was compiled and has its rules on its ops."""
        template = _without_unused(program, problem)
        return cls(template, tuple(_living_slots(template, problem)), passes, registry)

    def finish(
        self,
        solution: Solution,
        *,
        last_pass: str = "",
        like_partitioner: bool = False,
        warnings: list[Diagnostic] | None = None,
    ) -> Program:
        """Return a copy of the program with a solution's shardings, after all passes or those up to the given one.

        Args:
            solution: The solution.
            last_pass: The name of the pass after which to stop; by default all run.
            like_partitioner: Whether communication is that of XLA's partitioner.
            warnings: Gets what the passes warn of.
        """
        program = copy_program(self.template)
        table, values, slot_shardings = program.shardings, solution.problem.table.values, solution.shardings
        for slot, value_id in self.slots:
            sharding = values[slot_shardings[slot]]
            if sharding is not None:
                table[value_id] = sharding
        names = [item.name for item in self.passes]
        count = names.index(last_pass) + 1 if last_pass in names else len(names)
        passes = self.passes[:count]
        if like_partitioner:
            passes = tuple(adapted for item in passes for adapted in _like_partitioner(item))
        run(program, passes, PassContext(self.registry, [] if warnings is None else warnings))
        return program


def _like_partitioner(item: Pass) -> tuple[Pass, ...]:
    """Return the passes that do as XLA's partitioner does what a pass does."""
    if item.name == InsertPartitionerReshardsPass.name:
        return (InsertPartitionerReshardsPass(),)
    if item.name == CanonicalizeReshardsPass.name:
        return (KeepReshardsPass(),)
    if item.name == ReshardToCollectivesPass.name:
        return (SplitPartitionerReshardsPass(), item)
    return (item,)


def _without_unused(program: Program, problem: Problem) -> Program:
    """Return a copy of a program without the ops that propagation erases."""
    result = copy_program(program)
    if problem.removal is None:
        return result
    ops = {op.id: op for op in result.walk()}
    for op in reversed(problem.removal.ops):
        ops[op.id].erase()
    return result


def _living_slots(program: Program, problem: Problem) -> Iterator[tuple[int, int]]:
    """Yield every slot with the id of the value that stands for it, where a program still has that value."""
    living = {value.id for op in program.walk() for value in own_values(op)}
    for slot, value in enumerate(problem.slot_values):
        if value.id in living:
            yield slot, value.id


def changed_slots(first: Solution, second: Solution) -> list[int]:
    """Return the slots of the tensors that do not lie on the devices in the same way, open and closed aside.

    Args:
        first: A solution.
        second: Another one of the same problem.

    Raises:
        OptionError: the problems are two.
    """
    if first.problem is not second.problem:
        raise OptionError(Diagnostic("two-problems", "the solutions are of two different programs"))
    table = first.problem.table.values
    same: dict[tuple[int, int], bool] = {}
    slots = []
    for slot, pair in enumerate(zip(first.shardings, second.shardings, strict=True)):
        if pair[0] == pair[1]:
            continue
        if pair not in same:
            same[pair] = _is_same(table[pair[0]], table[pair[1]])
        # The last entry stands for values without a slot.
        if not same[pair] and slot < len(first.problem.slot_values):
            slots.append(slot)
    return slots


def _is_same(first: TensorSharding | None, second: TensorSharding | None) -> bool:
    if first is None:
        first, second = second, first
    return first is None or first.is_equivalent(second)

"""Communication that a propagated program needs, counted as `shardy explain --reshard` numbers it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from shardy_py.api.summary import RESHARDS
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.transforms.finish.insert_explicit_reshards import InsertExplicitReshardsPass
from shardy_py.transforms.run import run
from shardy_py.values import frozen


def count_communications(program: Program, registry: Registry, *, are_explicit: bool) -> Mapping[str, int]:
    """Return the number of reshards and collectives of each kind, with those that are left to the partitioner.

    Args:
        program: A propagated program; it stays as it is.
        registry: The definitions of ops.
        are_explicit: Whether all of them stand in the program already.
    """
    if not are_explicit:
        program = copy_program(program)
        full = InsertExplicitReshardsPass(enable_full_version=True, reshard_ops_without_rule=True)
        run(program, (full,), PassContext(registry))
    return count_written(program)


def count_written(program: Program) -> Mapping[str, int]:
    """Return the number of reshards and collectives in a program by the names of their ops."""
    names = (op.name for op in program.walk() if op.name in RESHARDS and op.operands and op.results)
    return dict(sorted(Counter(names).items()))


@frozen
class Communications:
    """Communication that a propagated program needs, told apart by who writes it.

    Args:
        written: The number of ops of the module by their names, such as ``sdy.reshard``.
        left: The number of those that a partitioner will add, by their kinds, such as ``all_reduce``.
    """

    written: Mapping[str, int]
    left: Mapping[str, int]

    @property
    def total(self) -> int:
        """The number of all."""
        return sum(self.written.values()) + sum(self.left.values())


def split_communications(counts: Mapping[str, int], program: Program, text: str | None = None) -> Communications:
    """Return which communications stand in the written module, and which are left to a partitioner.

    Args:
        counts: The number of all, as `count_communications` counts them.
        program: The propagated program.
        text: The module as it is written, where that has another form than the program.
    """
    written = {name: count for name, count in count_written(program).items() if text is None or name in text}
    left = {name: count - written.get(name, 0) for name, count in counts.items()}
    return Communications(written, {name.partition(".")[2]: count for name, count in left.items() if count > 0})

"""Communication that a propagated program needs, counted as `shardy explain --reshard` numbers it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from shardy_py.api.summary import RESHARDS
from shardy_py.ir.graph import Program
from shardy_py.ir.passes import PassContext
from shardy_py.ir.program_copy import copy_program
from shardy_py.plugins import Registry
from shardy_py.transforms.finish.insert_explicit_reshards import InsertExplicitReshardsPass
from shardy_py.transforms.run import run


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
    names = (op.name for op in program.walk() if op.name in RESHARDS and op.operands and op.results)
    return dict(sorted(Counter(names).items()))

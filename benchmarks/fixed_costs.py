"""Fixed cost of a run: a program of one op, with the registry of the installed plugins.

Both sides run alternately on fresh copies of the module, and the least of many runs counts: what takes longer is the
machine, as there is nothing in such a run that could differ.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from time import perf_counter

from attrs import frozen

import shardy_py as sdy
from benchmarks.runs import TINY, bytecode_of, copy_module, reference_passes
from shardy_py.frontends.mlir import parse_module

RUNS = 200


@frozen
class FixedCosts:
    """The least that each side took for one op, in seconds.

    Args:
        ours: `shardy_py.propagate` on a module in memory.
        reference: The C++ passes.
    """

    ours: float
    reference: float


def measure_fixed_costs(*, runs: int = RUNS) -> FixedCosts:
    """Run both sides so many times, after one run each that does not count."""
    module = parse_module(TINY)
    bytecode, context = bytecode_of(module), module.context
    # Once, not before every run: collecting all that the process holds takes a hundred times as long as a run. Nor is
    # it frozen, which would make every question about frozen objects, such as a run asks, count them.
    gc.collect()
    pairs = []
    for _ in range(runs + 1):
        ours, theirs = copy_module(bytecode, context), copy_module(bytecode, context)
        pairs.append((_seconds(partial(sdy.propagate, ours)), _seconds(reference_passes(theirs))))
    return FixedCosts(min(pair[0] for pair in pairs[1:]), min(pair[1] for pair in pairs[1:]))


def _seconds(function: Callable[[], object]) -> float:
    begin = perf_counter()
    result = function()
    end = perf_counter()
    del result
    return end - begin

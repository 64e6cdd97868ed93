"""Tolerances of the values of devices, from the least precise numbers that they were computed from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import all_values, entry_arguments, region_arguments
from shardy_py.testing.numeric.bench import tolerance_of
from shardy_py.testing.numeric.pieces import Array


def find_tolerances(program: Program, seen: Mapping[int, Sequence[Array]]) -> dict[int, float]:
    """Return the tolerance of each value, relative to its largest element; 0 for integers.

    A function may return doubles that it computed from floats of 32 bits: these differ between devices as such floats
    do, from the order of a sum.

    Args:
        program: The program on whole tensors.
        seen: The arrays of each value, by its id.
    """
    own = {number: max((tolerance_of(array.dtype) for array in arrays), default=0.0) for number, arrays in seen.items()}
    tolerances = dict(own)
    functions = program.functions
    is_stable = False
    while not is_stable:
        before = dict(tolerances)
        for op in program.walk():
            if op.parent is program.body:
                continue
            callee = functions.get(callee_of(op) or "")
            if callee is not None:
                _pass_on(op.operands, entry_arguments(callee), tolerances)
                _pass_on(_returned(callee), op.results, tolerances)
                continue
            inside = [value for inner in op.walk() for value in inner.operands]
            inside += [value for value in all_values(op) if op.regions]
            coarsest = max((tolerances.get(value.id, 0.0) for value in inside), default=0.0)
            for value in (*op.results, *region_arguments(op)):
                if own.get(value.id):
                    tolerances[value.id] = max(tolerances[value.id], coarsest)
        is_stable = before == tolerances
    return tolerances


def _pass_on(sources: Iterable[Value], targets: Iterable[Value], tolerances: dict[int, float]) -> None:
    for source, target in zip(sources, targets, strict=False):
        tolerances[target.id] = max(tolerances.get(source.id, 0.0), tolerances.get(target.id, 0.0))


def _returned(function: Op) -> Sequence[Value]:
    end = function.regions[0].blocks[0].last if function.regions and function.regions[0].blocks else None
    return () if end is None else end.operands

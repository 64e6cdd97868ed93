"""Heroes: for each root the op that decides how the kernel works."""

from __future__ import annotations

from collections.abc import Callable

from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.fusion.fusion import Fusion
from shardy_py.kernels.fusion.transposes import transpose_of

MAX_OPERANDS = 3


def hero_of(fusion: Fusion, root: Op) -> Op:
    """Return the hero of a root.

    From the root up through ops with one operand that keep elements apart, then the only tiled transpose, or else the
    only concatenate, that is reached through such ops with few operands; else a reduction right there, or the root.
    """
    start = root
    while is_intermediate(fusion, start, max_operands=1):
        producer = fusion.producer(start.operands[0])
        if producer is None:
            break
        start = producer

    def is_tiled_transpose(op: Op) -> bool:
        transpose = transpose_of(fusion, op)
        return transpose is not None and transpose.is_tiled

    for wanted in (is_tiled_transpose, fusion.is_concatenation):
        found = _only(fusion, start, wanted)
        if found is not None:
            return found
    return start if fusion.is_reduction(start) else root


def is_intermediate(fusion: Fusion, op: Op, *, max_operands: int = MAX_OPERANDS) -> bool:
    """Return whether an op keeps elements apart and has few operands."""
    if not op.operands or len(op.operands) > max_operands:
        return False
    return fusion.is_elementwise(op) or fusion.is_bitcast(op)


def _only(fusion: Fusion, start: Op, wanted: Callable[[Op], bool]) -> Op | None:
    """Return the only op of a kind above an op, if intermediate ops alone lie below it."""
    found: dict[int, Op] = {}
    seen: set[int] = set()
    pending = [start]
    while pending:
        op = pending.pop(0)
        if op.id in seen:
            continue
        seen.add(op.id)
        if wanted(op):
            found[op.id] = op
        elif is_intermediate(fusion, op):
            pending += [producer for value in op.operands if (producer := fusion.producer(value)) is not None]
    if len(found) != 1:
        return None
    (only,) = found.values()
    return only if _leads_through_intermediates(fusion, only) else None


def _leads_through_intermediates(fusion: Fusion, op: Op) -> bool:
    """Return whether all that is computed from an op are intermediate ops."""
    seen: set[int] = set()
    pending: list[Value] = list(op.results)
    while pending:
        for user in fusion.users.get(pending.pop().id, ()):
            if user.id in seen:
                continue
            seen.add(user.id)
            if not is_intermediate(fusion, user):
                return False
            pending += user.results
    return True

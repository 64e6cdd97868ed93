"""Coverage of a program by kernels: which of its ops are in none, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.program import Block, Op
from shardy_py.kernels.fusion.fusion import Fusion
from shardy_py.kernels.pieces.greedy import PieceCallback, is_control_flow, kernel_problem, no_callback
from shardy_py.kernels.pieces.hlo import FUSION
from shardy_py.kernels.pieces.read import read_pieces
from shardy_py.plugins import Registry
from shardy_py.plugins.installed import installed_registry
from shardy_py.values import frozen


@frozen
class UncoveredOps:
    """Ops of one name that are in no kernel for one reason.

    Args:
        name: The name.
        count: How many there are.
        code: The code of the reason.
        reason: The reason.
        hint: What can be done about it, or "".
        first: The place of the first one, or "".
    """

    name: str
    count: int
    code: str
    reason: str
    hint: str
    first: str


@frozen(eq=False)
class KernelCoverage:
    """Coverage of a program by kernels.

    Args:
        fusions: The pieces that become kernels.
        ops: The number of ops, those in regions of others included, without terminators.
        covered: How many of them are in a kernel.
        uncovered: The others, by name and reason, the most frequent first.
    """

    fusions: tuple[Fusion, ...]
    ops: int
    covered: int
    uncovered: tuple[UncoveredOps, ...]


def kernel_coverage(
    source: Any, *, registry: Registry | None = None, on_progress: PieceCallback | None = None
) -> KernelCoverage:
    """Return which ops of a program are in kernels, and why the others are not.

    Args:
        source: HLO text, or whatever `shardy_py.propagate` takes.
        registry: What is known about the ops; by default what the installed plugins say.
        on_progress: Called with how many steps are done, of how many, and what comes next: to read the program, which
            is one step, then to make each piece.

    Raises:
        ParseError: the text cannot be read.
        UnsupportedError: a fusion has something that no kernel can have inside.
    """
    known = registry or installed_registry(skip_broken=True)
    on_piece = on_progress or no_callback
    on_piece(0, 1, "reading the program")
    block, fusions = read_pieces(source, known, on_piece=on_piece)
    inside = {op.id for fusion in fusions for op in fusion.ops}
    problems = [(op, _reason(op, known)) for op in _ops(block, known) if op.id not in inside]
    return KernelCoverage(fusions, len(inside) + len(problems), len(inside), tuple(_grouped(problems)))


def _ops(block: Block, registry: Registry) -> Iterator[Op]:
    """Yield the ops of a block but its terminator, those inside of fusions and of control flow among them."""
    for op in block.ops:
        if op is block.terminator:
            continue
        if op.name != FUSION:
            yield op
        if op.name == FUSION or is_control_flow(op, registry):
            for region in op.regions:
                for inner in region.blocks:
                    yield from _ops(inner, registry)


def _reason(op: Op, registry: Registry) -> Diagnostic:
    """Return why an op is in no kernel."""
    if is_control_flow(op, registry):
        message = "control flow runs on the host, and starts kernels for the ops in its regions"
        return Diagnostic("control-flow", message)
    problem = kernel_problem(op, registry)
    if problem is not None:
        return problem
    return Diagnostic("unused", "nothing that a kernel or another op needs is computed from it")


def _grouped(problems: Iterable[tuple[Op, Diagnostic]]) -> list[UncoveredOps]:
    problems_by_kind: dict[tuple[str, str, str], list[tuple[Op, Diagnostic]]] = {}
    for op, problem in problems:
        problems_by_kind.setdefault((op.name, problem.code, problem.message), []).append((op, problem))
    rows = [
        UncoveredOps(name, len(items), code, message, items[0][1].hint, items[0][0].location)
        for (name, code, message), items in problems_by_kind.items()
    ]
    return sorted(rows, key=lambda row: (-row.count, row.name, row.code))

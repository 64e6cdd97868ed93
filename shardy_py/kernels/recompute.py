"""Elements that a kernel computes several times, as several elements of its roots need them."""

from __future__ import annotations

from math import prod

from shardy_py.errors import Diagnostic
from shardy_py.indexing import IndexingMap
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.fusion.choose import Choice, aliases_of
from shardy_py.kernels.fusion.fusion import Fusion, bytes_of
from shardy_py.kernels.fusion.scatters import RootScatter
from shardy_py.kernels.kernel import Kernel
from shardy_py.kernels.partition import TUPLE, PartitionWalk, Read, heroes_of
from shardy_py.values import frozen

WARN_FROM = 4.0
"""The factor from which on a fusion had better be several kernels."""


@frozen(eq=False)
class RecomputedOp:
    """An op whose elements are computed several times.

    Args:
        op: The op.
        factor: How often each element is computed on average.
    """

    op: Op
    factor: float


@frozen(eq=False)
class Recomputation:
    """The steps of a kernel, and those that it would need if it computed each element once.

    Args:
        computed: The steps of all threads, of all ops that do more than move elements: one per element, and of a
            reduction one per element that it combines.
        elements: The steps of these ops if each element is computed once.
        ops: Those that are computed more than once, the most often first.
    """

    computed: int
    elements: int
    ops: tuple[RecomputedOp, ...]

    @property
    def factor(self) -> float:
        """The number of times that an element is computed on average."""
        return self.computed / self.elements if self.elements else 1.0


def recomputation(kernel: Kernel, *, with_scalars: bool = True) -> Recomputation:
    """Return how often a kernel computes the elements of its ops.

    Counts the elements of the domains of the maps from the roots, as the partition into functions has them: a function
    remembers an element that it reads at one index, and computes those at other indices again.

    Args:
        kernel: The kernel.
        with_scalars: Whether to count ops of one element from others of one element, such as the clamping of an index.
    """
    fusion = kernel.fusion
    walk = PartitionWalk(fusion, heroes_of(kernel.choice))
    # A generator: the walk is done when all functions are there.
    tuple(walk.functions())
    calls: dict[int, float] = {TUPLE: fusion.elements(fusion.roots[0])}
    sizes: dict[int, int] = {TUPLE: fusion.elements(fusion.roots[0])}
    evaluations: dict[int, float] = {}
    for op in reversed(fusion.ops):
        function, at = walk.places[op.id]
        if function == op.id:
            sizes[function] = fusion.elements(op.results[0])
            reads = [
                sizes[function] if caller == TUPLE else _evaluations(calls[caller], sizes[caller], read)
                for caller, read in walk.reads.get(function, {})
            ]
            calls[function] = sum(reads) or sizes[function]
        evaluations[op.id] = _evaluations(calls[function], sizes[function], at)
    computing = [
        op for op in fusion.ops if not fusion.facts[op.id].moves_only and (with_scalars or not _is_scalar(fusion, op))
    ]
    elements = {op.id: fusion.elements(op.results[0]) for op in computing}
    repeated = [RecomputedOp(op, evaluations[op.id] / elements[op.id]) for op in computing]
    repeated = sorted((item for item in repeated if item.factor > 1), key=lambda item: -item.factor)
    steps = {op.id: max((_trips(map_) for map_ in fusion.facts[op.id].maps), default=1) for op in computing}
    computed = int(sum(evaluations[op.id] * steps[op.id] for op in computing))
    return Recomputation(computed, sum(elements[op.id] * steps[op.id] for op in computing), tuple(repeated))


def _is_scalar(fusion: Fusion, op: Op) -> bool:
    return all(fusion.elements(value) == 1 for value in (*op.operands, *op.results))


def _trips(map_: IndexingMap) -> int:
    """Return how many elements of an operand a map reads for one of the result."""
    return prod(bound.interval.size for bound in map_.ranges)


def _evaluations(calls: float, size: int, read: Read) -> float:
    """Return how often a node is computed that a function of some size, which is called so often, reads at a map."""
    map_, _ = read
    if map_.is_undefined or map_.is_known_empty:
        return calls
    dims = prod(bound.interval.size for bound in map_.dims)
    return calls * min(1.0, dims / max(1, size)) * _trips(map_)


def least_bytes(kernel: Kernel) -> tuple[int, int]:
    """Return the bytes of all parameters and of all results: what a kernel that reads each element moves at least.

    A result that shares the memory of a parameter has the bytes of its updates only, and the parameter none.
    """
    fusion = kernel.fusion
    aliases = aliases_of(fusion, kernel.choice)
    read = sum(bytes_of(value) for number, value in enumerate(fusion.argument_parameters) if number not in aliases)
    written = sum(
        bytes_of(root if alias is None else _update_of(fusion, kernel.choice, number))
        for number, (root, alias) in enumerate(zip(fusion.roots, aliases, strict=True))
    )
    return read, written


def _update_of(fusion: Fusion, choice: Choice, number: int) -> Value:
    """Return what a kernel writes into the memory of a parameter, for a root by its number."""
    if isinstance(choice.form, RootScatter):
        return choice.form.updates[choice.form.op.results.index(fusion.roots[number])]
    update = choice.heroes[number]
    assert update is not None
    return update.operands[1]


def recompute_warning(kernel: Kernel) -> Diagnostic | None:
    """Return a warning where a kernel computes elements many times; None where it does not."""
    # Each thread computes a scalar by itself in less time than a kernel of its own would take to start.
    recomputed = recomputation(kernel, with_scalars=False)
    if recomputed.factor < WARN_FROM:
        return None
    worst = recomputed.ops[0]
    message = f"the kernel computes each element {recomputed.factor:.3g} times on average, those of {worst.op.name}"
    message += f" {worst.factor:.3g} times"
    hint = "make a kernel of each reduction and of what follows it; 'shardy emit FILE --list' shows such pieces"
    return Diagnostic("recompute", message, worst.op.location, kernel.name, hint)

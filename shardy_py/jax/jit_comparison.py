"""A result beside what `jax.jit` decides for the same program: op by op, result by result, collective by collective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from shardy_py.api.options import Options, PropagateArguments
from shardy_py.api.run_input import give_shardings, read_input
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import store_shardings
from shardy_py.jax.jit_alignment import OpDecision, align, decisions_of
from shardy_py.support.texts import format_bytes
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.jax.figures.values import XlaCollective
    from shardy_py.jax.result_methods import JaxMethods

_MOST_SHOWN = 5


@frozen
class JitDifference:
    """An op, or a result of the program, about which the two sides differ.

    Args:
        here: The op in the result; None where only XLA's module has it.
        jit: The op in the module that XLA propagates; None where only the result has it.
        cause: Why that may be.
    """

    here: OpDecision | None
    jit: OpDecision | None
    cause: str

    def __str__(self) -> str:
        op = self.here or self.jit
        assert op is not None
        # XLA's module has no locations but those of its own text.
        place = f"{self.here.location}: " if self.here is not None and self.here.location else ""
        scope = f" ({op.scope})" if op.scope else ""
        if self.jit is None:
            return f"{place}{op}{scope}\n    only here, {op.text}\n    cause: {self.cause}"
        if self.here is None:
            return f"{place}{op}{scope}\n    only in jit's module, {op.text}\n    cause: {self.cause}"
        return f"{place}{op}{scope}\n    here {self.here.text}, jit {self.jit.text}\n    cause: {self.cause}"


@frozen
class JitComparison:
    """A result beside the decisions of `jax.jit`.

    Args:
        ops: The number of ops in the module that XLA propagates, constants and reshards aside.
        equal_ops: Those that have the same sharding here.
        results: The number of results of the program.
        equal_results: Those that have the same sharding here.
        differences: The ops that differ, in the order of XLA's module.
        here_collectives: The collectives of the program that XLA compiles from the result; None if not compiled.
        jit_collectives: The collectives of the program that XLA compiles by itself; None if not compiled.
        like: What the result was propagated like.
        jaxlib: The version of jaxlib.
        platform: The devices that it was compiled for.
        notes: What could not be compared.
    """

    ops: int
    equal_ops: int
    results: int
    equal_results: int
    differences: tuple[JitDifference, ...]
    here_collectives: tuple[XlaCollective, ...] | None
    jit_collectives: tuple[XlaCollective, ...] | None
    like: str
    jaxlib: str
    platform: str
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """True if all ops, all results and all collectives that could be compared are equal."""
        return not self.differences and self.results == self.equal_results and self.has_equal_collectives

    @property
    def has_equal_collectives(self) -> bool:
        """True if both compiled programs have collectives of the same kinds, bytes and runs."""
        if self.here_collectives is None or self.jit_collectives is None:
            return True
        return _counted(self.here_collectives) == _counted(self.jit_collectives)

    def __str__(self) -> str:
        head = f"propagated like {self.like}; compiled by jax.jit, jaxlib {self.jaxlib}, {self.platform}"
        lines = [
            f"{'equal' if self.equal else 'different'}: {head}",
            f"  ops         {self.equal_ops} of {self.ops} equal",
            f"  results     {self.equal_results} of {self.results} equal",
            *_collective_lines(self),
            *(f"  note: {note}" for note in self.notes),
        ]
        shown = [f"  {item}" for item in self.differences[:_MOST_SHOWN]]
        rest = len(self.differences) - len(shown)
        return "\n".join([*lines, *shown, *([f"  and {rest} more"] if rest else [])])


def compare_with_jit(result: JaxMethods, source: Any = None, devices: Sequence[Any] | None = None) -> JitComparison:
    """Compile a program as `jax.jit` does, and compare its decisions with a result; see `Result.compare_jit`."""
    from shardy_py.jax.jit_decisions import collectives_of, find_jit_decisions
    from shardy_py.jax.like_jit import jaxlib_version

    arguments = _propagate_arguments(result, source)
    bytecode, program = _unpropagated(arguments, result)
    decided = find_jit_decisions(bytecode, program, result.registry, devices)
    here = decisions_of(result.program, result.registry)
    jit = decisions_of(decided.program, result.registry)
    pairs = align(here, jit)
    differences = tuple(
        JitDifference(ours, theirs, _cause(ours, theirs, result, arguments))
        for ours, theirs in pairs
        if ours is None or theirs is None or ours.axes != theirs.axes
    )
    results = list(zip(_result_axes(result.program), _result_axes(decided.program), strict=False))
    # The same partitioner for both, so that what differs follows from the shardings; its faults are those of both.
    compiled = result.to_jax(devices, partitioner="xla", warnings=[])
    return JitComparison(
        ops=len(jit),
        equal_ops=sum(1 for ours, theirs in pairs if ours and theirs and ours.axes == theirs.axes),
        results=len(results),
        equal_results=sum(1 for ours, theirs in results if ours == theirs),
        differences=differences,
        here_collectives=collectives_of(compiled.executable, len(compiled.devices)),
        jit_collectives=decided.collectives,
        like=result.like,
        jaxlib=jaxlib_version(),
        platform=decided.platform,
        notes=(f"jit's program was propagated, but not compiled: {decided.problem}",) if decided.problem else (),
    )


def _propagate_arguments(result: JaxMethods, source: Any) -> PropagateArguments:
    """Return the arguments of the run, with the program as it was given.

    Raises:
        OptionError: the run has changed the program, or the result was made by other means.
    """
    known = result.given_arguments
    if known is None or (source is None and known.module is result.module):
        message = "the program as it was given is not known any more, as the run has annotated its module"
        raise OptionError(Diagnostic("no-source", message, hint="give it: result.compare_jit(source)"))
    return known if source is None else evolve(known, module=source, args=None, kwargs=None)


def _unpropagated(arguments: PropagateArguments, result: JaxMethods) -> tuple[bytes, Program]:
    """Return the program as `jax.jit` gets it: as bytecode and as an op graph, with the shardings of the caller."""
    from shardy_py.frontends.select import frontend_of
    from shardy_py.jax.modules import bytecode_of

    read = read_input(evolve(arguments, like="passes"), result.registry)
    give_shardings(read, arguments)
    store_shardings(read.program, read.registry)
    return bytecode_of(frontend_of(read.program).write_back(read.program)), read.program


def _cause(here: OpDecision | None, jit: OpDecision | None, result: JaxMethods, arguments: PropagateArguments) -> str:
    """Return why an op may differ: what this run does otherwise than XLA."""
    if result.like == "passes":
        return "the module was propagated as it is, and XLA converts it to HLO and inlines calls before: like='jit'"
    changed = [
        name
        for name in ("schedule", "op_priorities", "strategy", "conservative", "extended_rules")
        if getattr(arguments, name) != getattr(_DEFAULTS, name)
    ]
    if changed:
        return f"the run has another {' and '.join(changed)} than XLA"
    if here is None or jit is None:
        return (
            "XLA has other ops there: the backend simplifies programs first, or another jaxlib converts them otherwise"
        )
    return "an op before it was decided otherwise, or XLA has a rule of its own for it"


_DEFAULTS = Options()


def _result_axes(program: Program) -> list[Any]:
    from shardy_py.api.main_function import find_main
    from shardy_py.jax.jit_alignment import axes_of

    return [axes_of(program.shardings.get(value.id)) for value in find_main(program).function_results]


def _counted(collectives: Sequence[XlaCollective]) -> list[tuple[str, float, float]]:
    return sorted((item.kind, item.bytes, item.runs) for item in collectives)


def _collective_lines(comparison: JitComparison) -> list[str]:
    sides = [comparison.here_collectives, comparison.jit_collectives]
    if None in sides:
        return ["  collectives not compared"]
    here, jit = ([*side] for side in sides if side is not None)
    kinds = sorted({item.kind for item in (*here, *jit)})
    if not kinds:
        return ["  collectives none"]
    return ["  collectives"] + [f"    {kind:<20} here {_sum(here, kind)}, jit {_sum(jit, kind)}" for kind in kinds]


def _sum(collectives: Sequence[XlaCollective], kind: str) -> str:
    chosen = [item for item in collectives if item.kind == kind]
    return f"{len(chosen)} ({format_bytes(round(sum(item.bytes * item.runs for item in chosen)))})"

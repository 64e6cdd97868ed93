"""The engine as passes: the reference's four, by their names and options, and one with any options of the engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from attrs import evolve

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.propagation.engine import (
    STRATEGIES,
    PropagationOptions,
    Snapshot,
    StageCallback,
    StrategyName,
    propagate_program,
)
from shardy_py.propagation.solve import Solution
from shardy_py.schedule.builtin import DEFAULT
from shardy_py.schedule.model import Schedule
from shardy_py.transforms.debug_info import make_recorder
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.propagation.trace import Observer, Update, VisitLog
    from shardy_py.transforms.debug_info.recorder import DebugRecorder

_ANY_OPTIONS = "sdy-propagate"


@frozen
class PropagationPass(ABC):
    """Common options and the run of the propagation passes.

    Args:
        keep_sharding_rules: Whether rules stay on the ops.
        module_dump_directory: Where snapshots go; only the user-priority pass has any, others warn.
        conservative_propagation: Whether ops may not introduce sub-axes or uneven shards.
        debug_sharding_origins: Whether to leave on every value which annotation each axis goes back to.
        debug_propagation_edge_sharding: Whether to leave on every op how axes went through it.
    """

    name: ClassVar[str]

    keep_sharding_rules: bool = False
    module_dump_directory: str = ""
    conservative_propagation: bool = False
    debug_sharding_origins: bool = False
    debug_propagation_edge_sharding: bool = False

    @abstractmethod
    def options(self) -> PropagationOptions:
        """Return the options of the engine for this pass."""

    def run(self, program: Program, context: PassContext) -> None:
        """Propagate in place."""
        options = evolve(
            self.options(),
            conservative=self.conservative_propagation,
            keep_sharding_rules=self.keep_sharding_rules,
        )
        recorder = make_recorder(
            program,
            context.semantics,
            origins=self.debug_sharding_origins,
            edges=self.debug_propagation_edge_sharding,
        )
        propagate_program(
            program,
            context.semantics,
            options,
            warnings=context.warnings,
            observer=_observe(recorder) if recorder else None,
            snapshot=self._snapshot(program, context),
        )
        if recorder is not None:
            recorder.save()

    def _snapshot(self, program: Program, context: PassContext) -> Snapshot | None:
        """Return the function that writes a snapshot after a user priority, if snapshots are wanted."""
        if self.module_dump_directory:
            message = f"the option module-dump-directory has no effect on {self.name}"
            hint = f"snapshots are written after user priorities: run {UserPriorityPropagationPass.name}"
            context.warnings.append(Diagnostic("option-without-effect", message, hint=hint))
        return None


def _observe(recorder: DebugRecorder) -> Observer:
    def observer(update: Update) -> None:
        old, new = update.projections()
        # A function's result has no value of its own in the reference: what is returned stands for it.
        values = update.values[:1] * 2 if update.is_function_result else update.values
        recorder.record(update.op, values, update.rule, update.mesh, old.tensors, new.tensors)

    return observer


@frozen
class BasicPropagationPass(PropagationPass):
    """Propagates axes on which all operands and results agree; resolves no conflicts."""

    name: ClassVar[str] = "sdy-basic-propagate"

    def options(self) -> PropagationOptions:
        """Every op at once, with the basic strategy only."""
        return PropagationOptions(schedule=None, strategy="basic", user_priorities=False)


@frozen
class AggressivePropagationPass(PropagationPass):
    """Propagates with one or both factor propagation strategies.

    Args:
        propagation_strategy: The strategy within an op: ``basic``, ``aggressive`` or ``basic-then-aggressive``.
    """

    name: ClassVar[str] = "sdy-aggressive-propagate"

    propagation_strategy: str = "aggressive"

    def options(self) -> PropagationOptions:
        """Every op at once."""
        strategy = parse_strategy(self.propagation_strategy)
        return PropagationOptions(schedule=None, strategy=strategy, user_priorities=False)


@frozen
class OpPriorityPropagationPass(PropagationPass):
    """Propagates level by level of the default schedule.

    Args:
        propagation_strategy: The strategy within an op: ``basic``, ``aggressive`` or ``basic-then-aggressive``.
        run_op_priority_propagation: Whether there are levels; otherwise all ops propagate at once.
    """

    name: ClassVar[str] = "sdy-op-priority-propagate"

    propagation_strategy: str = "aggressive"
    run_op_priority_propagation: bool = True

    def options(self) -> PropagationOptions:
        """The default schedule, without user priorities."""
        strategy = parse_strategy(self.propagation_strategy)
        schedule = default_schedule(enabled=self.run_op_priority_propagation)
        return PropagationOptions(schedule=schedule, strategy=strategy, user_priorities=False)


@frozen
class UserPriorityPropagationPass(PropagationPass):
    """Propagates user priority by user priority, each through all levels of the default schedule.

    Args:
        propagation_strategy: The strategy within an op: ``basic``, ``aggressive`` or ``basic-then-aggressive``.
        run_op_priority_propagation: Whether there are levels; otherwise all ops propagate at once.
        dump_index: The number that the names of snapshots begin with; a pipeline numbers all of its snapshots.
    """

    name: ClassVar[str] = "sdy-user-priority-propagate"

    propagation_strategy: str = "aggressive"
    run_op_priority_propagation: bool = True
    dump_index: int = 0

    def options(self) -> PropagationOptions:
        """The default schedule within user priorities."""
        strategy = parse_strategy(self.propagation_strategy)
        schedule = default_schedule(enabled=self.run_op_priority_propagation)
        return PropagationOptions(schedule=schedule, strategy=strategy, user_priorities=True)

    def _snapshot(self, program: Program, context: PassContext) -> Snapshot | None:
        if not self.module_dump_directory:
            return None

        def write(priority: int) -> None:
            name = f"propagation_after_user_priority_{priority}"
            context.write_snapshot(program, self.module_dump_directory, name, index=self.dump_index)

        return write


@frozen
class PropagatePass:
    """Propagation with any options of the engine.

    Args:
        options: The options of the engine.
        on_stage: Called with the name of each stage as it starts.
        log: Gets every visit.
        on_solution: Called with the solution, while the program is as propagation leaves it.
    """

    # Not a literal, which `pass_names` would find: the options have no text, so that no pipeline can name the pass.
    name: ClassVar[str] = _ANY_OPTIONS
    # The pass of the reference in whose place it runs; plugins and pipelines know that name.
    stands_for: ClassVar[str] = UserPriorityPropagationPass.name

    options: PropagationOptions
    on_stage: StageCallback | None = None
    log: VisitLog | None = None
    on_solution: Callable[[Solution], None] | None = None

    def run(self, program: Program, context: PassContext) -> None:
        """Propagate in place; rules stay on the ops, later passes read them.

        Raises:
            UnsupportedError: a dynamic shape or a tuple, be it that of an argument only.
        """
        options = self.options
        solution = propagate_program(
            program,
            context.semantics,
            options if options.keep_sharding_rules else evolve(options, keep_sharding_rules=True),
            warnings=context.warnings,
            on_stage=self.on_stage,
            log=self.log,
            check_arguments=True,
        )
        if self.on_solution is not None:
            self.on_solution(solution)


def default_schedule(*, enabled: bool) -> Schedule | None:
    """Return the default schedule, or None for no op priorities."""
    return DEFAULT if enabled else None


def parse_strategy(name: str) -> StrategyName:
    """Return a factor propagation strategy by name.

    Raises:
        OptionError: there is none of that name.
    """
    for known in STRATEGIES:
        if name == known:
            return known
    hint = "use one of " + ", ".join(STRATEGIES)
    raise OptionError(Diagnostic("bad-option", f"unknown propagation strategy {name!r}", hint=hint))

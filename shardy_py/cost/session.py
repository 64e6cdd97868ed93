"""Sessions: a program that is read, prepared and compiled once, then solved, finished and priced many times."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cached_property
from types import NoneType

from attrs import evolve, field

from shardy_py.api.keywords import keywords, method_takes, narrow
from shardy_py.api.main_function import find_main
from shardy_py.api.options import Like, LocalOptions, ProgramOptions, SessionArguments, Strategy
from shardy_py.api.pipeline import engine_options, make_pipeline
from shardy_py.api.run_input import give_shardings, ignored_priorities, make_semantics, read_input, reduced_shardings
from shardy_py.api.schedule_names import unknown_op_names
from shardy_py.cost.estimates import Cost, Quantity, estimate
from shardy_py.cost.finishing import Finisher
from shardy_py.cost.local_cost import (
    Partitioner,
    PriceSetting,
    add_reason,
    check_partitioner,
    count_cost,
    count_operations,
)
from shardy_py.cost.machines.placement import AxisLinks
from shardy_py.cost.machines.profile import Profile
from shardy_py.cost.machines.toml import MachineLike
from shardy_py.cost.priced_input import PRICED_LIKE_JIT, is_converted_by_xla
from shardy_py.errors import Diagnostic, OptionError, ShardyError, as_warnings
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.verify import refuse_deep_nesting
from shardy_py.ir.graph.verify_shardings import verify_manual_axes
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.layout.policies import LayoutPolicy
from shardy_py.plugins import Registry
from shardy_py.propagation import PropagationOptions, Solution
from shardy_py.propagation.engine import STRATEGIES, keep_or_drop_rules, make_problem, op_rules
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.solve import solve
from shardy_py.propagation.trace import Observer, VisitLog
from shardy_py.schedule.from_options import OpPriorities, ScheduleLike
from shardy_py.schedule.model import Schedule
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.arguments import as_integer, checked, shown
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.trace.labels import Labels
from shardy_py.trace.original_names import GivenNames
from shardy_py.transforms.constant_copies import CopyLog
from shardy_py.transforms.finish.split_partitioner_reshards import REMATERIALIZATION
from shardy_py.transforms.run import run
from shardy_py.values import define, frozen


def session_labels(session: Session) -> Labels:
    """Return the names of a session's values and ops.

    They are those of the module that was read if the session keeps them (see `Session.open`), else those of the
    program as propagation finds it.
    """
    names = session.names or GivenNames.of(session.program, session.main)
    return names.labels(session.program, session.problem, session.copies)


_WRITTEN_BY_JAX = "mhlo.num_partitions"
"""An attribute of the modules that JAX writes."""
_NOT_LIKE_JIT = (
    "the module is propagated as it is; jax.jit propagates it after XLA's conversion to HLO, and may decide otherwise:"
    " give like='jit' for the cost of its program"
)


@frozen(eq=False)
class Evaluation:
    """The outcome of a schedule: shardings, the finished program and its cost.

    Args:
        solution: The shardings that propagation finds.
        program: The finished program.
        cost: Its cost.
    """

    solution: Solution
    program: Program
    cost: Cost


@define(frozen=True, slots=False, eq=False)
class Session:
    """A compiled program.

    Attributes:
        program: The program as propagation finds it, after all passes that stand before; nothing changes it.
        main: Its main function.
        problem: The problem that the engine solves.
        registry: The definitions of ops.
        options: The options that it was opened with.
        warnings: Diagnostics that are not errors.
        copies: The copies of constants that were made; None without ``on_given`` and ``keep_names``.
        names: The names of the program that was read; None unless they are kept.
        like: What the program is propagated like: ``jit`` or ``passes``; see `propagate`.
        source: What it was opened with; None where it starts with other shardings.
    """

    program: Program
    main: Op
    problem: Problem
    registry: Registry
    options: ProgramOptions
    warnings: tuple[Diagnostic, ...] = field(converter=as_warnings)
    _finisher: Finisher
    copies: CopyLog | None = None
    names: GivenNames | None = None
    _op_names: frozenset[str] = frozenset()
    like: Like = "passes"
    source: SessionArguments | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<Session of @{self.main.attributes['sym_name']}>"

    @classmethod
    @method_takes(SessionArguments)
    def open(cls, arguments: SessionArguments) -> Session:
        """Return the session of a program: read, prepared and compiled; a module that is given stays as it is.

        Raises:
            ShardyError: the input or an option is not valid, or a plugin is broken.
        """
        registry = make_semantics(arguments, arguments.registry)
        engine = engine_options(arguments, registry)
        read = read_input(arguments, registry, verify=arguments.verify)
        program, main, registry = read.program, read.main, read.registry
        left_out = give_shardings(read, arguments)
        verify_manual_axes(program)
        op_names = frozenset(program.op_names)
        names = GivenNames.of(program, main) if arguments.keep_names else None
        if arguments.on_given is not None:
            arguments.on_given(program, main)
        problems = [*(registry.problems if arguments.registry is None else registry.notices), *left_out]
        problems += (*reduced_shardings(read, arguments), *ignored_priorities(read, arguments))
        copies = CopyLog(registry) if arguments.keep_names or arguments.on_given is not None else None
        context = PassContext(registry, problems, copies=copies)
        pipeline = make_pipeline(arguments, explicit_collectives=True)
        with no_garbage_collection(keep=True), refuse_deep_nesting(main):
            run(program, pipeline.before_propagation(registry), context)
            problem = make_problem(
                program, registry, conservative=engine.conservative, warnings=context.warnings, check_arguments=True
            )
            keep_or_drop_rules(program, problem, keep=True)
            finisher = Finisher.of(program, problem, registry, pipeline.after_propagation(registry))
        diagnostics = (*context.warnings, *program.plugin_problems.values())
        options = narrow(arguments, ProgramOptions)
        main = find_main(program)
        fields = (program, main, problem, registry, options, diagnostics, finisher, copies, names, op_names)
        return cls(*fields, read.like, arguments)

    @property
    def strategy(self) -> Strategy:
        """The strategy that every solve uses."""
        return self.options.strategy

    @checked
    def solve(
        self,
        schedule: ScheduleLike | None = None,
        *,
        op_priorities: OpPriorities | None = None,
        observer: Observer | None = None,
        log: VisitLog | None = None,
    ) -> Solution:
        """Return the shardings that propagation finds under a schedule.

        Args:
            schedule: A `Schedule`, the ``pathlib.Path`` of a TOML file, the name of a built-in one; None for the
                default with the plugins' priorities.
            op_priorities: Ops that come before all others, as in `propagate`.
            observer: Gets every accepted update as it happens.
            log: Gets every visit.

        Raises:
            OptionError: there is no such schedule, or the strategy has no levels.
        """
        options = self._options(schedule, op_priorities)
        return solve(
            self.problem,
            schedule=options.schedule,
            strategies=STRATEGIES[options.strategy],
            user_priorities=options.user_priorities,
            observer=observer,
            log=log,
        )

    def schedule(self, schedule: ScheduleLike | None = None) -> Schedule | None:
        """Return the schedule that a solve uses; None where the strategy has no levels."""
        return self._options(schedule, None).schedule

    @checked
    def unknown_op_names(
        self, *schedules: ScheduleLike, op_priorities: OpPriorities | None = None
    ) -> tuple[Diagnostic, ...]:
        """Return a warning for each name in schedules that is of no op, neither of the program nor of a dialect.

        Args:
            schedules: The schedules, as for `solve`.
            op_priorities: Ops that come before them.

        Raises:
            OptionError: there is no such schedule, or the strategy has no levels.
        """
        warnings = (
            warning
            for schedule in schedules or (None,)
            for warning in unknown_op_names(
                self._options(schedule, op_priorities).schedule,
                schedule=schedule,
                op_priorities=op_priorities,
                op_names=self._op_names,
                registry=self.registry,
            )
        )
        return tuple(dict.fromkeys(warnings))

    def _options(self, schedule: ScheduleLike | None, op_priorities: OpPriorities | None) -> PropagationOptions:
        return engine_options(self.options, self.registry, schedule=schedule, op_priorities=op_priorities)

    @checked
    def with_shardings(self, shardings: Mapping[int, TensorSharding | None]) -> Session:
        """Return a session that starts with other shardings.

        Args:
            shardings: Slot to sharding, for those that change.
        """
        problem = copy(self.problem)
        problem.initial = list(problem.initial)
        for slot, sharding in shardings.items():
            if as_integer(slot) is None or not isinstance(sharding, (TensorSharding, NoneType)):
                message = f"expected a slot with its sharding or None, got {shown(slot)}: {shown(sharding)}"
                raise OptionError(Diagnostic("invalid-argument", message))
            if not 0 <= slot < len(problem.initial):
                raise OptionError(Diagnostic("invalid-argument", f"there is no slot {shown(slot)}"))
            problem.initial[slot] = problem.table.intern(sharding)
        return evolve(self, problem=problem, source=None)

    @checked
    def finish(self, solution: Solution, *, last_pass: str = "", like_partitioner: bool = False) -> Program:
        """Return a copy of the program with a solution's shardings and all communication as collectives.

        Ops and values that the passes after propagation leave as they are keep the ids they have in `program`. The
        copy is for analysis: it belongs to no native module.

        Args:
            solution: The solution.
            last_pass: The name of the pass after which to stop; by default all run.
            like_partitioner: Whether communication is that of XLA's partitioner, which follows the shardings of
                results, rather than that of Shardy's explicit reshards.

        Raises:
            ShardyError: the solution is of another session, or a pass cannot handle the program.
        """
        self._check_solution(solution)
        with no_garbage_collection(), refuse_deep_nesting(self.main):
            return self._finisher.finish(solution, last_pass=last_pass, like_partitioner=like_partitioner)

    def _check_solution(self, solution: Solution) -> None:
        """Check that a solution is of this session, or of one that starts with other shardings.

        Raises:
            OptionError: it is of another program.
        """
        if solution.problem.slot_values is not self.problem.slot_values:
            message = f"the solution is of another session than {self!r}"
            raise OptionError(Diagnostic("other-session", message, hint="solve the program with this session"))

    @checked
    def evaluate(
        self,
        schedule: ScheduleLike | None = None,
        machine: MachineLike | None = None,
        *,
        op_priorities: OpPriorities | None = None,
        axes: AxisLinks | None = None,
        layout: str | LayoutPolicy | None = None,
        profile: str | Profile | None = None,
        partitioner: Partitioner | None = None,
    ) -> Evaluation:
        """Return the outcome of a schedule, with its cost: the collectives of the local program, counted.

        Where there is no local program the cost is estimated from shardings, and a note says why. `price` estimates
        always, which takes a fraction of the time: sweeps of many schedules do that.

        Args:
            schedule: A `Schedule`, the ``pathlib.Path`` of a TOML file, the name of a built-in one; None for the
                default with the plugins' priorities.
            machine: A machine, the name of one that comes along, or a TOML file; without one there are no times.
            op_priorities: Ops that come before all others, as in `propagate`.
            axes: The links of the machine that the axes of the mesh run over, where that does not follow from their
                order.
            layout: The policy, or its name, that chooses layouts to count bytes with padding; None for plain bytes.
            profile: The profile of a backend, or its name: ``xla-cpu``, ``xla-gpu`` or ``none``; None for that of the
                machine.
            partitioner: ``shardy_py`` for the local program, ``xla`` for an estimate of what XLA's partitioner makes.
                None for the one that runs the program: XLA's for a text that JAX wrote, on a machine with a profile of
                XLA, as that is what `jax.jit` runs; else the local program.

        Raises:
            ShardyError: an option is not valid, or a pass cannot handle the program.
        """
        setting = PriceSetting.of(machine, axes=axes, layout=layout, profile=profile)
        is_of_jit = self.source is not None and is_converted_by_xla(self.source, setting.profile)
        if partitioner is None:
            partitioner = "xla" if is_of_jit else "shardy_py"
        check_partitioner(partitioner)
        is_converted = partitioner == "xla" and is_of_jit and self._like_jit.like == "jit"
        session = self._like_jit if is_converted else self
        solution = session.solve(schedule, op_priorities=op_priorities)
        if partitioner == "shardy_py":
            return self._count(solution, setting)
        evaluation = session._estimate(solution, setting)
        if not is_converted:
            return evaluation
        return evolve(evaluation, cost=evolve(evaluation.cost, notes=(*evaluation.cost.notes, PRICED_LIKE_JIT)))

    def _count(self, solution: Solution, setting: PriceSetting) -> Evaluation:
        """Return the outcome of a solution with the cost of its local program, or an estimate that says why not."""
        # Sweeps, advice and plans open sessions too, and never make a local program.
        from shardy_py.jax.local.make import count_local_program

        program = self.finish(solution)
        try:
            with no_garbage_collection(), refuse_deep_nesting(self.main):
                local = count_local_program(program, registry=self.registry, options=LocalOptions())
        except ShardyError as error:
            estimated = self._estimate(solution, setting.without_partitioner())
            return evolve(estimated, cost=add_reason(estimated.cost, error))
        return Evaluation(solution, program, count_cost(local, self.registry, setting, self._operations))

    @cached_property
    def _operations(self) -> Quantity:
        """The operations of the program on one device."""
        program = self._finisher.template
        return count_operations(program, find_main(program), self.registry)

    @cached_property
    def _like_jit(self) -> Session:
        """The session of the same program as `jax.jit` propagates it; this one where it has no such form."""
        assert self.source is not None, "only asked for where the source is kept"
        return Session.open(**keywords(evolve(self.source, like="jit")))

    @checked
    def price(
        self,
        solution: Solution,
        machine: MachineLike | None = None,
        *,
        axes: AxisLinks | None = None,
        layout: str | LayoutPolicy | None = None,
        profile: str | Profile | None = None,
    ) -> Evaluation:
        """Return the outcome of a solution, with its cost.

        Args:
            solution: The solution.
            machine: A machine, the name of one that comes along, or a TOML file; without one there are no times.
            axes: The links of the machine that the axes of the mesh run over, where that does not follow from their
                order.
            layout: The policy, or its name, that chooses layouts to count bytes with padding; None for plain bytes.
            profile: The profile of a backend, or its name: ``xla-cpu``, ``xla-gpu`` or ``none``; None for that of the
                machine.

        Raises:
            ShardyError: an option is not valid, or a pass cannot handle the program.
        """
        self._check_solution(solution)
        return self._estimate(solution, PriceSetting.of(machine, axes=axes, layout=layout, profile=profile))

    def _estimate(self, solution: Solution, setting: PriceSetting) -> Evaluation:
        """Return the outcome of a solution, with a cost estimated from its shardings."""
        rules = setting.profile
        warnings: list[Diagnostic] = []
        with no_garbage_collection(), refuse_deep_nesting(self.main):
            program = self._finisher.finish(solution, like_partitioner=rules.follows_results, warnings=warnings)
        with no_garbage_collection():
            cost = estimate(
                program,
                find_main(program),
                self.registry,
                setting.machine,
                axes=setting.axes,
                layout=setting.layout,
                rule_of=self.rule_of,
                profile=rules,
            )
        notes = [item.show("note") for item in warnings if item.code == REMATERIALIZATION]
        if rules.follows_results and self.like == "passes" and _WRITTEN_BY_JAX in self.program.attributes:
            notes.append(_NOT_LIKE_JIT)
        return Evaluation(solution, program, evolve(cost, notes=(*cost.notes, *notes)) if notes else cost)

    def rule_of(self, op: Op) -> OpShardingRule | None:
        """Return the sharding rule of an op of `program` or of a finished one."""
        rule = self._rules.get(op.id)
        return rule if rule is not None else self.registry.get_sharding_rule(op)

    @cached_property
    def _rules(self) -> dict[int, OpShardingRule]:
        """The rules of ops by their ids, which finished programs keep."""
        return {op.id: rule for op, rule in op_rules(self.problem)}

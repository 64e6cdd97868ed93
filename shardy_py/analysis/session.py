"""A program that is prepared and compiled once, and solved under as many schedules as one likes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import cached_property
from types import NoneType
from typing import Any

from attrs import define, evolve, frozen

from shardy_py.analysis.cost import Cost, estimate
from shardy_py.analysis.finishing import Finisher
from shardy_py.analysis.machine.placement import AxisLinks
from shardy_py.analysis.machine.toml import MachineLike, get_machine
from shardy_py.api.given_shardings import InShardings, OutShardings
from shardy_py.api.main_function import find_main
from shardy_py.api.options import Strategy, propagation_options
from shardy_py.api.run_input import give_shardings, make_semantics
from shardy_py.api.source import complete_registry, read_program, source_name
from shardy_py.arguments import checked, shown
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.explain.record.given_names import GivenNames
from shardy_py.integers import as_integer
from shardy_py.ir.constant_copies import CopyLog
from shardy_py.ir.gc_pause import no_garbage_collection
from shardy_py.ir.graph import Op, Program
from shardy_py.ir.nesting import refuse_deep_nesting
from shardy_py.ir.passes import PassContext
from shardy_py.ir.verify_shardings import verify_manual_axes
from shardy_py.layout.policies import LayoutPolicy
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.propagation import PropagationOptions, Solution
from shardy_py.propagation.engine import STRATEGIES, make_problem, op_rules, settle_rules
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.solve import solve
from shardy_py.propagation.trace import Observer, VisitLog
from shardy_py.schedule.given import OpPriorities, ScheduleLike
from shardy_py.schedule.model import Schedule
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.pipelines import PropagationPipeline
from shardy_py.transforms.run import run


@frozen(eq=False)
class Evaluation:
    """What a schedule leads to.

    Args:
        solution: The shardings that propagation finds.
        program: The finished program.
        cost: What it costs.
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
        problem: What the engine makes of it.
        registry: What is known about ops.
        strategy: The strategy that every solve uses.
        warnings: What is worth knowing, but no error.
        copies: Which copies of constants were made; None unless ``on_given`` was, or names are kept.
        names: The names of the program that was read; None unless they are kept.
    """

    program: Program
    main: Op
    problem: Problem
    registry: Registry
    strategy: Strategy
    warnings: tuple[Diagnostic, ...]
    _finisher: Finisher
    copies: CopyLog | None = None
    names: GivenNames | None = None

    @classmethod
    @checked
    def open(
        cls,
        module: Any,
        mesh: Any = None,
        *,
        in_shardings: InShardings | None = None,
        out_shardings: OutShardings | None = None,
        strategy: Strategy = "user-priority",
        conservative: bool = False,
        extended_rules: bool = False,
        dedup_functions_fully: bool = False,
        inline_calls: bool = False,
        registry: Registry | None = None,
        plugins: Iterable[object] = (),
        on_given: Callable[[Program, Op], None] | None = None,
        keep_names: bool = False,
    ) -> Session:
        """Return the session of a program: read, prepared and compiled; the arguments are those of `propagate`.

        Args:
            module: The program; a module that is given stays as it is.
            mesh: For a module without a mesh.
            in_shardings: Shardings of arguments.
            out_shardings: Shardings of results.
            strategy: ``basic``, ``aggressive``, ``op-priority`` or ``user-priority``.
            conservative: Leave out factors that could be sharded unevenly.
            extended_rules: Give rules to ops that the reference leaves without one.
            dedup_functions_fully: Let all calls of a function share its shardings.
            inline_calls: Put the bodies of functions in the places of their calls first.
            registry: What is known about ops; by default that of the installed plugins.
            plugins: More plugins besides the installed ones.
            on_given: Called with the program and its main function before any pass, once all shardings are given.
            keep_names: Keep the names of values for reports, which takes as long again as a third of all the rest.

        Raises:
            ShardyError: the input or an option is not valid, or a plugin is broken.
        """
        semantics = make_semantics(registry, plugins, RuleOptions(conservative, extended_rules))
        propagation_options(strategy=strategy, conservative=conservative, keep_sharding_rules=True)
        program = read_program(module, semantics)
        semantics = complete_registry(program, semantics)
        main = find_main(program, source=source_name(module))
        left_out = give_shardings(
            program, main, semantics, mesh=mesh, in_shardings=in_shardings, out_shardings=out_shardings
        )
        verify_manual_axes(program)
        names = GivenNames.of(program, main) if keep_names else None
        if on_given is not None:
            on_given(program, main)
        problems = [*(semantics.problems if registry is None else ()), *left_out]
        copies = CopyLog(semantics) if keep_names or on_given is not None else None
        context = PassContext(semantics, problems, copies=copies)
        pipeline = PropagationPipeline(
            dedup_functions_fully=dedup_functions_fully,
            enable_insert_explicit_collectives=True,
            reshard_ops_without_rule=True,
            inline_calls=inline_calls,
        )
        with no_garbage_collection(keep=True), refuse_deep_nesting(main):
            run(program, pipeline.before_propagation(semantics), context)
            problem = make_problem(
                program, semantics, conservative=conservative, warnings=context.warnings, check_arguments=True
            )
            settle_rules(program, problem, keep=True)
            finisher = Finisher.of(program, problem, semantics, pipeline.after_propagation(semantics))
        told = (*context.warnings, *program.plugin_problems.values())
        return cls(program, find_main(program), problem, semantics, strategy, told, finisher, copies, names)

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
                default with what the plugins say of their ops.
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

    def _options(self, schedule: ScheduleLike | None, op_priorities: OpPriorities | None) -> PropagationOptions:
        return propagation_options(
            strategy=self.strategy,
            conservative=False,
            keep_sharding_rules=True,
            schedule=schedule,
            op_priorities=op_priorities,
            plugin_priorities=self.registry.priorities,
            plugin_traits=self.registry.trait_names,
        )

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
                message = f"{shown(slot)}: {shown(sharding)} is no slot with its sharding"
                raise OptionError(Diagnostic("invalid-argument", message))
            if not 0 <= slot < len(problem.initial):
                raise OptionError(Diagnostic("invalid-argument", f"there is no slot {shown(slot)}"))
            problem.initial[slot] = problem.table.intern(sharding)
        return evolve(self, problem=problem)

    @checked
    def finish(self, solution: Solution, *, last_pass: str = "") -> Program:
        """Return a copy of the program with a solution's shardings and all communication as collectives.

        Ops and values that the passes after propagation leave as they are keep the ids they have in `program`. The
        copy is for analysis: it belongs to no native module.

        Args:
            solution: The solution.
            last_pass: The name of the pass after which to stop; by default all run.

        Raises:
            ShardyError: a pass cannot handle the program.
        """
        with no_garbage_collection(), refuse_deep_nesting(self.main):
            return self._finisher.finish(solution, last_pass=last_pass)

    @checked
    def evaluate(
        self,
        schedule: ScheduleLike | None = None,
        machine: MachineLike | None = None,
        *,
        op_priorities: OpPriorities | None = None,
        axes: AxisLinks | None = None,
        layout: str | LayoutPolicy | None = None,
    ) -> Evaluation:
        """Return what a schedule leads to, and what that costs.

        Args:
            schedule: See `solve`.
            machine: A machine, the name of one that comes along, or a TOML file; without one there are no times.
            op_priorities: See `solve`.
            axes: See `estimate`.
            layout: See `estimate`.

        Raises:
            ShardyError: an option is not valid, or a pass cannot handle the program.
        """
        return self.price(self.solve(schedule, op_priorities=op_priorities), machine, axes=axes, layout=layout)

    @checked
    def price(
        self,
        solution: Solution,
        machine: MachineLike | None = None,
        *,
        axes: AxisLinks | None = None,
        layout: str | LayoutPolicy | None = None,
    ) -> Evaluation:
        """Return what a solution leads to, and what that costs; the arguments are those of `evaluate`.

        Raises:
            ShardyError: an option is not valid, or a pass cannot handle the program.
        """
        found = None if machine is None else get_machine(machine)
        program = self.finish(solution)
        with no_garbage_collection():
            cost = estimate(
                program,
                find_main(program),
                self.registry,
                found,
                axes=axes,
                layout=layout,
                rule_of=self.rule_of,
            )
        return Evaluation(solution, program, cost)

    def rule_of(self, op: Op) -> OpShardingRule | None:
        """Return the sharding rule of an op of `program` or of a finished one."""
        known = self._rules.get(op.id)
        return known if known is not None else self.registry.get_sharding_rule(op)

    @cached_property
    def _rules(self) -> dict[int, OpShardingRule]:
        """The rules of ops by their ids, which finished programs keep."""
        return {op.id: rule for op, rule in op_rules(self.problem)}

"""A program that is prepared and compiled once, and solved under as many schedules as one likes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from attrs import define

from shardy_py.api.entry import find_main
from shardy_py.api.in_shardings import InShardings
from shardy_py.api.options import Strategy, propagation_options
from shardy_py.api.pipelines import PropagationPipeline
from shardy_py.api.schedules import OpPriorities, ScheduleLike
from shardy_py.api.setup import give_shardings, make_semantics
from shardy_py.api.source import complete_registry, read_program, source_name
from shardy_py.errors import Diagnostic
from shardy_py.ir.copying import copy_program
from shardy_py.ir.garbage import no_garbage_collection
from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.nesting import refuse_deep_nesting
from shardy_py.ir.passes import Pass, PassContext
from shardy_py.ir.pipelines import SaveModulePass
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.propagation import Solution
from shardy_py.propagation.compile import check_types
from shardy_py.propagation.engine import STRATEGIES, make_problem, settle_rules
from shardy_py.propagation.passes import UserPriorityPropagationPass
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.solve import solve
from shardy_py.propagation.trace import Observer, VisitLog


@define(frozen=True, eq=False)
class Session:
    """A compiled program.

    Attributes:
        program: The program as propagation finds it, after all passes that stand before; nothing changes it.
        main: Its main function.
        problem: What the engine makes of it.
        registry: What is known about ops.
        strategy: The strategy that every solve uses.
        warnings: What is worth knowing, but no error.
    """

    program: Program
    main: Op
    problem: Problem
    registry: Registry
    strategy: Strategy
    warnings: tuple[Diagnostic, ...]
    _template: Program
    _slots: tuple[tuple[int, int], ...]
    _rest: tuple[Pass, ...]

    @classmethod
    def open(
        cls,
        module: Any,
        mesh: Any = None,
        *,
        in_shardings: InShardings | None = None,
        strategy: Strategy = "user-priority",
        conservative: bool = False,
        extended_rules: bool = False,
        dedup_functions_fully: bool = False,
        registry: Registry | None = None,
        plugins: Iterable[object] = (),
    ) -> Session:
        """Return the session of a program: read, prepared and compiled; the arguments are those of `propagate`.

        Args:
            module: The program; a module that is given stays as it is.
            mesh: For a module without a mesh.
            in_shardings: Shardings of arguments.
            strategy: ``basic``, ``aggressive``, ``op-priority`` or ``user-priority``.
            conservative: Leave out factors that could be sharded unevenly.
            extended_rules: Give rules to ops that the reference leaves without one.
            dedup_functions_fully: Let all calls of a function share its shardings.
            registry: What is known about ops; by default that of the installed plugins.
            plugins: More plugins besides the installed ones.

        Raises:
            ShardyError: the input or an option is not valid, or a plugin is broken.
        """
        semantics = make_semantics(registry, plugins, RuleOptions(conservative, extended_rules))
        propagation_options(strategy=strategy, conservative=conservative, keep_sharding_rules=True)
        program = read_program(module)
        semantics = complete_registry(program, semantics)
        main = find_main(program, source=source_name(module))
        give_shardings(program, main, semantics, mesh=mesh, in_shardings=in_shardings)
        context = PassContext(semantics, list(semantics.problems) if registry is None else [])
        before, rest = _split(
            PropagationPipeline(
                dedup_functions_fully=dedup_functions_fully, enable_insert_explicit_collectives=True
            ).passes
        )
        with no_garbage_collection(), refuse_deep_nesting(main):
            for item in before:
                item.run(program, context)
            check_types(program, arguments=True)
            problem = make_problem(program, semantics, conservative=conservative, warnings=context.warnings)
            settle_rules(program, problem, keep=True)
            template = _without_unused(program, problem)
        return cls(
            program,
            find_main(program),
            problem,
            semantics,
            strategy,
            tuple(context.warnings),
            template,
            tuple(_living_slots(template, problem)),
            rest,
        )

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
        options = propagation_options(
            strategy=self.strategy,
            conservative=False,
            keep_sharding_rules=True,
            schedule=schedule,
            op_priorities=op_priorities,
            plugin_priorities=self.registry.priorities,
            plugin_traits=self.registry.trait_names,
        )
        return solve(
            self.problem,
            schedule=options.schedule,
            strategies=STRATEGIES[options.strategy],
            user_priorities=options.user_priorities,
            observer=observer,
            log=log,
        )

    def finish(self, solution: Solution) -> Program:
        """Return a copy of the program with a solution's shardings and all communication as collectives.

        Ops and values that the passes after propagation leave as they are keep the ids they have in `program`. The
        copy is for analysis: it belongs to no native module.

        Raises:
            ShardyError: a pass cannot handle the program.
        """
        with no_garbage_collection(), refuse_deep_nesting(self.main):
            program = copy_program(self._template)
            table, values, found = program.shardings, self.problem.table.values, solution.shardings
            for slot, value_id in self._slots:
                sharding = values[found[slot]]
                if sharding is not None:
                    table[value_id] = sharding
            context = PassContext(self.registry)
            for item in self._rest:
                item.run(program, context)
        return program


def _split(passes: Iterable[Pass]) -> tuple[tuple[Pass, ...], tuple[Pass, ...]]:
    """Return the passes before propagation and those after it."""
    items = [item for item in passes if not isinstance(item, SaveModulePass)]
    index = next(index for index, item in enumerate(items) if isinstance(item, UserPriorityPropagationPass))
    return tuple(items[:index]), tuple(items[index + 1 :])


def _without_unused(program: Program, problem: Problem) -> Program:
    """Return a copy of a program without the ops that propagation erases."""
    result = copy_program(program)
    if problem.removal is None:
        return result
    ops = {op.id: op for op in result.walk()}
    for op in reversed(problem.removal.ops):
        ops[op.id].erase()
    return result


def _living_slots(program: Program, problem: Problem) -> Iterator[tuple[int, int]]:
    """Yield every slot with the id of the value that stands for it, where a program still has that value."""
    living = {value.id for op in program.walk() for value in _values_of(op)}
    for slot, value in enumerate(problem.slot_values):
        if value.id in living:
            yield slot, value.id


def _values_of(op: Op) -> Iterator[Value]:
    """Yield the values that an op brings along: its results, those of a function, the arguments of its blocks."""
    yield from op.results
    yield from op.function_results
    for region in op.regions:
        for block in region.blocks:
            yield from block.arguments

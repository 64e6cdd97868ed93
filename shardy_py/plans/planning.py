"""Plans: solve with strict prices for the bound, with likely ones for plans, price each with the estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from attrs import evolve, field

from shardy_py.api.keywords import keywords, narrow, takes
from shardy_py.api.main_function import main_arguments
from shardy_py.api.options import ProgramInput, SessionArguments
from shardy_py.api.program_source import DEFAULT_OPTIONS, SessionOptions
from shardy_py.api.specs import as_sharding
from shardy_py.cost.machines.placement import MeshPlacement
from shardy_py.cost.machines.profile import get_profile
from shardy_py.cost.machines.toml import MachineLike, get_machine
from shardy_py.cost.session import Session
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.frontends.mlir import MLIR
from shardy_py.frontends.select import frontend_of
from shardy_py.plans.columns import PlanColumns, PlanSolution
from shardy_py.plans.graph import Placement, PlanGraph
from shardy_py.plans.known_layouts import known_layouts
from shardy_py.plans.latency import solve_with_latency
from shardy_py.plans.messages import PlanBounds
from shardy_py.plans.model import Choice, PlanModel
from shardy_py.plans.prices import Prices
from shardy_py.plans.result import SPACE, SPACE_OF_REPEATS, KnownLayout, ShardingPlan
from shardy_py.plans.state import next_states
from shardy_py.plans.ties import PlanTies
from shardy_py.plans.trials import PlanTrials
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.texts import format_bytes
from shardy_py.values import define, frozen

_ROUNDS = 6
"""Number of plans that are priced, each with other shardings of the arguments."""
_FEW_ROUNDS = 2
"""The same for programs of many nodes, which take seconds to price."""
_MANY_NODES = 1000
_ROUNDING = 1e-6
_TIGHTENED = 3
"""Number of times that the memory of the model is limited more, where no plan that was priced fits."""
_LEFT_OUT = 40
"""Number of plans that are priced to leave out shardings inside."""
_EXACT = (0.001, 0.0003, 0.0001)
"""The part by which plans may cost more than the bound of messages, where only the cheapest counts."""
_SEVERAL = (0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
"""The same where several are priced."""
_PARTS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""The same where there was no plan yet: a memory budget makes plans dearer."""
_COLUMNS = 20_000
_MORE_MEMORY = "allow more memory, or more devices along the mesh"


@frozen(slots=False, kw_only=True)
class PlanSettings:
    """Settings of a plan.

    Args:
        machine: The machine: a `Machine`, the name of one that comes along, or the path of a TOML file.
        minimise: What to make small: ``time``, or ``memory``, with the shortest time of the plans with the least.
        budget_memory: The bytes that a device may use at most.
        fix: Arguments, by name, number or glob, to shardings that the plan has to keep.
        results: ``like-arguments`` lets a result that is the next state of an argument, as in a training step, have
            its sharding; ``open`` leaves results to the plan.
        gap: The part by which a plan may exceed the bound before fewer plans are tried.
        known_layouts: Whether to price known layouts beside the plan; None for programs of up to a thousand ops.
    """

    machine: MachineLike
    minimise: Literal["time", "memory"] = "time"
    budget_memory: float | None = None
    fix: Mapping[int | str, Any] | None = None
    results: Literal["like-arguments", "open"] = "like-arguments"
    gap: float = 0.005
    known_layouts: bool | None = None


@frozen(slots=False)
class PlanArguments(PlanSettings, ProgramInput):
    """Arguments of `plan`.

    Args:
        module: The program, in any form that `propagate` takes.
        options: How to propagate, and more plugins.
    """

    options: SessionOptions = field(default=DEFAULT_OPTIONS, kw_only=True)


@takes(PlanArguments)
def plan(arguments: PlanArguments) -> ShardingPlan:
    """Return a plan: shardings of the inputs, and constraints inside where they make the program cheaper.

    The plan is the best of those that the estimator priced. Its bound holds for the linear model of the program: each
    axis of the mesh shards one dimension of a tensor or none, in the order of the mesh, without sub-axes.

    Raises:
        ShardyError: the module or an option is not valid, the program has no mesh, or no plan meets the budget.
    """
    return _Planner.of(arguments).best()


def plan_session(session: Session, settings: PlanSettings) -> ShardingPlan:
    """Return a plan for a program.

    Args:
        session: The session; it must keep the names of the program that was given.
        settings: The settings.

    Raises:
        ShardyError: a setting is not valid, the program has no mesh, or no plan meets the budget.
    """
    return _Planner.of_session(session, settings).best()


Input = TypeVar("Input", bound=ProgramInput)


def _as_it_stands(program: Input) -> Input:
    """Return a program that is read as it stands, not as `jax.jit` converts it: the plan is written into that."""
    return evolve(program, like="passes") if program.like is None else program


@define(eq=False)
class _Planner:
    settings: PlanSettings
    source: SessionArguments
    graph: PlanGraph
    prices: Prices
    mesh_name: str
    mesh: Mesh
    fixed: dict[int, Placement] = field(factory=dict)
    tied: dict[int, int] = field(factory=dict)
    smallest: Choice | None = None

    @classmethod
    def of(cls, arguments: PlanArguments) -> _Planner:
        session = arguments.options.open(_as_it_stands(narrow(arguments, ProgramInput)), keep_names=True)
        return cls.of_session(session, narrow(arguments, PlanSettings))

    @classmethod
    def of_session(cls, session: Session, settings: PlanSettings) -> _Planner:
        assert session.source is not None, "only a session that was opened is planned"
        source = _as_it_stands(session.source)
        if session.like == "jit" and source.like != "jit":
            session = Session.open(**keywords(source))
        meshes = [(name, mesh) for name, mesh in session.problem.table.meshes.items() if mesh.axes]
        if not meshes:
            message = "the program has no mesh"
            hint = "give one: mesh={'data': 4, 'model': 2} (--mesh data=4,model=2)"
            raise OptionError(Diagnostic("no-mesh", message, hint=hint))
        name, mesh = meshes[0]
        machine = get_machine(settings.machine)
        axes = tuple((axis.name, axis.size) for axis in mesh.axes if axis.size > 1)
        slots = range(len(session.problem.slot_values))
        bare = session.with_shardings(dict.fromkeys(slots))
        cost = bare.price(bare.solve(), machine).cost
        prices = Prices(
            machine,
            mesh,
            MeshPlacement(machine),
            axes,
            {kernel.op_id: kernel for kernel in cost.ops},
            get_profile(machine.profile),
        )
        planner = cls(settings, source, PlanGraph.of(session), prices, name, mesh)
        planner._fix()
        if settings.results == "like-arguments":
            planner.tied = next_states(planner.graph)
        return planner

    def best(self) -> ShardingPlan:
        """Return the best plan for the goal."""
        planner = self.within_least_memory() if self.settings.minimise == "memory" else self
        return planner.run()

    def within_least_memory(self) -> _Planner:
        """Return a planner whose memory budget is at most what the plan with the least memory needs."""
        model = self._model(self.prices)
        least = PlanColumns.of(model, has_memory=True).least_memory()
        if least is None:
            raise self._out_of_reach(model)
        plans = self._trials(budget=None, bound=0.0, space=SPACE).price_ways(least[0])
        needed = max(least[1], min(plan.peak_bytes for plan, _, _ in plans))
        budget = needed * (1 + _ROUNDING)
        if self.settings.budget_memory is not None:
            budget = min(budget, self.settings.budget_memory)
        return evolve(self, settings=evolve(self.settings, budget_memory=budget), smallest=least[0])

    def run(self) -> ShardingPlan:
        """Return the best plan that was priced."""
        strict = self._model(evolve(self.prices, is_strict=True, is_combined=True))
        bounds = PlanBounds.of(strict)
        _, solved = self._solve(bounds, parts=_EXACT, budget=self.settings.budget_memory)
        if solved is None and self.smallest is None:
            raise self._out_of_reach(strict)
        bound = 0.0 if solved is None else max(0.0, solved.bound - strict.slack)
        space = SPACE_OF_REPEATS if len(strict.ties.counts) < len(strict.ties.leaders) else SPACE
        budget, is_small = self.settings.budget_memory, len(self.graph.nodes) <= _MANY_NODES
        trials = self._trials(budget, bound, space)
        if is_small and solved is not None:
            trials.consider(solved.choice)
        combined = bounds.with_prices(strict.with_prices(evolve(self.prices, is_combined=True)))
        self._try_with_latency(trials, combined)
        likely = strict.with_prices(self.prices)
        if not trials.is_close(self.settings.gap):
            self._try_likely(trials, combined.with_prices(likely), _ROUNDS if is_small else _FEW_ROUNDS)
        if trials.best is None:
            self._try_smallest(trials, likely)
        if trials.best is None:
            raise self._too_large(trials.smallest)
        if not trials.is_close(self.settings.gap):
            bound = trials.bound = max(bound, self._bound_with_latency(bounds, trials.best.seconds))
            if is_small:
                trials.leave_out_pins(_LEFT_OUT)
        best = trials.best
        if self.settings.known_layouts or (self.settings.known_layouts is None and is_small):
            best = self._with_known_layouts(trials, likely, best)
        # What runs is the local program of MLIR; other frontends make theirs in another way.
        is_counted = is_small and frontend_of(self.graph.session.program).name == MLIR.name
        best = evolve(best, bound_seconds=bound)
        sent = trials.local_bytes(best) if is_counted else None
        if sent is not None:
            best = evolve(best, sent_bytes=sent, estimated_bytes=best.sent_bytes)
        # An estimate below the model's bound refutes the model, not the estimate.
        return evolve(best, bound_seconds=None) if best.seconds < bound * (1 - _ROUNDING) else best

    def _trials(self, budget: float | None, bound: float, space: str) -> PlanTrials:
        return PlanTrials(self.source, self.graph, self.prices, self.mesh_name, self.tied, budget, bound, space)

    def _try_with_latency(self, trials: PlanTrials, bounds: PlanBounds) -> None:
        """Price the cheapest choice of the likely prices of all-reduces that are combined, but for those on a path."""
        parts = sorted({*_SEVERAL, *_PARTS})
        part = max((part for part in parts if bounds.columns(part) <= _COLUMNS), default=parts[0])
        solved = self._solve_with_latency(bounds, part)
        if solved is not None:
            trials.consider(solved.choice)

    def _try_likely(self, trials: PlanTrials, bounds: PlanBounds, rounds: int) -> None:
        """Price the cheapest choices of the likely prices, with less memory where none fits."""
        limit = budget = self.settings.budget_memory
        fit = self._try_several(trials, bounds, rounds, limit)
        for _ in range(_TIGHTENED):
            if trials.best is not None or budget is None or limit is None or fit is None:
                return
            # The compiler may keep more than the model counts: what it computes early, and what it does not fuse.
            limit = min(limit, fit[0]) * min(1.0, budget / fit[1]) ** 1.1
            fit = self._try_several(trials, bounds, 1, limit)

    def _try_several(
        self, trials: PlanTrials, bounds: PlanBounds, rounds: int, budget: float | None
    ) -> tuple[float, float] | None:
        """Price the cheapest choices of the likely prices, each with other shardings of the arguments.

        Returns:
            The bytes of the last one by the model, and by the estimator.
        """
        columns, solved = self._solve(bounds, parts=_SEVERAL, budget=budget)
        fit = None
        for number in range(rounds):
            if number:
                solved = columns.solve()
            if solved is None:
                break
            fit = solved.memory, trials.consider(solved.choice)
            # Branch and bound over many columns takes longer than all else.
            if trials.is_close(self.settings.gap) or len(columns.program.costs) > _COLUMNS:
                break
            columns.forbid(solved.choice)
        return fit

    def _try_smallest(self, trials: PlanTrials, likely: PlanModel) -> None:
        """Price the choice with the least memory, however far dearer its shardings of the inputs alone are."""
        choice = self.smallest
        if choice is None:
            least = PlanColumns.of(likely, has_memory=True).least_memory()
            choice = None if least is None else least[0]
        if choice is not None:
            trials.is_priced_by_inputs = True
            trials.consider(choice)

    def _with_known_layouts(self, trials: PlanTrials, likely: PlanModel, best: ShardingPlan) -> ShardingPlan:
        """Return the plan, or a known layout that is better, with the known layouts beside it.

        Each has the best that the model has for the rest.
        """
        layouts: dict[str, tuple[str, ShardingPlan]] = {}
        for name, axes, allowed in known_layouts(self.graph, self.tied, self.prices):
            _, solved = self._solve(PlanBounds.of(likely.allow(allowed)), parts=_EXACT, budget=None)
            if solved is None:
                continue
            plan = min((way for way, _, _ in trials.price_ways(solved.choice)), key=lambda way: way.seconds)
            if name not in layouts or plan.seconds < layouts[name][1].seconds:
                layouts[name] = axes, plan
        budget = self.settings.budget_memory
        fitting = [plan for _, plan in layouts.values() if budget is None or plan.peak_bytes <= budget]
        best = min([best, *fitting], key=lambda plan: plan.seconds)
        known = (KnownLayout.of(name, axes, plan, best, budget) for name, (axes, plan) in layouts.items())
        return evolve(best, known=tuple(sorted(known, key=lambda layout: layout.seconds)))

    def _bound_with_latency(self, bounds: PlanBounds, seconds: float) -> float:
        """Return the bound with the latency of all-reduces that depend on each other.

        Args:
            bounds: The bounds without it.
            seconds: The time of a plan; a bound above that is of no use.
        """
        needed = {max(seconds / bounds.seconds - 1, 0.0)} if bounds.seconds else set()
        parts = sorted({*_PARTS, *_SEVERAL, *needed}, reverse=True)
        enough = [part for part in parts if bounds.limit(part) <= seconds * (1 + _ROUNDING)] or parts[-1:]
        part = next((part for part in enough if bounds.columns(part) <= _COLUMNS), enough[-1])
        solved = self._solve_with_latency(bounds, part)
        return 0.0 if solved is None else min(solved.bound, bounds.limit(part)) - bounds.model.slack

    def _solve_with_latency(self, bounds: PlanBounds, part: float) -> PlanSolution | None:
        near = bounds.within(part)
        return None if near is None else solve_with_latency(_columns(near, self.settings.budget_memory))

    def _model(self, prices: Prices) -> PlanModel:
        outs = [value for value, _ in self.graph.returned()]
        equal = [(self.graph.node_of[self.graph.views[outs[result]][0]], node) for result, node in self.tied.items()]
        ties = PlanTies.of(self.graph, prices, self.fixed, equal)
        return PlanModel.of(self.graph, prices, ties, self.fixed, equal)

    def _solve(
        self, bounds: PlanBounds, *, parts: tuple[float, ...], budget: float | None
    ) -> tuple[PlanColumns, PlanSolution | None]:
        """Return the columns of the plans near the cheapest, and the cheapest.

        Args:
            bounds: The bounds of the model.
            parts: By how much the plans may cost more than the bound; the first with few enough columns counts, then
                larger ones while there is no plan.
            budget: The bytes that a device may use at most, or None.
        """
        first = next((part for part in parts if bounds.columns(part) <= _COLUMNS), parts[-1])
        for part in sorted({*_PARTS, first}):
            near = bounds.within(part) if part >= first else None
            if near is None:
                continue
            columns = _columns(near, budget)
            solved = columns.solve()
            if solved is not None:
                return columns, evolve(solved, bound=min(solved.bound, bounds.limit(part)))
        columns = _columns(bounds.model, budget)
        return columns, columns.solve()

    def _fix(self) -> None:
        problem, arguments = self.graph.session.problem, main_arguments(self.graph.session.main)
        for key, spec in (self.settings.fix or {}).items():
            for value, _ in arguments.find_all(key):
                slot = problem.slot_of.get(value.id, -1)
                number = self.graph.node_of.get(slot)
                if number is None:
                    continue
                rank = len(self.graph.shape(slot))
                sharding = as_sharding(spec, rank=rank, mesh_name=self.mesh_name, mesh=self.mesh)
                self.fixed[number] = self._placement(sharding, f"--fix {key}")

    def _placement(self, sharding: TensorSharding, subject: str) -> Placement:
        dims: dict[str, int] = {}
        names = [name for name, _ in self.prices.axes]
        for dim, dim_sharding in enumerate(sharding.dim_shardings):
            axes = [axis.name for axis in dim_sharding.axes if axis.name in names]
            if any(axis.sub_axis is not None for axis in dim_sharding.axes):
                self._refuse(subject, "a plan has no sub-axes")
            if axes != sorted(axes, key=names.index):
                self._refuse(subject, "axes of a dimension stand in the order of the mesh")
            dims.update(dict.fromkeys(axes, dim))
        return tuple(dims.get(name) for name in names)

    def _refuse(self, subject: str, why: str) -> None:
        raise OptionError(Diagnostic("invalid-fix", f"{subject}: {why}", hint="--fix 'w=data,None'"))

    def _out_of_reach(self, model: PlanModel) -> OptionError:
        budget = self.settings.budget_memory
        least = PlanColumns.of(model, has_memory=True).least_memory() if budget is not None else None
        if budget is None or least is None:
            message = "the shardings that are fixed leave no plan"
            return OptionError(Diagnostic("no-plan", message, hint="give sizes that the axes divide, or fix less"))
        if least[1] <= budget:  # one of its nodes may have parts of several strategies
            return OptionError(
                Diagnostic(
                    "budget-out-of-reach",
                    f"no plan meets the memory budget of {format_bytes(round(budget))}",
                    hint=_MORE_MEMORY,
                )
            )
        return _over(budget, least[1], "no plan meets", "even the smallest needs at least")

    def _too_large(self, smallest: float | None) -> OptionError:
        budget = self.settings.budget_memory or 0.0
        return _over(
            budget,
            smallest or 0.0,
            "no plan that was priced meets",
            "the smallest needs",
        )


def _columns(model: PlanModel, budget: float | None) -> PlanColumns:
    columns = PlanColumns.of(model, has_memory=budget is not None)
    if budget is not None:
        columns.limit_memory(budget)
    return columns


def _over(budget: float, needs: float, subject: str, how: str) -> OptionError:
    sizes = (format_bytes(round(size)) for size in (budget, needs, needs - budget))
    message = "{0} the memory budget of {2}: {1} {3}, which is {4} more".format(subject, how, *sizes)
    return OptionError(Diagnostic("budget-out-of-reach", message, hint=_MORE_MEMORY))

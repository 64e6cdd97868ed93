"""The linear program of a plan, and its solution: the relaxation, then branch and bound where that is fractional."""

from __future__ import annotations

from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.values import define

_TOLERANCE = 1e-6


@define(eq=False)
class LinearProgram:
    """PlanColumns between zero and an upper limit, and rows between limits; costs are in seconds.

    Attributes:
        costs: The cost of each column.
        upper: The upper limit of each column.
        is_choice: Whether a column is a choice, which has to be 0 or 1.
    """

    costs: list[float] = field(factory=list)
    upper: list[float] = field(factory=list)
    is_choice: list[bool] = field(factory=list)
    _starts: list[int] = field(factory=lambda: [0])
    _columns: list[int] = field(factory=list)
    _values: list[float] = field(factory=list)
    _low: list[float] = field(factory=list)
    _high: list[float] = field(factory=list)

    def column(self, cost: float, *, is_choice: bool = False, upper: float = 1.0) -> int:
        """Add a column and return its number."""
        self.costs.append(cost)
        self.upper.append(upper)
        self.is_choice.append(is_choice)
        return len(self.costs) - 1

    def row(self, entries: list[tuple[int, float]], low: float, high: float) -> None:
        """Add a row; a column may stand in it once."""
        self._columns.extend(column for column, _ in entries)
        self._values.extend(value for _, value in entries)
        self._starts.append(len(self._columns))
        self._low.append(low)
        self._high.append(high)

    def solve(self, costs: Any = None, *, seconds: float = 120.0) -> Solved | None:
        """Return the best columns; None where the rows contradict each other.

        Args:
            costs: Other costs.
            seconds: The time limit of branch and bound.
        """
        np = _numpy()
        scaled = np.array(self.costs if costs is None else costs) * 1e3
        solved = _run(self, scaled, is_relaxed=True, seconds=seconds)
        if solved is None:
            return None
        chosen = solved.columns[np.array(self.is_choice)]
        if not np.abs(chosen - chosen.round()).max(initial=0.0) < _TOLERANCE:
            solved = _run(self, scaled, is_relaxed=False, seconds=seconds)
        return solved

    def arrays(self) -> tuple[Any, ...]:
        """Return starts, columns and values of the rows, and their limits, as arrays."""
        np = _numpy()
        return (
            np.array(self._starts, dtype=np.int32),
            np.array(self._columns, dtype=np.int32),
            np.array(self._values, dtype=np.float64),
            np.array(self._low, dtype=np.float64),
            np.array(self._high, dtype=np.float64),
        )


@define(eq=False)
class Solved:
    """A solution: the columns, and a bound on the cost in seconds that no choice can be below."""

    columns: Any
    bound: float


def _run(program: LinearProgram, costs: Any, *, is_relaxed: bool, seconds: float) -> Solved | None:
    try:
        import highspy  # noqa: F401 - only the check
    except ImportError:
        return _run_scipy(program, costs, is_relaxed=is_relaxed, seconds=seconds)
    return _run_highs(program, costs, is_relaxed=is_relaxed, seconds=seconds)


def _run_highs(program: LinearProgram, costs: Any, *, is_relaxed: bool, seconds: float) -> Solved | None:
    import highspy

    np = _numpy()
    starts, columns, values, low, high = program.arrays()
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(costs), len(low)
    model.col_cost_ = costs
    model.col_lower_, model.col_upper_ = np.zeros(len(costs)), np.array(program.upper)
    model.row_lower_, model.row_upper_ = low, high
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = starts, columns, values
    if not is_relaxed:
        kinds = highspy.HighsVarType
        model.integrality_ = [kinds.kInteger if is_integer else kinds.kContinuous for is_integer in program.is_choice]
    solver = highspy.Highs()
    solver.silent()
    for name, value in {"threads": 1, "random_seed": 0, "mip_rel_gap": 1e-6}.items():
        solver.setOptionValue(name, value)
    if not is_relaxed:
        solver.setOptionValue("time_limit", seconds)
    solver.passModel(model)
    solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    if status == highspy.HighsModelStatus.kInfeasible:
        return None
    columns = np.array(solver.getSolution().col_value)
    if not len(columns) or info.primal_solution_status != 2:
        raise _unsolved(solver.modelStatusToString(status))
    bound = info.objective_function_value if is_relaxed else info.mip_dual_bound
    return Solved(columns, float(bound) / 1e3)


def _run_scipy(program: LinearProgram, costs: Any, *, is_relaxed: bool, seconds: float) -> Solved | None:
    np = _numpy()
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_matrix
    except ImportError as error:
        raise _no_solver() from error
    starts, columns, values, low, high = program.arrays()
    matrix = csr_matrix((values, columns, starts), shape=(len(low), len(costs)))
    kinds = np.zeros(len(costs)) if is_relaxed else np.array(program.is_choice, dtype=np.int64)
    options = {"mip_rel_gap": 1e-6} if is_relaxed else {"mip_rel_gap": 1e-6, "time_limit": seconds}
    rows, limits = LinearConstraint(matrix, low, high), Bounds(0, np.array(program.upper))
    solution = milp(costs, constraints=rows, integrality=kinds, bounds=limits, options=options)
    if solution.x is None:
        if solution.status == 2:
            return None
        raise _unsolved(solution.message)
    return Solved(solution.x, float(solution.fun if is_relaxed else solution.mip_dual_bound) / 1e3)


def _numpy() -> Any:
    """Return NumPy, which the extra brings."""
    try:
        import numpy
    except ImportError as error:
        raise _no_solver() from error
    return numpy


def _no_solver() -> UnsupportedError:
    message = "planning needs a solver of linear programs"
    hint = "pip install shardy_py[plan], which brings highspy"
    return UnsupportedError(Diagnostic("no-solver", message, hint=hint))


def _unsolved(why: str) -> UnsupportedError:
    return UnsupportedError(Diagnostic("not-solved", f"the linear program of the plan was not solved: {why}"))

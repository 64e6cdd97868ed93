"""The linear program of a plan, to which columns and rows are added between solves, and its solution."""

from __future__ import annotations

from array import array
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.values import define


@define(eq=False)
class LinearProgram:
    """Columns between zero and an upper limit, and rows between limits; costs are in seconds.

    Attributes:
        unit: The seconds that a solver sees as 1, as its tolerances are absolute.
        costs: The cost of each column.
        upper: The upper limit of each column.
        is_choice: Whether a column is a choice, which has to be 0 or 1.
        low: The lower limit of each row.
        high: The upper limit of each row.
    """

    unit: float = 1e-3
    costs: list[float] = field(factory=list)
    upper: list[float] = field(factory=list)
    is_choice: list[bool] = field(factory=list)
    low: list[float] = field(factory=list)
    high: list[float] = field(factory=list)
    _rows: array[int] = field(factory=lambda: array("i"))
    _columns: array[int] = field(factory=lambda: array("i"))
    _values: array[float] = field(factory=lambda: array("d"))
    _solver: Any = None

    def column(self, cost: float, *, is_choice: bool = False, upper: float = 1.0) -> int:
        """Add a column and return its number."""
        self.costs.append(cost)
        self.upper.append(upper)
        self.is_choice.append(is_choice)
        return len(self.costs) - 1

    def row(self, low: float, high: float) -> int:
        """Add a row without entries and return its number."""
        self.low.append(low)
        self.high.append(high)
        return len(self.low) - 1

    def enter(self, row: int, column: int, value: float) -> None:
        """Add an entry; one of the row and the column is newer than the last solve."""
        self._rows.append(row)
        self._columns.append(column)
        self._values.append(value)

    def relaxed(self) -> Solved | None:
        """Return the best columns if choices may be fractions; None where the rows contradict each other."""
        if self._solver is None:
            self._solver = _HighsRelaxation() if _has_highs() else _ScipyRelaxation()
        return self._solver.solve(self)

    def whole(self, *, seconds: float = 120.0) -> Solved | None:
        """Return the best columns of those that were added, with choices that are 0 or 1.

        Args:
            seconds: The time limit of branch and bound.
        """
        return _branch_with_highs(self, seconds) if _has_highs() else _branch_with_scipy(self, seconds)

    def entries(self, since: int = 0) -> tuple[Any, Any, Any]:
        """Return rows, columns and values of the entries as arrays, from one on."""
        np = numpy()
        kinds = (self._rows, np.int32), (self._columns, np.int32), (self._values, np.float64)
        rows, columns, values = (np.array(entries[since:], kind) for entries, kind in kinds)
        return rows, columns, values

    @property
    def entry_count(self) -> int:
        """The number of entries."""
        return len(self._rows)


@define(eq=False)
class Solved:
    """A solution: the columns, what they cost in seconds, the least that any cost, and the prices of the rows.

    A solution of branch and bound has no prices of rows.
    """

    columns: Any
    seconds: float
    bound: float
    rows: Any = None


@define(eq=False)
class _HighsRelaxation:
    """A model that HiGHS keeps, so that each solve starts from the last solution."""

    solver: Any = None
    columns: int = 0
    rows: int = 0
    entries: int = 0

    def solve(self, program: LinearProgram) -> Solved | None:
        import highspy

        np = numpy()
        if self.solver is None:
            self.solver = _highs()
            self.solver.passModel(_model(program))
        else:
            self._add(program)
        count = len(program.costs)
        self.columns, self.rows, self.entries = count, len(program.low), program.entry_count
        everyone = np.arange(count, dtype=np.int32)
        self.solver.changeColsCost(count, everyone, np.array(program.costs) / program.unit)
        self.solver.changeColsBounds(count, everyone, np.zeros(count), np.array(program.upper))
        self.solver.run()
        status = self.solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise _unsolved(self.solver.modelStatusToString(status))
        solution = self.solver.getSolution()
        seconds = float(self.solver.getInfo().objective_function_value) * program.unit
        return Solved(np.array(solution.col_value), seconds, seconds, np.array(solution.row_dual) * program.unit)

    def _add(self, program: LinearProgram) -> None:
        """Add what is new: first columns with their entries in old rows, then rows."""
        np = numpy()
        rows, columns, values = program.entries(self.entries)
        count, is_old = len(program.costs) - self.columns, rows < self.rows
        if count:
            old = _compressed(columns[is_old] - self.columns, rows[is_old], values[is_old], count)
            costs = np.array(program.costs[self.columns :]) / program.unit
            upper = np.array(program.upper[self.columns :])
            self.solver.addCols(count, costs, np.zeros(count), upper, len(old[1]), old[0][:-1], old[1], old[2])
        count = len(program.low) - self.rows
        if count:
            new = _compressed(rows[~is_old] - self.rows, columns[~is_old], values[~is_old], count)
            low, high = np.array(program.low[self.rows :]), np.array(program.high[self.rows :])
            self.solver.addRows(count, low, high, len(new[1]), new[0][:-1], new[1], new[2])


class _ScipyRelaxation:
    """Solves from the start each time."""

    def solve(self, program: LinearProgram) -> Solved | None:
        np = numpy()
        try:
            from scipy.optimize import linprog
            from scipy.sparse import csr_matrix
        except ImportError as error:
            raise _no_solver() from error
        rows, columns, values = program.entries()
        matrix = csr_matrix((values, (rows, columns)), shape=(len(program.low), len(program.costs)))
        low, high = np.array(program.low), np.array(program.high)
        is_equal = low == high
        is_above, is_below = ~is_equal & np.isfinite(high), ~is_equal & np.isfinite(low)
        above = matrix[is_above], high[is_above]
        below = -matrix[is_below], -low[is_below]
        from scipy.sparse import vstack

        solution = linprog(
            np.array(program.costs) / program.unit,
            A_ub=vstack([above[0], below[0]]) if above[0].shape[0] + below[0].shape[0] else None,
            b_ub=np.concatenate([above[1], below[1]]) if above[0].shape[0] + below[0].shape[0] else None,
            A_eq=matrix[is_equal],
            b_eq=low[is_equal],
            bounds=np.stack([np.zeros(len(program.costs)), np.array(program.upper)], axis=1),
            method="highs",
        )
        if solution.status == 2:
            return None
        if solution.status != 0:
            raise _unsolved(solution.message)
        duals = np.zeros(len(low))
        duals[is_equal] = solution.eqlin.marginals
        count = int(is_above.sum())
        duals[is_above] += solution.ineqlin.marginals[:count]
        duals[is_below] -= solution.ineqlin.marginals[count:]
        seconds = float(solution.fun) * program.unit
        return Solved(solution.x, seconds, seconds, duals * program.unit)


def _branch_with_highs(program: LinearProgram, seconds: float) -> Solved | None:
    import highspy

    np = numpy()
    model, kinds = _model(program), highspy.HighsVarType
    model.integrality_ = [kinds.kInteger if is_choice else kinds.kContinuous for is_choice in program.is_choice]
    solver = _highs()
    solver.setOptionValue("mip_rel_gap", 1e-6)
    solver.setOptionValue("time_limit", seconds)
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    columns, info = np.array(solver.getSolution().col_value), solver.getInfo()
    if not len(columns) or info.primal_solution_status != 2:
        raise _unsolved(solver.modelStatusToString(solver.getModelStatus()))
    return Solved(
        columns, float(info.objective_function_value) * program.unit, float(info.mip_dual_bound) * program.unit
    )


def _branch_with_scipy(program: LinearProgram, seconds: float) -> Solved | None:
    np = numpy()
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_matrix

    rows, columns, values = program.entries()
    matrix = csr_matrix((values, (rows, columns)), shape=(len(program.low), len(program.costs)))
    solution = milp(
        np.array(program.costs) / program.unit,
        constraints=LinearConstraint(matrix, np.array(program.low), np.array(program.high)),
        integrality=np.array(program.is_choice, dtype=np.int64),
        bounds=Bounds(0, np.array(program.upper)),
        options={"mip_rel_gap": 1e-6, "time_limit": seconds},
    )
    if solution.x is None:
        if solution.status == 2:
            return None
        raise _unsolved(solution.message)
    return Solved(solution.x, float(solution.fun) * program.unit, float(solution.mip_dual_bound) * program.unit)


def _highs() -> Any:
    import highspy

    solver = highspy.Highs()
    solver.silent()
    for name, value in {"threads": 1, "random_seed": 0}.items():
        solver.setOptionValue(name, value)
    return solver


def _model(program: LinearProgram) -> Any:
    import highspy

    np = numpy()
    rows, columns, values = program.entries()
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(program.costs), len(program.low)
    model.col_cost_ = np.array(program.costs) / program.unit
    model.col_lower_, model.col_upper_ = np.zeros(len(program.costs)), np.array(program.upper)
    model.row_lower_, model.row_upper_ = np.array(program.low), np.array(program.high)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    starts, columns, values = _compressed(rows, columns, values, len(program.low))
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = starts, columns, values
    return model


def _compressed(major: Any, minor: Any, values: Any, count: int) -> tuple[Any, Any, Any]:
    """Return starts, minor numbers and values of entries, ordered by the major number; equal ones are added up."""
    np = numpy()
    order = np.lexsort((minor, major))
    major, minor, values = major[order], minor[order], values[order]
    if len(major):
        is_first = np.ones(len(major), dtype=bool)
        is_first[1:] = (major[1:] != major[:-1]) | (minor[1:] != minor[:-1])
        values = np.add.reduceat(values, np.flatnonzero(is_first))
        major, minor = major[is_first], minor[is_first]
    starts = np.searchsorted(major, np.arange(count + 1)).astype(np.int32)
    return starts, minor.astype(np.int32), values


def _has_highs() -> bool:
    try:
        import highspy  # noqa: F401 - only the check
    except ImportError:
        return False
    return True


def numpy() -> Any:
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

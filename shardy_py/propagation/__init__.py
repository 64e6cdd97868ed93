"""The propagation engine: compile a program, solve the problem, apply the solution."""

from shardy_py.propagation.compile import compile_program
from shardy_py.propagation.engine import PropagationOptions, apply_solution, propagate_program
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.solve import Solution, solve
from shardy_py.propagation.steps.factors import Direction, Strategy
from shardy_py.schedule.builtin import DEFAULT, FLAT
from shardy_py.schedule.model import Entry, Level, Schedule, Selector

__all__ = [
    "DEFAULT",
    "FLAT",
    "Direction",
    "Entry",
    "Level",
    "Problem",
    "PropagationOptions",
    "Schedule",
    "Selector",
    "Solution",
    "Strategy",
    "apply_solution",
    "compile_program",
    "propagate_program",
    "solve",
]

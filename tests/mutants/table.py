"""The mutants of the engine: small faults, each of which the default tests must find."""

from __future__ import annotations

from tests.mutants.mutant import Mutant
from tests.mutants.solver_mutants import FACTOR_KINDS, LEVELS, ORDER
from tests.mutants.step_mutants import STEPS, VIEWS

MUTANTS: tuple[Mutant, ...] = (*ORDER, *LEVELS, *FACTOR_KINDS, *STEPS, *VIEWS)

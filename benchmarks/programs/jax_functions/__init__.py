"""Functions as users of JAX write them: of its own libraries, and models, optimizers and samplers in plain JAX."""

from __future__ import annotations

from benchmarks.programs.jax_functions import arrays, indexing, linear, models, reductions, solvers, training
from benchmarks.programs.jax_functions.case import JaxFunction

JAX_FUNCTIONS: dict[str, JaxFunction] = {
    name: JaxFunction(name, function, tuple(arguments))
    for module in (arrays, indexing, linear, reductions, solvers, models, training)
    for name, function, *arguments in module.CASES
}

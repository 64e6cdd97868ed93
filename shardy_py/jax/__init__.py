"""XLA through JAX (extra ``jax``): the form for XLA, compiling it, running it."""

from shardy_py.jax.compile import to_jax
from shardy_py.jax.compiled import CompiledModule
from shardy_py.jax.form import for_xla

__all__ = ["CompiledModule", "for_xla", "to_jax"]

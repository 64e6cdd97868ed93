"""Local programs: what each device runs, and runs of it on host devices (extra ``jax``)."""

from __future__ import annotations

from shardy_py.jax.local.local_program import LocalProgram
from shardy_py.jax.local.make import make_local_program

__all__ = ["LocalProgram", "make_local_program"]

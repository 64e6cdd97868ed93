"""Arguments of a run, kept so that the run can be done again."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve, field

from shardy_py.api.options import PropagateArguments
from shardy_py.api.run_input import resolve_like
from shardy_py.frontends.select import find_frontend, named_frontend
from shardy_py.ir.graph.program import Program
from shardy_py.plugins import Registry
from shardy_py.values import frozen


@frozen(eq=False)
class GivenRun:
    """The arguments of a run.

    Args:
        kept: The arguments; where the run changes its module, without it.
        frontend: The name of the frontend that reads the copy of the module; "" where the arguments have the module.
        module: The copy.
        registry: The definitions of ops, without those that the module itself brings.
    """

    kept: PropagateArguments
    frontend: str
    module: bytes = field(repr=False)
    registry: Registry = field(repr=False)

    def arguments(self) -> PropagateArguments:
        """Return the arguments, with a module of their own."""
        known = evolve(self.kept, registry=self.registry, plugins=(), blocked=(), strict_plugins=False)
        if not self.frontend:
            return known
        frontend = named_frontend(self.frontend, self.registry)
        return evolve(known, module=frontend.from_bytes(self.module))


def keep_given(given: PropagateArguments, registry: Registry) -> GivenRun:
    """Return the arguments of a run, before it changes its module.

    Args:
        given: The arguments.
        registry: The definitions of ops.
    """
    is_function = given.args is not None or given.kwargs is not None
    if is_function or isinstance(given.module, (str, bytes, bytearray, Path, Program)):
        return GivenRun(given, "", b"", registry)
    frontend = find_frontend(given.module, registry)
    # The copy is a module of MLIR, which says no more that it is a program of JAX.
    like = resolve_like(given.like, given.module, frontend)
    return GivenRun(evolve(given, module=None, like=like), frontend.name, frontend.to_bytes(given.module), registry)

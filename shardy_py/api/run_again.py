"""The arguments of a run, kept so that its page and advice can run it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field

from shardy_py.api.options import PropagateArguments
from shardy_py.api.run_input import resolve_like
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.frontends.select import find_frontend, named_frontend
from shardy_py.ir.graph.program import Program
from shardy_py.plugins import Registry
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.schedule.from_options import ScheduleLike


@frozen(eq=False)
class GivenRun:
    """The arguments of a run.

    Args:
        stored: The arguments; where the run changes its module, without it.
        frontend: The name of the frontend that reads the copy of the module; "" where the arguments have the module.
        module: The copy.
        registry: The definitions of ops, without those that the module itself brings.
    """

    stored: PropagateArguments
    frontend: str
    module: bytes = field(repr=False)
    registry: Registry = field(repr=False)

    def arguments(self) -> PropagateArguments:
        """Return the arguments, with a module of their own."""
        known = evolve(self.stored, registry=self.registry, plugins=(), blocked=(), strict_plugins=False)
        if not self.frontend:
            return known
        frontend = named_frontend(self.frontend, self.registry)
        return evolve(known, module=frontend.from_bytes(self.module))


def keep_given(arguments: PropagateArguments, registry: Registry) -> GivenRun:
    """Return the arguments of a run, before it changes its module.

    Args:
        arguments: The arguments.
        registry: The definitions of ops.
    """
    is_function = arguments.args is not None or arguments.kwargs is not None
    if is_function or isinstance(arguments.module, (str, bytes, bytearray, Path, Program)):
        return GivenRun(arguments, "", b"", registry)
    frontend = find_frontend(arguments.module, registry)
    # The copy is a module of MLIR, which says no more that it is a program of JAX.
    like = resolve_like(arguments.like, arguments.module, frontend)
    return GivenRun(
        evolve(arguments, module=None, like=like), frontend.name, frontend.to_bytes(arguments.module), registry
    )


def order_of(arguments: PropagateArguments) -> ScheduleLike | None:
    """Return the order of ops of a run, with the ops that came before it."""
    if arguments.op_priorities is None:
        return arguments.schedule
    from shardy_py.api.pipeline import engine_options
    from shardy_py.api.run_input import make_semantics

    registry = make_semantics(arguments, arguments.registry)
    return engine_options(
        arguments, registry, schedule=arguments.schedule, op_priorities=arguments.op_priorities
    ).schedule


def untraced() -> OptionError:
    """Return the error for a question that only a traced run answers."""
    return OptionError(Diagnostic("no-trace", "the run was not traced", hint="call propagate with trace=True"))

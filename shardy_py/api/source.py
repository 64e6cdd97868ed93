"""Programs from modules of any form."""

from __future__ import annotations

from typing import Any

from shardy_py.frontends.select import find_frontend, frontend_of
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.verify import verify_given
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.plugins import Registry
from shardy_py.plugins.installed import installed_registry


def read_apart(module: Any, *, name: str = "-", registry: Registry | None = None) -> Any:
    """Return a module of unknown origin in a form that can do no harm to this process when it is read.

    Files and texts are read in a process of its own, by the frontend that accepts them; one that cannot do so refuses
    them. Objects have been made in this process.

    Args:
        module: The module, in any form that `propagate` takes.
        name: Its name in locations; a path is called by its own name.
        registry: The registry with the frontends of plugins; by default that of the installed ones.

    Raises:
        UnsupportedError: the frontend has no reader in a process of its own.
        ShardyError: the module is not valid, or ends the process that parses it.
    """
    return find_frontend(module, _known(registry)).isolate(module, name=name)


def read_program(module: Any, registry: Registry | None = None) -> Program:
    """Return the op graph of a module in any form; its locations name the file it was read from.

    Args:
        module: The module.
        registry: The registry with the frontends of plugins; by default that of the installed ones.

    Raises:
        ShardyError: the input is not valid.
    """
    return read_through(find_frontend(module, _known(registry)), module)


def read_through(frontend: Frontend, module: Any, *, verify: bool = True) -> Program:
    """Return the op graph of a module that a frontend accepts; see `read_program`.

    Args:
        frontend: The frontend.
        module: The module.
        verify: Whether the native library verifies the module.

    Raises:
        ShardyError: the input is not valid.
    """
    program = frontend.import_program(module) if verify else frontend.import_verified(module)
    if program.frontend is None or (program.frontend.name == frontend.name and frontend is not program.frontend):
        # It comes from a plugin; the native libraries have verified theirs.
        program.frontend = frontend
        verify_given(program)
    return program


def _known(registry: Registry | None) -> Registry:
    return installed_registry(skip_broken=True) if registry is None else registry


def complete_registry(program: Program, registry: Registry) -> Registry:
    """Return a registry extended by the op definitions of the module itself, where its frontend has any."""
    extended: Registry = frontend_of(program).extend_registry(program, registry)
    return extended

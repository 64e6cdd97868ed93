"""The calls a program makes: read a module, propagate it, look at the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardy_py.support.arguments import checked

if TYPE_CHECKING:
    from shardy_py.ir.graph.program import Program
    from shardy_py.plugins import Registry

__all__ = ["read"]


@checked
def read(module: Any, *, untrusted: bool = False, registry: Registry | None = None) -> Program:
    """Return the op graph of a module, which `propagate` and all other functions take in its place.

    Args:
        module: The module, in any form that `propagate` takes.
        untrusted: Whether its origin is unknown. Then a file or a text is read in a process of its own, which it may
            crash; a frontend that cannot do so refuses it.
        registry: The registry with the frontends of plugins; by default that of the installed ones.

    Raises:
        ShardyError: the module is not valid, or ends the process that parses it.
    """
    from shardy_py.api.source import read_apart, read_program

    return read_program(read_apart(module, registry=registry) if untrusted else module, registry)

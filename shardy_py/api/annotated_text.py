"""The text of a program as it was given, with shardings that something else than its author adds."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from shardy_py.api.options import ProgramInput
from shardy_py.api.run_input import RunInput, give_shardings, read_input
from shardy_py.frontends.mlir import MLIR
from shardy_py.frontends.select import find_frontend, frontend_of
from shardy_py.ir.graph.shardings import store_shardings
from shardy_py.plugins import Registry


def annotated_text(given: ProgramInput, registry: Registry, add: Callable[[RunInput], None]) -> str:
    """Return the text of a program with the shardings of the caller and with others, before any pass.

    Args:
        given: The program, which is read again; a module of jaxlib stays as it is.
        registry: The definitions of ops.
        add: Adds the other shardings to the program that was read.

    Raises:
        ShardyError: the module is not valid.
    """
    if find_frontend(given.module, registry).name == MLIR.name:
        given = evolve(given, module=MLIR.to_bytes(given.module))
    read = read_input(given, registry)
    give_shardings(read, given)
    add(read)
    store_shardings(read.program, read.registry)
    frontend = frontend_of(read.program)
    return frontend.print_text(frontend.write_back(read.program))

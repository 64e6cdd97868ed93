"""Sizes that a caller gives for dynamic dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field

from shardy_py.api.main_function import argument_names, arguments_of, find_main
from shardy_py.api.size_inference import SizeInference, set_shape
from shardy_py.api.source import complete_registry, read_through
from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.frontends.op_graphs import ProgramFrontend
from shardy_py.frontends.select import frontend_of
from shardy_py.guards.error_texts import shown
from shardy_py.ir.graph.dynamic_sizes import is_dynamic
from shardy_py.ir.graph.printing import print_program
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.frontend import Frontend, PrintedName
from shardy_py.plugins import Registry
from shardy_py.plugins.type_definition import give_shapes
from shardy_py.support.arguments import as_integer
from shardy_py.values import frozen

ALL = "?"
"""The name that stands for all dynamic dimensions without a size of their own."""


def module_of_sizes(module: Any, frontend: Frontend, sizes: Mapping[str, int], registry: Registry) -> Any:
    """Return a program in which dynamic dimensions have sizes.

    Args:
        module: The program as a caller gives it.
        frontend: The frontend that accepts it.
        sizes: The sizes by dimension of an argument (``arg0.1``, ``x.0``), by a name that the frontend knows, or for
            all others (``?``).
        registry: The definitions of ops.

    Raises:
        OptionError: a size is not a positive integer, or its dimension is not a dynamic one.
        UnsupportedError: a size does not follow from those of the arguments.
    """
    for name, size in sizes.items():
        number = as_integer(size)
        if not isinstance(name, str) or number is None or number < 1:
            message = f"the size of {shown(name)} is {shown(size)}"
            raise OptionError(Diagnostic("invalid-size", message, hint="give a positive integer: {'arg0.0': 64}"))
    native = frontend.with_sizes(module, sizes)
    if native is not None:
        return native
    if frontend.name == "mlir":
        return _module_of_sizes(module, frontend, sizes, registry)
    program = read_through(frontend, module)
    registry = complete_registry(program, registry)
    give_shapes(program, registry)
    _give(program, registry, sizes)
    # Its own frontend does not know how to write other types.
    return print_program(program) if frontend_of(program).name == "jit" else _as_graph(program, frontend)


def _module_of_sizes(module: Any, frontend: Frontend, sizes: Mapping[str, int], registry: Registry) -> str:
    """Return the text of a module of MLIR in which dynamic dimensions have sizes; the module stays as it is."""
    from shardy_py.frontends.mlir import parse_module, print_module, to_module, write_types

    program = read_through(frontend, parse_module(print_module(to_module(module), with_locations=True)))
    registry = complete_registry(program, registry)
    give_shapes(program, registry)
    _give(program, registry, sizes)
    return print_module(write_types(program), with_locations=True)


def _as_graph(program: Program, frontend: Frontend) -> Program:
    program.frontend = SizedFrontend(base=program.frontend or frontend)
    return program


@frozen
class SizedFrontend(ProgramFrontend):
    """Op graphs in which dynamic dimensions got sizes, with the names and arrays of the frontend that read them.

    Args:
        base: The frontend that read the program.
    """

    name: str = "sized"
    base: Frontend = field(kw_only=True)

    def printed_names(self, program: Program) -> Mapping[int, PrintedName]:
        """Return the names of values."""
        return self.base.printed_names(program)

    def argument_names(self, program: Program, function: Op) -> Sequence[str]:
        """Return the names of arguments."""
        return self.base.argument_names(program, function)

    def argument_aliases(self, program: Program, function: Op) -> Mapping[str, int]:
        """Return further names of arguments, each with the index of its argument."""
        return self.base.argument_aliases(program, function)

    def argument_arrays(self, program: Program) -> Mapping[int, Any]:
        """Return the arrays of arguments that the program brings itself."""
        return self.base.argument_arrays(program)

    def print_text(self, source: Program) -> str:
        """Return the op graph in MLIR's generic form."""
        return print_program(source)


def _give(program: Program, registry: Registry, sizes: Mapping[str, int]) -> None:
    """Give the dynamic dimensions of the arguments of a program sizes, and all others those that follow.

    Raises:
        OptionError: a size has no dimension, or contradicts another.
        UnsupportedError: a size does not follow from those of the arguments.
    """
    main = find_main(program)
    followed = SizeInference.of(program, main, registry)
    _give_arguments(main, sizes)
    followed.run()
    for value in entry_arguments(main):
        if is_dynamic(value.type):
            message = f"argument {value.index} of type {value.type} has a dimension without a size"
            hint = f"give it, --size arg{value.index}.0=64; or one for all, --size '?=64'"
            raise UnsupportedError(Diagnostic("size-not-known", message, main.location, main.name, hint))


def _give_arguments(main: Op, sizes: Mapping[str, int]) -> None:
    arguments, unused = arguments_of(main), set(sizes) - {ALL}
    known: list[str] = []
    for number, (value, name) in enumerate(zip(arguments, argument_names(main), strict=True)):
        if not isinstance(value.type, TensorType):
            continue
        shape = list(value.type.shape)
        for dim, size in enumerate(value.type.shape):
            if size is not None:
                continue
            names = [f"{item}.{dim}" for item in dict.fromkeys((name, f"arg{number}", str(number)))]
            known.append(names[0])
            chosen = next((item for item in (*names, ALL) if item in sizes), None)
            if chosen is not None:
                shape[dim] = sizes[chosen]
                unused.discard(chosen)
        set_shape(value, tuple(shape))
    if unused:
        message = f"{shown(min(unused))} is not a dynamic dimension of an argument"
        hint = f"the dynamic dimensions are {', '.join(known)}" if known else "no argument has a dynamic dimension"
        raise OptionError(Diagnostic("unknown-size", message, hint=hint))

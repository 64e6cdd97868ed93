"""The main function of a program and its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shardy_py.api.main_values import MainValues
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.verify import refuse_branches
from shardy_py.support.arguments import shown

_RESULT_NAME = "jax.result_info"


def find_main(program: Program, *, source: str = "") -> Op:
    """Return the function that a run starts with: ``main``, else the only one.

    Args:
        program: The program.
        source: The file it was read from, for the error.

    Raises:
        UnsupportedError: the module has no function, or several and none of them is the main one, or a function has
            several blocks.
    """
    refuse_branches(program)
    main = main_function(program)
    if main is None:
        raise UnsupportedError(
            Diagnostic("no-function", "the module has no function", source, hint="put the program into a func.func")
        )
    return main


def arguments_of(function: Op) -> list[Value]:
    """Return the arguments of a function; of a declaration, none."""
    blocks = function.regions[0].blocks if function.regions else []
    return blocks[0].arguments if blocks else []


def argument_name(index: int) -> str:
    """Return the name MLIR prints for an argument, without the percent sign."""
    return f"arg{shown(index)}"


def result_name(index: int) -> str:
    """Return the name of a result of a function."""
    return f"result{shown(index)}"


def main_arguments(function: Op) -> MainValues:
    """Return the arguments of a function, to find by number or name.

    An own name of a program of JAX is that of the parameter with the path in it: ``params['w']``.
    """
    return MainValues(
        function,
        arguments_of(function),
        _own_argument_names(function),
        "argument",
        argument_name,
        argument_aliases(function),
    )


def main_results(function: Op) -> MainValues:
    """Return the results of a function, to find by number or name; JAX calls one ``result['loss']``."""
    return MainValues(function, function.function_results, _own_result_names(function), "result", result_name)


def argument_aliases(function: Op) -> Mapping[str, int]:
    """Return the further names of arguments, to their numbers: a tied weight of PyTorch has several."""
    program = function.program
    if program.frontend is None:
        return {}
    count = len(arguments_of(function))
    aliases = frontend_of(program).argument_aliases(program, function)
    return {name: number for name, number in aliases.items() if 0 <= number < count}


def argument_names(function: Op) -> list[str]:
    """Return the names of a function's arguments: the user's own, which reports show, or else ``arg0``."""
    return _unique_names(_own_argument_names(function), len(arguments_of(function)), argument_name)


def result_names(function: Op) -> list[str]:
    """Return the names of a function's results: the user's own, which reports show, or else ``result0``."""
    return _unique_names(_own_result_names(function), len(function.function_results), result_name)


def _own_argument_names(function: Op) -> Sequence[str]:
    program = function.program
    return () if program.frontend is None else frontend_of(program).argument_names(program, function)


def _own_result_names(function: Op) -> Sequence[str]:
    return [str(item.get(_RESULT_NAME, "")).strip('"') for item in function.attributes.get("res_attrs") or ()]


def _unique_names(own: Sequence[str], count: int, name_of: Callable[[int], str]) -> list[str]:
    """Return own names where only one value has them, and numbered names for the others."""
    padded = [*own, *([""] * (count - len(own)))][:count]
    return [name if name and padded.count(name) == 1 else name_of(index) for index, name in enumerate(padded)]

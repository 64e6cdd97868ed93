"""The main function of a program and its arguments."""

from __future__ import annotations

from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.integers import as_integer, parse_integer
from shardy_py.ir.callgraph import main_function
from shardy_py.ir.graph import Op, Program, Value


def find_main(program: Program, *, source: str = "") -> Op:
    """Return the function that a run starts with: ``main``, else the only one.

    Args:
        program: The program.
        source: The file it was read from, for the error.

    Raises:
        UnsupportedError: the module has no function, or several and none of them is the main one.
    """
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
    return f"arg{index}"


def find_argument(function: Op, key: int | str) -> Value:
    """Return an argument of a function by number or by name.

    Args:
        function: The function.
        key: 0, or ``"arg0"``, ``"%arg0"``, ``"0"``.

    Raises:
        OptionError: there is no such argument.
    """
    arguments = arguments_of(function)
    index = _index(key)
    if index is not None and 0 <= index < len(arguments):
        return arguments[index]
    known = f"{argument_name(0)} to {argument_name(len(arguments) - 1)}" if arguments else "none"
    raise OptionError(
        Diagnostic(
            "unknown-argument",
            f"@{function.attributes.get('sym_name')} has no argument {key!r}",
            location=function.location,
            op=function.name,
            hint=f"its arguments are {known}",
        )
    )


def _index(key: int | str) -> int | None:
    return parse_integer(key.removeprefix("%").removeprefix("arg")) if isinstance(key, str) else as_integer(key)

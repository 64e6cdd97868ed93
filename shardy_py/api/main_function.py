"""The main function of a program and its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from shardy_py.arguments import shown
from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.frontends.select import frontend_of
from shardy_py.integers import as_integer, parse_integer
from shardy_py.ir.callgraph import main_function
from shardy_py.ir.check_single_block import refuse_branches
from shardy_py.ir.graph import Op, Program, Value

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


def find_argument(function: Op, key: int | str) -> Value:
    """Return an argument of a function by number or by name.

    Args:
        function: The function.
        key: 0, or ``"arg0"``, ``"%arg0"``, ``"0"``; or what the argument is called where it comes from, which for a
            program of JAX is the name of the parameter with the path in it: ``"params['w']"``.

    Raises:
        OptionError: there is no such argument, or several of that name.
    """
    return _find(function, key, arguments_of(function), _own_argument_names(function), "argument", argument_name)


def find_result(function: Op, key: int | str) -> Value:
    """Return a result of a function by number or by name.

    Args:
        function: The function.
        key: 0, or ``"result0"``, ``"0"``; or what JAX calls the result: ``"result['loss']"``.

    Raises:
        OptionError: there is no such result, or several of that name.
    """
    return _find(function, key, function.function_results, _own_result_names(function), "result", result_name)


def match_arguments(function: Op, pattern: str) -> list[Value]:
    """Return the arguments of a function whose names match a glob: ``*.q_proj.weight``, ``arg*`` without own names."""
    return _match(pattern, arguments_of(function), _own_argument_names(function), argument_name)


def match_results(function: Op, pattern: str) -> list[Value]:
    """Return the results of a function whose names match a glob."""
    return _match(pattern, function.function_results, _own_result_names(function), result_name)


def _match(pattern: str, values: Sequence[Value], own: Sequence[str], name_of: Callable[[int], str]) -> list[Value]:
    names = [name or name_of(index) for index, name in enumerate((*own, *[""] * (len(values) - len(own))))]
    if pattern in names or not any(character in pattern for character in "*?["):
        return []
    # JAX's names have brackets; in a glob that matches nothing they are plain characters.
    for glob in (pattern, pattern.replace("[", "[[]")):
        found = [value for value, name in zip(values, names, strict=False) if fnmatchcase(name, glob)]
        if found:
            return found
    return []


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


def _find(
    function: Op,
    key: int | str,
    values: Sequence[Value],
    names: Sequence[str],
    kind: str,
    name_of: Callable[[int], str],
) -> Value:
    index = _index(key, name_of(0)[:-1])
    named = [
        index for index, name in enumerate(names) if name and isinstance(key, str) and name == key.removeprefix("%")
    ]
    if index is not None and 0 <= index < len(values):
        if any(other != index for other in named):
            message = f"{shown(key)} is the name of {kind} {named[0]}, but the number of {kind} {index}"
            hint = f"give the number alone: {named[0]} or {index}"
            raise OptionError(Diagnostic(f"unknown-{kind}", message, function.location, function.name, hint))
        return values[index]
    if len(named) == 1:
        return values[named[0]]
    known = f"{name_of(0)} to {name_of(len(values) - 1)}" if values else "none"
    called = ", ".join(name for name in names if name)
    what = f"several {kind}s" if named else f"no {kind}"
    raise OptionError(
        Diagnostic(
            f"unknown-{kind}",
            f"@{function.attributes.get('sym_name')} has {what} {shown(key)}",
            location=function.location,
            op=function.name,
            hint=f"its {kind}s are {known}{f', called {called}' if called else ''}",
        )
    )


def _index(key: int | str, prefix: str) -> int | None:
    return parse_integer(key.removeprefix("%").removeprefix(prefix)) if isinstance(key, str) else as_integer(key)

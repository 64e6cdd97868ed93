"""The main function of a program, and its arguments and results by number, by name, or by a glob of names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property

from attrs import field

from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.verify import refuse_branches
from shardy_py.support.arguments import as_integer, parse_integer, shown
from shardy_py.values import frozen

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


def _unique_names(own_names: Sequence[str], count: int, name_of: Callable[[int], str]) -> list[str]:
    """Return own names where only one value has them, and numbered names for the others."""
    padded = [*own_names, *([""] * (count - len(own_names)))][:count]
    return [name if name and padded.count(name) == 1 else name_of(index) for index, name in enumerate(padded)]


@frozen(slots=False, eq=False)
class MainValues:
    """Arguments or results of a function.

    Args:
        function: The function.
        values: The arguments, or the results.
        own_names: What each is called where it comes from, or ""; the last ones may be left out.
        noun: What one of them is called: ``argument``.
        name_of: Its name by its number.
        aliases: Further names, to their numbers.
    """

    function: Op
    values: Sequence[Value]
    own_names: Sequence[str]
    noun: str
    name_of: Callable[[int], str]
    aliases: Mapping[str, int] = field(factory=dict)

    def find_all(self, key: int | str) -> list[tuple[Value, frozenset[str]]]:
        """Return the numbers of a key: of all names that match a glob, or of one number or name.

        Each comes with those of its own names that the key stands for, which a number does not.

        Raises:
            OptionError: there is none, or several of that name.
        """
        matching = self._match(key) if isinstance(key, str) else {}
        if matching:
            return [(self.values[number], frozenset(names)) for number, names in matching.items()]
        value = self.find(key)
        names = {key.removeprefix("%")} & self._numbers.keys() if isinstance(key, str) else ()
        return [(value, frozenset(names))]

    def find(self, key: int | str) -> Value:
        """Return the one of a number or a name.

        Args:
            key: 0, or ``"arg0"``, ``"%arg0"``, ``"0"``; or an own name.

        Raises:
            OptionError: there is none, or several of that name.
        """
        index = _index(key, self.name_of(0)[:-1])
        named = self._numbers.get(key.removeprefix("%"), []) if isinstance(key, str) else []
        if index is not None and 0 <= index < len(self.values):
            if any(other != index for other in named):
                raise self._two_meanings(key, named[0], index)
            return self.values[index]
        if len(named) == 1:
            return self.values[named[0]]
        raise self._unknown(key, is_known=bool(named))

    @cached_property
    def _numbers(self) -> Mapping[str, list[int]]:
        """The numbers of those with an own name, by that name."""
        numbers: dict[str, list[int]] = {}
        for number, name in enumerate(self.own_names):
            if name:
                numbers.setdefault(name, []).append(number)
        for name, number in self.aliases.items():
            numbers.setdefault(name, [number])
        return numbers

    @cached_property
    def _names(self) -> list[str]:
        padded = (*self.own_names, *[""] * (len(self.values) - len(self.own_names)))
        return [name or self.name_of(number) for number, name in enumerate(padded)]

    def _match(self, pattern: str) -> dict[int, list[str]]:
        """Return the names that match a glob, by number; a glob that is a name itself matches nothing."""
        names = [*zip(self._names, range(len(self.values)), strict=False), *self.aliases.items()]
        if not any(character in pattern for character in "*?[") or any(pattern == name for name, _ in names):
            return {}
        # JAX's names have brackets; in a glob that matches nothing they are plain characters.
        for glob in (pattern, pattern.replace("[", "[[]")):
            matching: dict[int, list[str]] = {}
            for name, number in names:
                if fnmatchcase(name, glob):
                    matching.setdefault(number, []).append(name)
            if matching:
                return dict(sorted(matching.items()))
        return {}

    def _two_meanings(self, key: int | str, named: int, index: int) -> OptionError:
        message = f"{shown(key)} is the name of {self.noun} {named}, but the number of {self.noun} {index}"
        return self._refuse(message, f"give the number alone: {named} or {index}")

    def _unknown(self, key: int | str, *, is_known: bool) -> OptionError:
        count = len(self.values)
        known = f"{self.name_of(0)} to {self.name_of(count - 1)}" if count else "none"
        called = ", ".join(name for name in (*self.own_names, *self.aliases) if name)
        what = f"several {self.noun}s" if is_known else f"no {self.noun}"
        return self._refuse(
            f"@{self.function.attributes.get('sym_name')} has {what} {shown(key)}",
            f"its {self.noun}s are {known}{f', called {called}' if called else ''}",
        )

    def _refuse(self, message: str, hint: str) -> OptionError:
        return OptionError(
            Diagnostic(f"unknown-{self.noun}", message, self.function.location, self.function.name, hint)
        )


def _index(key: int | str, prefix: str) -> int | None:
    return parse_integer(key.removeprefix("%").removeprefix(prefix)) if isinstance(key, str) else as_integer(key)

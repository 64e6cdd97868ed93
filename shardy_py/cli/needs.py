"""Options of a command that count only together with others: given without them they are refused, not ignored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click
from click.core import ParameterSource

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.values import frozen

Parameters = Mapping[str, Any]
_ATTRIBUTE = "option_needs"


@frozen
class Need:
    """A condition under which options have an effect.

    Args:
        names: The parameters of the options.
        counts: Returns whether they have an effect, from the values of all parameters of the command.
        problem: What is said where they have none, such as ``without --run``.
        hint: What the user can do about it.
    """

    names: tuple[str, ...]
    counts: Callable[[Parameters], bool]
    problem: str
    hint: str


def needs(
    *names: str, when: Callable[[Parameters], bool], problem: str, hint: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that refuses options of a command where they would have no effect.

    Args:
        names: The parameters of the options.
        when: Returns whether they have an effect, from the values of all parameters.
        problem: What is said where they have none; it follows on ``--option has no effect``.
        hint: What the user can do about it.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        needed = (Need(names, when, problem, hint), *getattr(command, _ATTRIBUTE, ()))
        setattr(command, _ATTRIBUTE, needed)
        return command

    return decorate


def needs_option(option: str, parameter: str, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that refuses options where another one is not given.

    Args:
        option: The other option, such as ``--run``.
        parameter: Its parameter.
        names: The parameters of the options.
    """
    return needs(
        *names,
        when=lambda options: bool(options[parameter]),
        problem=f"without {option}",
        hint=f"give {option}, too",
    )


def excludes_option(option: str, parameter: str, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that refuses options where another one is given.

    Args:
        option: The other option, such as ``--json``.
        parameter: Its parameter.
        names: The parameters of the options.
    """
    return needs(
        *names,
        when=lambda options: not options[parameter],
        problem=f"together with {option}",
        hint=f"leave one of the two out; {option} has no use for it",
    )


def check_needs(command: click.Command, context: click.Context) -> None:
    """Check that every option on the command line has an effect.

    Raises:
        OptionError: some have none; all of them are named.
    """
    flags = {item.name: item.opts[0] for item in command.params if item.name}
    problems = [
        Diagnostic("option-conflict", f"{flags[name]} has no effect {need.problem}", hint=need.hint)
        for need in getattr(command.callback, _ATTRIBUTE, ())
        for name in need.names
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and not need.counts(context.params)
    ]
    if problems:
        raise OptionError(*problems)

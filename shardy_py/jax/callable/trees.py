"""Calls of propagated functions of JAX with the trees of their arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.jax.signature import JaxSignature


def call_with_trees(
    signature: JaxSignature | None,
    run: Callable[..., list[Any]],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """Return the results of a call with the trees of a function of JAX, or with one array per argument.

    Args:
        signature: The trees; None for other programs.
        run: Takes one array per argument of the main function, and returns a list with one per result.
        arguments: The positional arguments.
        keywords: The arguments by keyword.

    Returns:
        The results in the tree of the function that was called with its own trees, unless that is one array or a flat
        tuple or list and the signature does not ask for it; else in a list.

    Raises:
        OptionError: an argument is given by keyword that no function has.
    """
    flat = None if signature is None else signature.flatten_arguments(arguments, keywords)
    if signature is None or flat is None:
        if keywords:
            message = f"there are no arguments {', '.join(keywords)} by keyword"
            raise OptionError(Diagnostic("argument-count", message, hint="give one array per argument"))
        return run(*arguments)
    results = signature.typed_results(run(*flat))
    is_flat = not signature.returns_trees and len(flat) == len(arguments) and signature.returns_a_list
    return results if is_flat else signature.unflatten_results(results)


def check_argument_count(count: int, expected: int) -> None:
    """Check that a program gets one array per argument.

    Raises:
        OptionError: it does not.
    """
    if count != expected:
        message = f"the module has {expected} arguments, {count} were given"
        raise OptionError(Diagnostic("argument-count", message, hint="give one array per argument"))

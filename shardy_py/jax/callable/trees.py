"""Calls of propagated functions of JAX with the trees of their arguments and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.jax.arguments import ArrayType
from shardy_py.jax.signature import JaxSignature


class FlatProgram(Protocol):
    """A compiled program that takes one array per argument of the main function."""

    @property
    def signature(self) -> JaxSignature | None:
        """The trees of a function of JAX; None for other programs."""

    @property
    def in_types(self) -> tuple[ArrayType, ...]:
        """The types of the arguments."""

    def run(self, *arguments: Any) -> list[Any]:
        """Return one array per result."""
        ...


def call_with_trees(program: FlatProgram, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the results of a call with the trees of a function of JAX, or with one array per argument.

    Args:
        program: The program.
        arguments: The positional arguments.
        keywords: The arguments by keyword.

    Returns:
        The results in the tree of the function that was called with its own trees, unless that is one array or a flat
        tuple or list and the signature does not ask for it; else in a list.

    Raises:
        OptionError: an argument is given by keyword that no function has.
    """
    signature = program.signature
    flat = None if signature is None else signature.flatten_arguments(arguments, keywords)
    if signature is None or flat is None:
        if keywords:
            message = f"there are no arguments {', '.join(keywords)} by keyword"
            raise OptionError(Diagnostic("argument-count", message, hint="give one array per argument"))
        return program.run(*arguments)
    flat = [_as_jax_reads(*pair) for pair in zip(flat, program.in_types, strict=True)]
    results = signature.typed_results(program.run(*flat))
    is_flat = not signature.returns_trees and len(flat) == len(arguments) and signature.returns_a_list
    return results if is_flat else signature.unflatten_results(results)


def _as_jax_reads(value: Any, type_: ArrayType) -> Any:
    """Return an array of numpy with 64 bits an element as JAX reads it: with 32, unless it was told not to."""
    import jax
    import numpy

    is_other = isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype != type_.dtype
    is_read_so = is_other and jax.dtypes.canonicalize_dtype(value.dtype) == type_.dtype
    return value.astype(type_.dtype) if is_read_so else value


def check_argument_count(count: int, expected: int) -> None:
    """Check that a program gets one array per argument.

    Raises:
        OptionError: it does not.
    """
    if count != expected:
        message = f"the module has {expected} arguments, {count} were given"
        raise OptionError(Diagnostic("argument-count", message, hint="give one array per argument"))

"""Errors of Python that say that an input asks for too much, as errors of this package."""

from __future__ import annotations

from shardy_py.errors import Diagnostic, UnsupportedError


def as_error(error: MemoryError | RecursionError | OverflowError, location: str = "") -> UnsupportedError:
    """Return the error of this package that says what there was too much of, and what to do.

    Args:
        error: The error of Python.
        location: The input, or "" where it is not known.
    """
    if isinstance(error, MemoryError):
        message = "the input needs more memory than there is"
        hint = "give the process more memory, or a smaller program or mesh"
        return UnsupportedError(Diagnostic("out-of-memory", message, location, hint=hint))
    if isinstance(error, RecursionError):
        message = "the input is nested too deeply"
        hint = "nest brackets, regions and calls less deeply; Python's limit is that of sys.setrecursionlimit"
        return UnsupportedError(Diagnostic("nested-too-deeply", message, location, hint=hint))
    message = f"a number of the input or of an option is too large: {error}"
    hint = "sizes, counts and times have to fit into 64 bits"
    return UnsupportedError(Diagnostic("number-too-large", message, location, hint=hint))

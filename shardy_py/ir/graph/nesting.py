"""The error for programs that are nested too deeply for recursive walks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op


@contextmanager
def refuse_deep_nesting(main: Op | None = None) -> Iterator[None]:
    """Turn a `RecursionError` into an error with a hint.

    Args:
        main: The function to name as the place; a chain of calls has no better one.

    Raises:
        UnsupportedError: regions and calls are nested too deeply.
    """
    try:
        yield
    except RecursionError:
        raise UnsupportedError(
            Diagnostic(
                "nested-too-deeply",
                "the regions and the calls of functions in each other are nested too deeply",
                location=main.location if main else "",
                op=main.name if main else "",
                hint="shorten the chain of calls, or raise sys.setrecursionlimit",
            )
        ) from None

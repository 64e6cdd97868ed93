"""Exit codes of a command that is stopped, as shells report them."""

INTERRUPTED = 130
"""By the user, with Ctrl-C."""
_SIGNALED = 128


def exit_code_of(number: int) -> int:
    """Return the exit code of a command that a signal stops.

    >>> exit_code_of(15)
    143
    """
    return _SIGNALED + number

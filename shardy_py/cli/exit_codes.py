"""Exit codes of a command that is stopped, as shells report them."""

INTERRUPTED = 130
"""By the user, with Ctrl-C."""
TERMINATED = 143
"""By a signal that asks it to end."""

"""Descriptions of child processes that died."""

from __future__ import annotations

import re
import signal

_CAUSE = re.compile(r"Assertion|LLVM ERROR|Check failed|Fatal|UNREACHABLE|terminate called|stack overflow|^F\d")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b")
_LONGEST = 2000
"""The most characters of a line that are shown; some libraries print the whole module in one."""


def describe_crash(code: int, stderr: str) -> str:
    """Return one line about why a process died: the signal or exit code, and the line with the cause.

    Args:
        code: The exit code, negative for a signal.
        stderr: What the process wrote to standard error.
    """
    cause = find_cause(stderr)
    return f"the process died ({name_exit(code)}){f': {cause}' if cause else ''}"


def name_exit(code: int) -> str:
    """Return the name of the signal that ended a process, or its exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def find_cause(stderr: str) -> str:
    """Return the line that says why a process died: a failed check, else an exception, else the last line; or ""."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    checks = [line for line in lines if _CAUSE.search(line)]
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    cause = (checks[:1] or exceptions[-1:] or lines[-1:] or [""])[0]
    return cause if len(cause) <= _LONGEST else f"{cause[:_LONGEST]} ..."

"""Descriptions of child processes that died."""

from __future__ import annotations

import re
import signal

_TELLING = re.compile(r"Assertion|LLVM ERROR|Check failed|Fatal|UNREACHABLE|terminate called|stack overflow|^F\d")


def describe_crash(code: int, stderr: str) -> str:
    """Return one line about why a process died: the signal and the assertion, where there is one."""
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    telling = [line.strip() for line in stderr.splitlines() if _TELLING.search(line)]
    return f"the process died ({name}): {(telling or [stderr[-300:].strip()])[0]}".strip()

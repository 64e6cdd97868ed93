"""The end of processes that work for another one."""

from __future__ import annotations

import os
import threading
import time
from functools import cache

_SECONDS = 1.0
"""The time between two looks at the parent."""


def end_with_parent() -> None:
    """End this process soon after its parent, however that one ends: nobody waits for the answer any more.

    A parent that is killed, by ``timeout`` for example, cannot end its children, and XLA may go on for hours.
    """
    _watch(os.getppid())


@cache
def end_with(process: int) -> None:
    """End this process soon after another one, where that is its parent; asked again, one watch is enough.

    Args:
        process: The id of the other one; a process that somebody else started, or a thread of it, is left alone.
    """
    if os.getppid() == process or _is_left_by(process):
        _watch(process)


def _is_left_by(process: int) -> bool:
    """Return whether this is a worker of joblib's loky that a process started, which may be gone already."""
    from multiprocessing import current_process, parent_process

    parent = parent_process()
    is_loky = type(current_process()).__name__ == "LokyProcess"
    return is_loky and parent is not None and parent.pid == process


def _watch(parent: int) -> None:
    threading.Thread(target=_wait_for_end, args=(parent,), daemon=True).start()


def _wait_for_end(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS)
    os._exit(1)

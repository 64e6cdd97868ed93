"""The end of processes that work for another one."""

from __future__ import annotations

import os
import threading
import time

_SECONDS = 1.0
"""The time between two looks at the parent."""


def end_with_parent() -> None:
    """End this process soon after its parent, however that one ends: nobody waits for the answer any more.

    A parent that is killed, by ``timeout`` for example, cannot end its children, and XLA may go on for hours.
    """
    threading.Thread(target=_wait_for_end, args=(os.getppid(),), daemon=True).start()


def _wait_for_end(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS)
    os._exit(1)

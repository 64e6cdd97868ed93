"""The variable that keeps the current folder off the path of every Python that starts, of whatever library.

In the current folder a file called ``random.py`` would take the place of the module of that name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def no_current_folder() -> Iterator[None]:
    """Keep the current folder off the path of each Python that a library starts in a block, such as joblib's."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(SAFE_PATH, None)
        else:
            os.environ[SAFE_PATH] = before

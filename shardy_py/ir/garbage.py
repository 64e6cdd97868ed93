"""Keeping the garbage collector away while graphs are built and rewritten."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Pause the cyclic garbage collector.

    A graph is one large cycle that stays alive, but the collector would look at all of it again and again while it
    grows.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

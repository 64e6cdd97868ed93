"""A sample of the reference's cases for each run of CI, and all of them on request."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

IS_WHOLE = any(name in os.environ for name in ("SHARDY_ALL_PROGRAMS", "SHARDY_KERNELS"))
"""Whether the environment asks for every case, or names cases of its own."""


def sample(items: Iterable[T], step: int) -> list[T]:
    """Return every ``step``-th item, or all of them where the environment asks for them."""
    return list(items)[:: 1 if IS_WHOLE else step]

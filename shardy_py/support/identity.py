"""Identities of objects, as numbers.

`id` tells the audit hooks of a process each time, and libraries have some: filelock, which JAX imports where it is
installed, has one under Python 3.12 and later. That makes `id` eight times as slow, and passes ask for identities all
the time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

identity: Callable[[object], int] = id if sys.version_info < (3, 12) else object.__hash__
"""A number that no other object has as long as this one lives."""


def copy_memo(pairs: Iterable[tuple[object, Any]]) -> dict[int, Any]:
    """Return the memo with which `copy.deepcopy` puts other objects in the places of some.

    Args:
        pairs: Each object with what comes in its place.
    """
    return {id(one): other for one, other in pairs}

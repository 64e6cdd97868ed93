"""Memory of this machine."""

from __future__ import annotations

import os


def machine_bytes() -> int | None:
    """Return the bytes of memory of this machine; None where it does not say, as Windows."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    return size if size > 0 else None

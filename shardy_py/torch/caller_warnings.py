"""Warnings that point at the line of the caller's program."""

from __future__ import annotations

import sys
import warnings

_PACKAGES = ("shardy_py", "torch")
"""The packages whose frames stand between the caller's line and a warning."""


def warn_caller(text: str) -> None:
    """Warn with the location of the innermost line that is neither of this package nor of PyTorch.

    Args:
        text: The warning.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PACKAGES:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)

"""Signatures of functions that others wrote."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, whose annotations may name what only a type checker knows.

    From Python 3.14 on annotations are evaluated when they are asked for, which `inspect.signature` does by itself.

    Raises:
        TypeError: it cannot be called.
        ValueError: it has no signature, as some functions of C.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.STRING)
    return inspect.signature(function)

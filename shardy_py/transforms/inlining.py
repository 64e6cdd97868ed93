"""Inlining before the passes of a pipeline."""

from __future__ import annotations

from shardy_py.ir.passes import Pass
from shardy_py.transforms.prepare.inline_calls import InlineCallsPass


def with_inlining(passes: tuple[Pass, ...], *, inline_calls: bool) -> tuple[Pass, ...]:
    """Return passes, with the one that inlines calls before all others where that is wanted.

    It comes first, so that all others find the program that a user would have written without calls.
    """
    return (InlineCallsPass(), *passes) if inline_calls else passes

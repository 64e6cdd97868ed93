"""A small fault of the engine."""

from __future__ import annotations

from shardy_py.values import frozen


@frozen
class Mutant:
    """A fault: one text of a file, and what stands in its place.

    Args:
        fault: What is wrong, in words.
        path: The file, from the root of the checkout.
        text: The text; the file has it once.
        replacement: The text in its place.
    """

    fault: str
    path: str
    text: str
    replacement: str

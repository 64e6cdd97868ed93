"""MLIR's inliner under its own name."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.transforms.prepare.inline_calls import InlineCallsPass
from shardy_py.values import NoFields


class InlinePass(NoFields):
    """Replace calls of functions by their bodies; calls of microbatches and of the functions of fragments stay."""

    name: ClassVar[str] = "inline"

    def run(self, program: Program, context: PassContext) -> None:
        """Inline the calls of all functions.

        Raises:
            UnsupportedError: functions call each other in a circle.
        """
        InlineCallsPass().run(program, context)

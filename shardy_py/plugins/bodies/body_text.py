"""A scalar body as a text; its parser and builder are imported on demand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import field

from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.emission import ElementBuilder, Scalar
from shardy_py.values import frozen

if TYPE_CHECKING:
    import ast

INDEX_NAME = re.compile(r"d\d+")
"""Names of the indices of the element."""


@frozen
class BodyText:
    """A scalar body as a text; an `Emission`.

    Args:
        text: The text.
        operands: The names of the operands; the last one may begin with a star, and stands for all that are left.
        results: An expression for each result.
    """

    text: str
    operands: tuple[str, ...] = field(eq=False)
    results: tuple[ast.expr, ...] = field(eq=False, repr=False)

    def __call__(self, builder: ElementBuilder, op: Op) -> Sequence[Scalar]:
        """Build one element of each result.

        Raises:
            PluginError: the text does not fit the op.
        """
        from shardy_py.plugins.bodies.build import build

        return build(self.text, self.operands, self.results, builder, op)

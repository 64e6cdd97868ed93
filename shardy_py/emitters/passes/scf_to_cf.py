"""Loops and conditions as branches between blocks."""

from __future__ import annotations

from attrs import frozen
from xdsl.context import Context
from xdsl.dialects import builtin
from xdsl.transforms.convert_scf_to_cf import ConvertScfToCf

from shardy_py.emitters.passes.base import KernelContext


@frozen
class ScfToCf:
    """Turn loops and conditions into branches, by xDSL's pass."""

    name: str = "scf-to-cf"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        ConvertScfToCf().apply(Context(), module)

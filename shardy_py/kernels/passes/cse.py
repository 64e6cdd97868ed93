"""Common subexpressions."""

from __future__ import annotations

from xdsl.dialects import builtin
from xdsl.transforms.common_subexpression_elimination import cse

from shardy_py.kernels.passes.base import KernelContext, erase_dead_ops
from shardy_py.values import frozen


@frozen
class CommonSubexpressions:
    """Compute equal values once, by xDSL's pass."""

    name: str = "cse"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        cse(module)
        erase_dead_ops(module.body)

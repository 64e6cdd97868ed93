"""Calls of functions that compute an element as ordinary calls."""

from __future__ import annotations

from xdsl.dialects import builtin, func

from shardy_py.kernels.dialect.ops import PureCallOp
from shardy_py.kernels.passes.base import KernelContext, add_before, replace, walk_ops
from shardy_py.values import frozen


@frozen
class ConvertPureCalls:
    """Turn each pure call into ``func.call``: nothing after this pass unites or moves calls."""

    name: str = "convert-pure-calls"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for op in walk_ops(module.body):
            if isinstance(op, PureCallOp):
                call = func.CallOp(op.callee, list(op.arguments), list(op.outputs.types))
                add_before(op, call)
                replace(op, list(call.results))

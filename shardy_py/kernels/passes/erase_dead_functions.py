"""Functions that nothing calls."""

from __future__ import annotations

from xdsl.dialects import builtin, func

from shardy_py.kernels.dialect.memory_ops import ShuffleReduceOp
from shardy_py.kernels.dialect.ops import PureCallOp
from shardy_py.kernels.entry.arguments import ENTRY
from shardy_py.kernels.passes.base import KernelContext, functions
from shardy_py.values import frozen


@frozen
class EraseDeadFunctions:
    """Erase functions that the entry function does not reach."""

    name: str = "erase-dead-functions"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        by_name = {function.sym_name.data: function for function in functions(module)}
        reached: set[str] = set()
        pending = [name for name, function in by_name.items() if ENTRY in function.attributes]
        while pending:
            name = pending.pop()
            if name in reached or name not in by_name:
                continue
            reached.add(name)
            pending += callees(by_name[name])
        for name, function in by_name.items():
            if name not in reached:
                function.detach()
                function.erase()


def callees(function: func.FuncOp) -> list[str]:
    """Return the names of the functions that a function calls, one per call."""
    found = []
    for op in function.walk():
        if isinstance(op, PureCallOp | func.CallOp):
            found.append(op.callee.string_value())
        elif isinstance(op, ShuffleReduceOp):
            found.append(op.combiner.string_value())
    return found

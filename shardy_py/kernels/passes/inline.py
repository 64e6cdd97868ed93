"""Calls of the functions of a kernel: inlined, or made ordinary calls; functions that nothing calls are erased."""

from __future__ import annotations

from xdsl.dialects import builtin, func

from shardy_py.kernels.dialect.memory_ops import ShuffleReduceOp
from shardy_py.kernels.dialect.ops import PureCallOp
from shardy_py.kernels.dialect.tile_ops import MaterializeOp, ReduceOp
from shardy_py.kernels.elemental.functions import NO_COMPUTE
from shardy_py.kernels.entry.arguments import ENTRY, MOST_PARAMETERS
from shardy_py.kernels.passes.base import KernelContext, add_before, functions, inline_block, replace, walk_ops
from shardy_py.values import frozen

Call = PureCallOp | func.CallOp


@frozen
class Inline:
    """Put the bodies of functions in the place of their calls, where that does not compute anything twice.

    Args:
        max_ops: The largest function that is inlined.
    """

    max_ops: int = 4000
    name: str = "inline"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        by_name = {function.sym_name.data: function for function in functions(module)}
        for name in _callees_first(by_name):
            self._inline_into(by_name[name], by_name)
        EraseDeadFunctions().run(module, context)

    def _inline_into(self, caller: func.FuncOp, by_name: dict[str, func.FuncOp]) -> None:
        refused: set[str] = set()
        while True:
            calls = [op for op in caller.walk() if isinstance(op, Call)]
            legal = [call for call in calls if _name(call) not in refused and _name(call) in by_name]
            if not legal:
                return
            name = _name(legal[0])
            same = [call for call in calls if _name(call) == name]
            if not self._is_legal(caller, by_name[name], same, by_name):
                refused.add(name)
                continue
            for call in same:
                body = by_name[name].body.clone()
                replace(call, inline_block(body.block, call, list(call.arguments)))

    def _is_legal(
        self, caller: func.FuncOp, callee: func.FuncOp, calls: list[Call], by_name: dict[str, func.FuncOp]
    ) -> bool:
        if NO_COMPUTE in callee.attributes:
            return True
        if len(callee.body.block.args) > MOST_PARAMETERS:
            # No device passes so many arguments; the entry function takes them from a table.
            return True
        # Equal calls that see each other are one by now; others compute in different branches or at other indices.
        if len(calls) > 1:
            return False
        if sum(1 for _ in callee.walk()) > self.max_ops:
            return False
        callers = [function for function in by_name.values() if callee.sym_name.data in callees(function)]
        if len(callers) <= 1:
            return True
        other_callees = set(callees(caller)) - {callee.sym_name.data}
        return bool(other_callees & set(callees(callee)))


def _name(call: Call) -> str:
    return call.callee.string_value()


def _callees_first(by_name: dict[str, func.FuncOp]) -> list[str]:
    ordered: dict[str, None] = {}
    visiting: set[str] = set()

    def visit(name: str) -> None:
        if name in ordered or name in visiting or name not in by_name:
            return
        visiting.add(name)
        for callee in callees(by_name[name]):
            visit(callee)
        ordered[name] = None

    for name in by_name:
        visit(name)
    return list(ordered)


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
    names = []
    for op in function.walk():
        if isinstance(op, PureCallOp | func.CallOp | MaterializeOp):
            names.append(op.callee.string_value())
        elif isinstance(op, ShuffleReduceOp | ReduceOp):
            names.append(op.combiner.string_value())
    return names


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

"""Give the device numbers of the global program a value: XLA refuses to, as it may mean the device or the program."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.op_names import CALL, MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import frozen


@frozen
class NumberGlobalDevicesPass:
    """Replace ``stablehlo.partition_id`` by 0 outside manual computations, and ``stablehlo.replica_id`` everywhere.

    Outside them a program is one program on one large device, the first and only one; there is one replica of it.
    """

    name: ClassVar[str] = "xla-number-global-devices"

    def run(self, program: Program, context: PassContext) -> None:
        """Replace the ops of all functions; functions that are called from manual computations keep theirs."""
        called = _called_from_manual(program)
        for op in ops_named(program, "stablehlo.partition_id", "stablehlo.replica_id"):
            if op.name == "stablehlo.replica_id" or not _is_local(op, called):
                _replace(program, op)


def _is_local(op: Op, called: frozenset[str]) -> bool:
    parent = op.parent_op
    while parent is not None and parent.name != MANUAL_COMPUTATION:
        if parent.attributes.get("sym_name") in called:
            return True
        parent = parent.parent_op
    return parent is not None


def _called_from_manual(program: Program) -> frozenset[str]:
    """Return the names of the functions that manual computations call, through others too."""
    functions = program.functions
    names: set[str] = set()
    waiting = list(ops_named(program, MANUAL_COMPUTATION))
    while waiting:
        for op in waiting.pop().walk():
            name = op.attributes["callee"].name if op.name == CALL else None
            if name in functions and name not in names:
                names.add(name)
                waiting.append(functions[name])
    return frozenset(names)


def _replace(program: Program, op: Op) -> None:
    zero = RawAttribute(f"dense<0> : {op.results[0].type}")
    constant = Op(program, "stablehlo.constant", (), [op.results[0].type], {"value": zero})
    if op.parent is not None:
        op.parent.insert_before(op, constant)
    op.results[0].replace_all_uses_with(constant.results[0])
    op.erase()

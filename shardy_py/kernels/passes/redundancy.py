"""Values that are computed more than once: common subexpressions, and loop-invariant code."""

from __future__ import annotations

from xdsl.dialects import builtin, scf
from xdsl.ir import Block, Operation
from xdsl.traits import is_side_effect_free
from xdsl.transforms.common_subexpression_elimination import cse

from shardy_py.kernels.passes.base import KernelContext, erase_dead_ops, inner_first
from shardy_py.values import frozen


@frozen
class CommonSubexpressions:
    """Compute equal values once, by xDSL's pass."""

    name: str = "cse"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        cse(module)
        erase_dead_ops(module.body)


@frozen
class LoopInvariantCode:
    """Move ops without side effects out of loops in which nothing that they use changes."""

    name: str = "loop-invariant-code-motion"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for loop in inner_first(module, scf.ForOp):
            _hoist(loop)


def _hoist(loop: scf.ForOp) -> None:
    parent = loop.parent
    assert parent is not None
    body = loop.body.block
    for op in list(body.ops):
        if op is not body.last_op and is_side_effect_free(op) and is_invariant(op, body):
            op.detach()
            parent.insert_op_before(op, loop)


def is_invariant(op: Operation, body: Block) -> bool:
    """Return whether an op, with all in its regions, uses nothing of a loop's body."""
    for inner in op.walk():
        for operand in inner.operands:
            if is_inside(operand.owner, body) and not is_inside(operand.owner, op):
                return False
    return True


def is_inside(owner: Operation | Block, container: Block | Operation) -> bool:
    """Return whether a block or an op lies in another one, or is it."""
    current: Operation | Block | None = owner
    while current is not None:
        if current is container:
            return True
        current = current.parent_op() if isinstance(current, Block) else current.parent
    return False

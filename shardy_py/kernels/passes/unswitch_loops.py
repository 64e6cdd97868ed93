"""Conditions that do not change in a loop."""

from __future__ import annotations

from xdsl.dialects import builtin, scf
from xdsl.ir import Block, Region

from shardy_py.kernels.passes.base import KernelContext, inner_first, replace
from shardy_py.kernels.passes.simplify_arith import fold_branches
from shardy_py.values import frozen


@frozen
class UnswitchLoops:
    """Turn a loop around nothing but an if on an invariant condition into an if around the loop."""

    name: str = "unswitch-loops"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        # An if that leaves an inner loop may leave the outer one, too.
        for op in inner_first(module, scf.ForOp):
            _unswitch(op)
        fold_branches(module)


def _unswitch(loop: scf.ForOp) -> None:
    body = loop.body.block
    ops = list(body.ops)
    if len(ops) != 2 or not isinstance(ops[0], scf.IfOp):
        return
    branch, terminator = ops
    assert isinstance(branch, scf.IfOp)
    owner = branch.cond.owner
    if (isinstance(owner, Block) and owner is body) or list(terminator.operands) != list(branch.results):
        return
    if not branch.false_region.blocks or not _keeps(branch, loop):
        return
    parent = loop.parent
    assert parent is not None
    then = branch.true_region.block
    inner = Block(arg_types=[argument.type for argument in body.args])
    for argument, value in zip(body.args, inner.args, strict=True):
        argument.replace_all_uses_with(value)
    for op in list(then.ops):
        op.detach()
        inner.add_op(op)
    made = scf.ForOp(loop.lb, loop.ub, loop.step, list(loop.iter_args), Region(inner))
    taken, skipped = Block(), Block()
    taken.add_op(made)
    taken.add_op(scf.YieldOp(*made.results))
    skipped.add_op(scf.YieldOp(*loop.iter_args))
    whole = scf.IfOp(branch.cond, [value.type for value in loop.results], Region(taken), Region(skipped))
    parent.insert_op_before(whole, loop)
    replace(loop, list(whole.results))


def _keeps(branch: scf.IfOp, loop: scf.ForOp) -> bool:
    """Return whether the other branch does nothing but to give the carried values back."""
    ops = list(branch.false_region.block.ops)
    return len(ops) == 1 and list(ops[0].operands) == list(loop.body.block.args[1:])

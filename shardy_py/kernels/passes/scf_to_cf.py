"""Loops and conditions as branches between blocks."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import builtin, cf, scf
from xdsl.ir import Block
from xdsl.transforms.convert_scf_to_cf import ConvertScfToCf

from shardy_py.kernels.passes.base import KernelContext
from shardy_py.values import frozen


@frozen
class ScfToCf:
    """Turn loops and conditions into branches, by xDSL's pass; loops with a condition of their own here."""

    name: str = "scf-to-cf"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        ConvertScfToCf().apply(Context(), module)
        # Nothing but functions is around them now.
        for loop in [op for op in module.walk() if isinstance(op, scf.WhileOp)]:
            _lower(loop)


def _lower(loop: scf.WhileOp) -> None:
    block = loop.parent
    assert block is not None
    region, following = block.parent, loop.next_op
    assert region is not None
    assert following is not None
    rest = block.split_before(following, arg_types=[result.type for result in loop.results])
    for result, argument in zip(loop.results, rest.args, strict=True):
        result.replace_all_uses_with(argument)
    place = region.get_block_index(rest)
    head, body = loop.before_region.blocks[0], loop.after_region.blocks[0]
    moved = [*loop.before_region.blocks, *loop.after_region.blocks]
    for inner in (loop.before_region, loop.after_region):
        for item in list(inner.blocks):
            inner.detach_block(item)
    region.insert_block(moved, place)
    _end(moved, head, body, rest)
    block.add_op(cf.BranchOp(head, *loop.arguments))
    loop.detach()
    loop.erase()


def _end(blocks: list[Block], head: Block, body: Block, rest: Block) -> None:
    """Let the condition lead to the body or out of the loop, and the body back to the condition."""
    for block in blocks:
        last = block.last_op
        if isinstance(last, scf.ConditionOp):
            passed = list(last.args)
            branch = cf.ConditionalBranchOp(last.condition, body, passed, rest, passed)
        elif isinstance(last, scf.YieldOp):
            branch = cf.BranchOp(head, *last.operands)  # type: ignore[assignment]
        else:
            continue
        block.erase_op(last)
        block.add_op(branch)

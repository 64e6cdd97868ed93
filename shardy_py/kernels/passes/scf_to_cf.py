"""Loops and conditions as branches between blocks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, builtin, cf, scf
from xdsl.ir import Attribute, Block, Operation, Region

from shardy_py.kernels.passes.base import KernelContext, inner_first, replace
from shardy_py.values import frozen


@frozen
class ScfToCf:
    """Turn loops and conditions into branches.

    The last ones come first: each moves only the ops between it and the next one, and blocks are placed beside others
    and not by their number, so that the work grows with the number of ops and no faster, which xDSL's pass does not.
    """

    name: str = "scf-to-cf"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for op in inner_first(module, Operation):
            if isinstance(op, scf.IndexSwitchOp):
                _lower_switch(op)
            elif isinstance(op, scf.IfOp):
                _lower_if(op)
            elif isinstance(op, scf.ForOp):
                _lower_for(op)
            elif isinstance(op, scf.WhileOp):
                _lower_while(op)


def _lower_if(op: scf.IfOp) -> None:
    condition, rest = _split(op)
    target = _block_of_results(op, rest)
    branches = [_inline(region, target) or target for region in (op.true_region, op.false_region)]
    condition.add_op(cf.ConditionalBranchOp(op.cond, branches[0], (), branches[1], ()))
    replace(op, target.args)


def _lower_switch(op: scf.IndexSwitchOp) -> None:
    condition, rest = _split(op)
    target = _block_of_results(op, rest)
    cases = [_inline(region, target) or target for region in op.case_regions]
    default = _inline(op.default_region, target) or target
    values = op.cases.get_values()
    case = arith.IndexCastOp(op.arg, builtin.i32)
    numbers = builtin.DenseIntElementsAttr.from_list(builtin.VectorType(builtin.i32, (len(values),)), values)
    condition.add_ops([case, cf.SwitchOp(case, default, (), numbers, cases, [()] * len(cases))])
    replace(op, target.args)


def _lower_for(loop: scf.ForOp) -> None:
    before, after = _split(loop)
    head = loop.body.blocks[0]
    _, body = _split(head.ops.first)
    last = loop.body.last_block
    assert last is not None
    _move_blocks(loop.body, after)
    number, *carried = head.args
    step = arith.AddiOp(number, loop.step)
    _end(last, cf.BranchOp(head, step, *_last_op(last).operands), step)
    before.add_op(cf.BranchOp(head, loop.lb, *loop.iter_args))
    is_inside = arith.CmpiOp(number, loop.ub, "slt")
    head.add_ops([is_inside, cf.ConditionalBranchOp(is_inside, body, (), after, ())])
    replace(loop, carried)


def _lower_while(loop: scf.WhileOp) -> None:
    before, rest = _split(loop, [result.type for result in loop.results])
    head, body = loop.before_region.blocks[0], loop.after_region.blocks[0]
    condition_block, last = loop.before_region.last_block, loop.after_region.last_block
    assert condition_block is not None
    assert last is not None
    for region in (loop.before_region, loop.after_region):
        _move_blocks(region, rest)
    condition = _last_op(condition_block)
    assert isinstance(condition, scf.ConditionOp)
    passed = list(condition.args)
    _end(condition_block, cf.ConditionalBranchOp(condition.condition, body, passed, rest, passed))
    _end(last, cf.BranchOp(head, *_last_op(last).operands))
    before.add_op(cf.BranchOp(head, *loop.arguments))
    replace(loop, rest.args)


def _split(op: Operation | None, arg_types: Sequence[Attribute] = ()) -> tuple[Block, Block]:
    """Move an op and all behind it to a new block after its own, and return both."""
    assert op is not None
    block, rest = op.parent, Block(arg_types=arg_types)
    assert block is not None
    region = block.parent
    assert region is not None
    region.insert_block_after(rest, block)
    while op is not None:
        following = op.next_op
        op.detach()
        rest.add_op(op)
        op = following
    return block, rest


def _block_of_results(op: Operation, rest: Block) -> Block:
    """Return the block whose arguments are the results of an op, before the rest; the rest itself if it has none."""
    if not op.results:
        return rest
    block = Block([cf.BranchOp(rest)], arg_types=[result.type for result in op.results])
    _region_of(rest).insert_block_before(block, rest)
    return block


def _inline(region: Region, target: Block) -> Block | None:
    """Move the blocks of a region before a target, to which its end leads, and return the first of them, if any."""
    first, last = region.first_block, region.last_block
    if first is None or last is None:
        return None
    _end(last, cf.BranchOp(target, *_last_op(last).operands))
    _move_blocks(region, target)
    return first


def _move_blocks(region: Region, target: Block) -> None:
    blocks = list(region.blocks)
    for block in blocks:
        region.detach_block(block)
    _region_of(target).insert_block_before(blocks, target)


def _end(block: Block, branch: Operation, *before: Operation) -> None:
    """Put a branch in the place of the last op of a block."""
    block.erase_op(_last_op(block))
    block.add_ops([*before, branch])


def _region_of(block: Block) -> Region:
    assert block.parent is not None
    return block.parent


def _last_op(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op

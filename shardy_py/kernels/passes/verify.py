"""Verification of a kernel's module, in time that grows with its ops."""

from __future__ import annotations

from xdsl.dialects import builtin
from xdsl.ir import Operation
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException


def verify_module(module: builtin.ModuleOp) -> None:
    """Verify every op of a module.

    xDSL's own verification counts the blocks of a region once per block, which for the branches of a concatenate of
    thousands of operands takes longer than all passes.

    Raises:
        VerifyException: an op is not valid.
    """
    for op in module.walk():
        if _ends_block_of_several(op):
            _verify_branch(op)
        else:
            op.verify(verify_nested_ops=False)


def _ends_block_of_several(op: Operation) -> bool:
    block = op.parent
    region = None if block is None else block.parent
    return (
        block is not None and region is not None and block.last_op is op and region.first_block is not region.last_block
    )


def _verify_branch(op: Operation) -> None:
    """Verify the last op of a block in a region of several blocks."""
    assert op.parent is not None
    if not op.has_trait(IsTerminator):
        raise VerifyException(f"'{op.name}' ends a block, but is not a terminator")
    if any(target.parent is not op.parent.parent for target in op.successors):
        raise VerifyException(f"'{op.name}' leads to a block of another region")
    op.verify_()

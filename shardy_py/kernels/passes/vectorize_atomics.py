"""Atomic additions of neighbours at once, on devices whose memory adds vectors."""

from __future__ import annotations

from xdsl.dialects import arith, builtin, tensor
from xdsl.ir import Block, BlockArgument, Region, SSAValue

from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.dialect.memory_ops import AtomicRMWOp
from shardy_py.kernels.dialect.ops import YieldOp

MIN_CAPABILITY = 90
WIDTHS = (2, 4)


def is_vector_addition(op: AtomicRMWOp, device: DeviceSpec) -> bool:
    """Return whether a device has an instruction for several such updates: additions of ``f32``."""
    body = op.body.block
    made = body.first_op
    if device.capability < MIN_CAPABILITY or not isinstance(made, arith.AddfOp) or made.next_op is not body.last_op:
        return False
    return isinstance(made.result.type, builtin.Float32Type) and body.args[0] in made.operands


def added_value(op: AtomicRMWOp) -> SSAValue:
    """Return what the only addition of a body adds."""
    made, current = op.body.block.first_op, op.body.block.args[0]
    assert isinstance(made, arith.AddfOp)
    return made.rhs if made.lhs is current else made.lhs


def is_carried(op: tensor.InsertOp | AtomicRMWOp, body: Block) -> bool:
    """Return whether a loop only carries the tensor of an access from step to step."""
    target, terminator = op.dest, body.last_op
    if not isinstance(target, BlockArgument) or target.owner is not body or terminator is None:
        return False
    (result,) = op.results
    is_alone = target.uses.get_length() == 1 and result.uses.get_length() == 1
    return is_alone and terminator.operands[target.index - 1] is result


def vector_update(values: SSAValue, target: SSAValue, place: SSAValue) -> AtomicRMWOp:
    """Return an op that adds a vector to neighbours."""
    body = Block(arg_types=[values.type])
    made = arith.AddfOp(body.args[0], values)
    body.add_ops([made, YieldOp(made.result)])
    return AtomicRMWOp(target, [place], Region(body))

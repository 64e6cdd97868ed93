"""Tensors from outside that the region of an op reads: on each device it reads the elements of the whole tensor."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.identity import identity
from shardy_py.transforms.finish.reshards.insertion import InsertionPoint, Resharder, rank_of


def captured_tensors(op: Op) -> list[Value]:
    """Return the tensors with dimensions that the regions of an op use and that are defined outside, each once.

    What ops inside other ops use counts, too. Operands of the op count only where the regions use them themselves.
    """
    read = [value for inner in _inside(op) for value in inner.operands if rank_of(value)]
    if not read:
        return []
    inside = {identity(inner) for inner in op.walk()}
    return list({value.id: value for value in read if identity(value.owning_op) not in inside}.values())


def _inside(op: Op) -> Iterator[Op]:
    for region in op.regions:
        for block in region.blocks:
            yield from block.walk()


def replicate_captures(resharder: Resharder, semantics: OpSemantics) -> None:
    """Reshard the sharded tensors that regions of ops with a rule capture, so that every device has all of them.

    Such an op runs its region for the elements of its shards, and the region counts the elements of the whole tensor.
    The reference does not look into regions; those of StableHLO capture no tensors with dimensions.

    Args:
        resharder: The program.
        semantics: What is known about ops.
    """
    for op in all_ops(resharder.program):
        if op.regions and op.parent is not None and semantics.get_data_flow(op) is None:
            _replicate(resharder, semantics, op)


def _replicate(resharder: Resharder, semantics: OpSemantics, op: Op) -> None:
    # Functions have no rule, and are not searched.
    for value in captured_tensors(op) if semantics.get_sharding_rule(op) is not None else ():
        sharding = resharder.sharding(value)
        if sharding is None or (sharding.is_fully_replicated and not sharding.unreduced_axes):
            continue
        whole = TensorSharding.fully_closed(sharding.mesh, sharding.rank)
        moved = resharder.reshard(value, whole, InsertionPoint.before(op))
        for inner in list(_inside(op)):
            for number, operand in enumerate(inner.operands):
                if operand is value:
                    inner.set_operand(number, moved)

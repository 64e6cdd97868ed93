"""Tensors from outside that the region of an op reads: on each device it reads the elements of the whole tensor."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.finish.reshards.insertion import Place, Resharder, rank_of
from shardy_py.ir.graph import Op, Value
from shardy_py.sharding.tensor import TensorSharding


def captured_tensors(op: Op) -> list[Value]:
    """Return the tensors with dimensions that the regions of an op use and that are defined outside, each once.

    What ops inside other ops use counts, too. Operands of the op count only where the regions use them themselves.
    """
    inside = {id(inner) for inner in op.walk()}
    found: dict[int, Value] = {}
    for inner in _inside(op):
        for value in inner.operands:
            if rank_of(value) and id(value.owning_op) not in inside:
                found.setdefault(value.id, value)
    return list(found.values())


def _inside(op: Op) -> Iterator[Op]:
    for region in op.regions:
        for block in region.blocks:
            yield from block.walk()


def replicate_captures(resharder: Resharder, op: Op) -> None:
    """Reshard the sharded tensors that the region of an op captures, so that every device has all of their elements.

    Args:
        resharder: The program.
        op: An op with a sharding rule: it runs its region for the elements of its shards.
    """
    for value in captured_tensors(op):
        sharding = resharder.sharding(value)
        if sharding is None or (sharding.is_fully_replicated and not sharding.unreduced_axes):
            continue
        whole = TensorSharding.fully_closed(sharding.mesh, sharding.rank)
        moved = resharder.reshard(value, whole, Place.before(op))
        for inner in list(_inside(op)):
            for number, operand in enumerate(inner.operands):
                if operand is value:
                    inner.set_operand(number, moved)

"""The order of the uses of values."""

from __future__ import annotations

from shardy_py.ir.graph.op_index import all_ops
from shardy_py.ir.graph.program import Block, Op, Program


def order_uses(program: Program) -> None:
    """Bring the uses of every value into program order, an op before those in its regions.

    Parsing enters the uses of an op after those in its regions; MLIR's dialect conversion, which the reference runs
    when it splits constants, enters all uses again in program order. Propagation follows uses in their order.
    """
    ops = all_ops(program)
    multiple = [op for op in ops if op.regions and any(len(value.uses) > 1 for value in op.operands)]
    if not multiple:
        return
    position = dict(zip(ops, range(len(ops)), strict=True))

    def place(use: tuple[Op, int]) -> tuple[int, int]:
        return position[use[0]], use[1]

    # Each value once: an op may use one as often as it has operands.
    for value in {value.id: value for op in multiple for value in op.operands}.values():
        if len(value.uses) > 1:
            value.uses.sort(key=place)


def enter_uses_anew(op: Op) -> None:
    """Bring the uses of all values inside an op into the order in which parsing its text would enter them.

    Args:
        op: An op that uses nothing from outside, such as a function.
    """
    for inner in op.walk():
        for value in inner.results:
            value.uses = []
        for region in inner.regions:
            for block in region.blocks:
                for value in block.arguments:
                    value.uses = []
    for region in op.regions:
        for block in region.blocks:
            _enter_uses(block)


def _enter_uses(block: Block) -> None:
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                _enter_uses(inner)
        op.register_uses()

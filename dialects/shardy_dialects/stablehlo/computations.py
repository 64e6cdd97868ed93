"""Reductions that the region of an op computes."""

from __future__ import annotations

from shardy_py.ir.graph import Block, Op, Value
from shardy_py.ir.types import TensorType
from shardy_py.sharding.combiner import Combiner

COMBINERS = {
    "stablehlo.add": Combiner.ADD,
    "stablehlo.multiply": Combiner.MUL,
    "stablehlo.maximum": Combiner.MAX,
    "stablehlo.minimum": Combiner.MIN,
    "stablehlo.and": Combiner.AND,
    "stablehlo.or": Combiner.OR,
}
REDUCTIONS = frozenset(("stablehlo.add", "stablehlo.multiply", "stablehlo.maximum", "stablehlo.minimum"))
LOGICAL_REDUCTIONS = frozenset(("stablehlo.and", "stablehlo.or"))


def common_reduction(op: Op) -> str | None:
    """Return the name of the reduction by which an op combines each of its inputs with its update.

    Args:
        op: An op with N results and one region with 2N arguments: the old values, then the updates.

    Returns:
        The op name, or None where the region computes anything but one reduction, the same for all inputs. Logical
        reductions count for booleans only.
    """
    if not op.regions or not op.regions[0].blocks:
        return None
    block = op.regions[0].blocks[0]
    count = len(op.results)
    terminator = block.terminator
    if terminator is None or terminator.name != "stablehlo.return":
        return None
    if len(block.arguments) != 2 * count or len(terminator.operands) != count:
        return None
    names = {_reduction(block, value, index, index + count) for index, value in enumerate(terminator.operands)}
    return names.pop() if len(names) == 1 else None


def region_combiner(op: Op, region: int = 0) -> Combiner | None:
    """Return the combiner of a region of N old and N new values; None where the region is no reduction.

    The position of the largest element is none, nor are several values that combine in different ways.

    Args:
        op: An op with N results.
        region: The number of the region.
    """
    regions = op.regions[region : region + 1]
    block = regions[0].blocks[0] if regions and regions[0].blocks else None
    terminator = block.terminator if block is not None else None
    count = len(op.results)
    if block is None or terminator is None or len(block.arguments) != 2 * count or len(terminator.operands) != count:
        return None
    found = {_combiner(block, value, index, index + count) for index, value in enumerate(terminator.operands)}
    return found.pop() if len(found) == 1 else None


def _combiner(block: Block, value: Value, first: int, second: int) -> Combiner | None:
    """Return the combiner of two arguments of a block, in any order, to a value."""
    made = value.defining_op
    if made is None or len(made.operands) != 2:
        return None
    if any(not operand.is_block_argument or operand.owner is not block for operand in made.operands):
        return None
    return COMBINERS.get(made.name) if {operand.index for operand in made.operands} == {first, second} else None


def first_operands(op: Op) -> range:
    """Return the numbers of as many operands as there are results: what a scatter starts from."""
    return range(len(op.results))


def second_operands(op: Op) -> range:
    """Return the numbers of as many operands as there are results, behind the inputs: what a reduction starts from."""
    return range(len(op.results), 2 * len(op.results))


def _reduction(block: Block, value: Value, first: int, second: int) -> str | None:
    """Return the name of the op that reduces two arguments of the block, in any order, to a value."""
    producer = value.defining_op
    if producer is None or len(producer.operands) != 2 or not isinstance(value.type, TensorType):
        return None
    is_logical = producer.name in LOGICAL_REDUCTIONS and value.type.element_type == "i1"
    if not is_logical and producer.name not in REDUCTIONS:
        return None
    if any(not operand.is_block_argument or operand.owner is not block for operand in producer.operands):
        return None
    if {operand.index for operand in producer.operands} != {first, second}:
        return None
    return producer.name

"""Reductions that the region of an op computes."""

from __future__ import annotations

from shardy_dialects.stablehlo.control_flow import RETURN
from shardy_dialects.stablehlo.elementwise.ops import CHOOSING, COMBINERS, SELECT
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.combiner import Combiner

_LOGICAL = (Combiner.AND, Combiner.OR)


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
    if terminator is None or terminator.name != RETURN:
        return None
    if len(block.arguments) != 2 * count or len(terminator.operands) != count:
        return None
    names = {_reduction(block, value, index, index + count) for index, value in enumerate(terminator.operands)}
    return names.pop() if len(names) == 1 else None


def region_combiner(op: Op, region: int = 0) -> Combiner | None:
    """Return the combiner of a region of N old and N new values; None where the region is not a reduction.

    The position of the largest element is none, nor are several values that combine in different ways.

    Args:
        op: An op with N results.
        region: The number of the region.
    """
    combiners = {COMBINERS.get(name or "") for name in region_ops(op, region)}
    return combiners.pop() if len(combiners) == 1 else None


def region_ops(op: Op, region: int = 0) -> list[str | None]:
    """Return, per result, the name of the op that combines its old and its new value; None where it is not a single op.

    Args:
        op: An op with N results.
        region: The number of the region, of N old and N new values.
    """
    pairs = _combined_pairs(op, region)
    return [None] * len(op.results) if pairs is None else [_combining_op(*pair) for pair in pairs]


def is_choice(op: Op) -> bool:
    """Return whether the region of a reduction makes each result one of its old and its new value."""
    pairs = _combined_pairs(op, 0)
    return pairs is not None and all(_is_chosen(value, arguments) for value, arguments in pairs)


def _combined_pairs(op: Op, region: int) -> list[tuple[Value, tuple[Value, Value]]] | None:
    """Return the values that a region yields, each with the two arguments that it combines; None for other regions."""
    regions = op.regions[region : region + 1]
    block = regions[0].blocks[0] if regions and regions[0].blocks else None
    terminator = block.terminator if block is not None else None
    count = len(op.results)
    if block is None or terminator is None or len(block.arguments) != 2 * count or len(terminator.operands) != count:
        return None
    arguments = zip(block.arguments[:count], block.arguments[count:], strict=True)
    return list(zip(terminator.operands, arguments, strict=True))


def _combining_op(value: Value, arguments: tuple[Value, Value]) -> str | None:
    """Return the name of the op of two arguments, in any order, that makes a value."""
    producer = value.defining_op
    if (
        producer is None
        or len(producer.operands) != 2
        or {item.id for item in producer.operands} != {x.id for x in arguments}
    ):
        return None
    return producer.name


def _is_chosen(value: Value, arguments: tuple[Value, Value]) -> bool:
    """Return whether a value is one of two, whatever decides which."""
    if value in arguments:
        return True
    producer = value.defining_op
    if producer is None or producer.name not in CHOOSING:
        return False
    operands = producer.operands[1:] if producer.name == SELECT else producer.operands
    return all(_is_chosen(operand, arguments) for operand in operands)


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
    combiner = COMBINERS.get(producer.name)
    if combiner is None or (combiner in _LOGICAL and value.type.element_type != "i1"):
        return None
    if any(not operand.is_block_argument or operand.owner is not block for operand in producer.operands):
        return None
    if {operand.index for operand in producer.operands} != {first, second}:
        return None
    return producer.name

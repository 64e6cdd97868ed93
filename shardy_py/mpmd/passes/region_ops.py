"""Rewrites of ops with one isolated region: fragments and named computations with other operands and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from shardy_py.ir.graph.dead_ops import is_removable
from shardy_py.ir.graph.program import Block, Op, Region, Value
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.mpmd.dialect.fragments import body_of, terminator_of
from shardy_py.mpmd.dialect.op_names import IN_SHARDINGS, OUT_SHARDINGS
from shardy_py.sharding.tensor import TensorShardingPerValue

BARRIER = ".optimization_barrier"
"""The end of the name of an op that hands on each operand and orders nothing else."""
_PER_OPERAND = (IN_SHARDINGS, "arg_attrs")
_PER_RESULT = (OUT_SHARDINGS, "res_attrs")


def rebuild(op: Op, operands: Sequence[int], results: Sequence[int]) -> Op:
    """Put an op with some of the operands and results in the place of one; its body is moved.

    Args:
        op: The op, which is erased. Results that go must not be used.
        operands: The numbers of the operands that stay; the arguments of others must not be used.
        results: The numbers of the results that stay.
    """
    program, old = op.program, body_of(op)
    returned = [terminator_of(op).operands[number] for number in results]
    block = Block(program, [old.arguments[number].type for number in operands])
    arguments = [old.arguments[number] for number in operands]
    move_ops(old, block, returned)
    for argument, new_argument in zip(arguments, block.arguments, strict=True):
        argument.replace_all_uses_with(new_argument)
    attributes = copy(op.attributes)
    for names, numbers in ((_PER_OPERAND, operands), (_PER_RESULT, results)):
        for name in names:
            if name in attributes:
                attributes[name] = _chosen(attributes[name], numbers)
    new = Op(
        program,
        op.name,
        [op.operands[number] for number in operands],
        [op.results[number].type for number in results],
        attributes,
        [Region([block])],
    )
    assert op.parent is not None
    op.parent.insert_after(op, new)
    for number, value in zip(results, new.results, strict=True):
        op.results[number].replace_all_uses_with(value)
    op.erase()
    return new


def move_ops(source: Block, target: Block, returned: Sequence[Value]) -> None:
    """Move the ops of a block to another one, which ends with a terminator of other values."""
    terminator = source.terminator
    assert terminator is not None
    new = Op(terminator.program, terminator.name, returned, attributes=copy(terminator.attributes))
    terminator.erase()
    for op in list(source.ops):
        source.remove(op)
        target.append(op)
    target.append(new)


def _chosen(value: object, numbers: Sequence[int]) -> object:
    if isinstance(value, TensorShardingPerValue):
        return TensorShardingPerValue(tuple(value.shardings[number] for number in numbers))
    return tuple(value[number] for number in numbers)  # type: ignore[index]


def erase_dead_in(block: Block, semantics: OpSemantics) -> None:
    """Erase the ops of a block that nothing with an effect depends on."""
    for op in reversed(list(block.ops)):
        if not any(value.uses for value in op.results) and is_removable(op, semantics):
            op.erase()


def simplify(op: Op, semantics: OpSemantics, *, may_forward: Callable[[Value, Value], bool]) -> Op | None:
    """Drop duplicate, unused and forwarded results, and duplicate and unused operands.

    Args:
        op: The fragment or named computation.
        semantics: What is known about ops.
        may_forward: Returns whether an operand may stand for a result that is its argument.

    Returns:
        The op that is there now; None where nothing of it is left.
    """
    _merge_results(op, may_forward)
    terminator = terminator_of(op)
    live_results = [
        value.index for value in op.results if value.uses or not _is_pure(terminator.operands[value.index], semantics)
    ]
    if len(live_results) < len(op.results):
        op = rebuild(op, range(len(op.operands)), live_results)
    for inner in list(body_of(op).ops):
        if inner.name.endswith(BARRIER) and len(inner.operands) == len(inner.results):
            _drop_unused_of_barrier(inner)
    erase_dead_in(body_of(op), semantics)
    if not op.results and body_of(op).first is body_of(op).last:
        op.erase()
        return None
    arguments = body_of(op).arguments
    first: dict[int, int] = {}
    for number, value in enumerate(op.operands):
        if value.id in first and arguments[first[value.id]].type == arguments[number].type:
            arguments[number].replace_all_uses_with(arguments[first[value.id]])
        else:
            first.setdefault(value.id, number)
    used = [argument.index for argument in arguments if argument.uses]
    return rebuild(op, used, range(len(op.results))) if len(used) < len(arguments) else op


def _drop_unused_of_barrier(op: Op) -> None:
    """Drop what goes through a barrier and is not used behind it."""
    used = [value.index for value in op.results if value.uses]
    if len(used) == len(op.results) or op.parent is None:
        return
    if used:
        operands = [op.operands[number] for number in used]
        new = Op(op.program, op.name, operands, [value.type for value in operands], copy(op.attributes))
        op.parent.insert_before(op, new)
        for number, value in zip(used, new.results, strict=True):
            op.results[number].replace_all_uses_with(value)
    op.erase()


def _merge_results(op: Op, may_forward: Callable[[Value, Value], bool]) -> None:
    """Replace the results that are arguments, or that an earlier result equals."""
    block = body_of(op)
    first: dict[tuple[int, str], Value] = {}
    for value, returned in zip(op.results, terminator_of(op).operands, strict=True):
        if returned.owner is block and may_forward(op.operands[returned.index], value):
            value.replace_all_uses_with(op.operands[returned.index])
            continue
        earlier = first.setdefault((returned.id, value.type.text), value)
        if earlier is not value:
            value.replace_all_uses_with(earlier)


def _is_pure(value: Value, semantics: OpSemantics) -> bool:
    op = value.defining_op
    return op is None or is_removable(op, semantics)


def inline_region(op: Op) -> None:
    """Put the body of an op in its place; what it returns stands for its results."""
    block, parent = body_of(op), op.parent
    assert parent is not None
    terminator = terminator_of(op)
    for argument, operand in zip(list(block.arguments), op.operands, strict=True):
        argument.replace_all_uses_with(operand)
    returned = list(terminator.operands)
    terminator.erase()
    for inner in list(block.ops):
        block.remove(inner)
        parent.insert_before(op, inner)
    for value, new in zip(op.results, returned, strict=True):
        value.replace_all_uses_with(new)
    op.erase()

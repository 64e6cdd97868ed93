"""Backward fragments in two halves: what other meshes wait for, and the rest.

Mirrors mpmd/transforms/common/split_bwd_fragments.cc.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from copy import copy
from typing import ClassVar

from shardy_py.ir.graph.attributes import UNIT, Attribute
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import (
    body_of,
    is_inter_mesh,
    is_user_fragment,
    mesh_of,
    mpmd_functions,
    single_transpose_count,
    split_kind,
    terminator_of,
)
from shardy_py.mpmd.dialect.op_names import DROP_TRANSFERRED, IN_SHARDINGS, KEEP_TRANSFERRED, OUT_SHARDINGS, TRANSFER
from shardy_py.mpmd.dialect.op_names import RETURN as MPMD_RETURN
from shardy_py.mpmd.dialect.types import MeshTensor
from shardy_py.mpmd.passes.named.nameless_clones import is_negligible
from shardy_py.values import NoFields, frozen


class SplitBwdFragmentsPass(NoFields):
    """Split backward fragments of which some results are transferred, so that schedules can delay the other half.

    Gradients of inputs go to the mesh before; gradients of weights stay, and can wait.
    """

    name: ClassVar[str] = "mpmd-split-bwd-fragments"

    def run(self, program: Program, context: PassContext) -> None:
        """Split the backward fragments of each function."""
        for function in mpmd_functions(program):
            for op in list(block_of(function).ops):
                if is_user_fragment(op) and single_transpose_count(op) == 1 and not split_kind(op):
                    _split(op, context.semantics)


class SplitAndPrioritizeTransferIndependentComputationsPass(NoFields):
    """Split fragments before the first op that uses what was transferred to them: all before need not wait."""

    name: ClassVar[str] = "mpmd-split-and-prioritize-transfer-independent-computations"

    def run(self, program: Program, context: PassContext) -> None:
        """Split the fragments of named computations of each function."""
        for function in mpmd_functions(program):
            for op in list(block_of(function).ops):
                if is_user_fragment(op) and not split_kind(op):
                    _split_at_transferred(op, context.semantics)


def _split_at_transferred(op: Op, semantics: OpSemantics) -> None:
    """Split a fragment at the first user of a transferred argument, unless no op is before it."""
    body, terminator = body_of(op), terminator_of(op)
    waiting = {
        argument.id
        for value, argument in zip(op.operands, body.arguments, strict=True)
        if (producer := value.defining_op) is not None and producer.name == TRANSFER and is_inter_mesh(producer)
    }
    ops = [inner for inner in body.ops if inner is not terminator]
    uses = [number for number, inner in enumerate(ops) if any(value.id in waiting for value in _used(inner))]
    if not uses or uses[0] == 0:
        return
    first_half = {inner.id for inner in ops[: uses[0]]}
    early = tuple(value.index for value in op.results if _is_defined_in(terminator.operands[value.index], first_half))
    late = tuple(value.index for value in op.results if value.index not in early)
    later = ops[uses[0] :]
    inputs, clones = _inputs(later, [terminator.operands[index] for index in late], body, semantics)
    _make_halves(op, _Halves(early, late, tuple(later), tuple(inputs), tuple(clones)))


def _split(op: Op, semantics: OpSemantics) -> None:
    """Split a fragment where both halves have something to do."""
    transferred = [value.index for value in op.results if _is_transferred(value)]
    if not transferred or len(transferred) == len(op.results):
        return
    body, terminator = body_of(op), terminator_of(op)
    first_half = _needed_for([terminator.operands[index] for index in transferred], body)
    later = [inner for inner in body.ops if inner.id not in first_half and inner is not terminator]
    if not later:
        return
    rest = [value.index for value in op.results if value.index not in transferred]
    # What the first half makes already need not go through the second one.
    early = [index for index in rest if _is_defined_in(terminator.operands[index], first_half)]
    late = [index for index in rest if index not in early]
    inputs, clones = _inputs(later, [terminator.operands[index] for index in late], body, semantics)
    _make_halves(op, _Halves((*transferred, *early), tuple(late), tuple(later), tuple(inputs), tuple(clones)))


def _is_transferred(value: Value) -> bool:
    return any(user.name == TRANSFER and is_inter_mesh(user) for user, _ in value.uses)


def _is_defined_in(value: Value, op_ids: set[int]) -> bool:
    return value.defining_op is not None and value.defining_op.id in op_ids


def _used(op: Op) -> list[Value]:
    return [value for inner in op.walk() for value in inner.operands]


def _needed_for(values: Sequence[Value], body: Block) -> set[int]:
    """Return the ids of the ops of a body that some values depend on."""
    needed: set[int] = set()
    stack = [value.defining_op for value in values]
    while stack:
        op = stack.pop()
        while op is not None and op.parent is not body:
            op = op.parent_op
        if op is not None and op.id not in needed:
            needed.add(op.id)
            stack += [value.defining_op for value in _used(op)]
    return needed


def _inputs(
    later: Sequence[Op], returned: Sequence[Value], body: Block, semantics: OpSemantics
) -> tuple[list[Value], list[Op]]:
    """Return the values that the second half needs, and the cheap ops that it makes again instead.

    As in the reference, the order is that of a walk from the last result up, the last operand of an op first.
    """
    waiting = {op.id: op for op in later}
    later_ids = frozenset(waiting)
    inputs: dict[int, Value] = {}
    clones: dict[int, Op] = {}
    stack = list(returned)
    while stack or waiting:
        if not stack:
            stack = _used(waiting.pop(next(iter(waiting))))
            continue
        value = stack.pop()
        producer = value.defining_op
        if producer is not None and producer.id in waiting:
            stack += {item.id: item for item in _used(waiting.pop(producer.id))}.values()
        elif value.owner is body:
            inputs[value.id] = value
        elif producer is not None and producer.parent is body and producer.id not in later_ids:
            if is_negligible(producer, semantics):
                clones[producer.id] = producer
            else:
                inputs[value.id] = value
    return list(inputs.values()), list(clones.values())


@frozen(eq=False)
class _Halves:
    """The two halves of a fragment.

    Args:
        first: The numbers of the results of the first half.
        late: The numbers of the results of the second half.
        later: The ops of the second half.
        inputs: The values that it needs: arguments, and what the first half makes.
        clones: The cheap ops that both have.
    """

    first: tuple[int, ...]
    late: tuple[int, ...]
    later: tuple[Op, ...]
    inputs: tuple[Value, ...]
    clones: tuple[Op, ...]


def _make_halves(op: Op, halves: _Halves) -> None:
    """Put two fragments in the place of one."""
    first, late, inputs = halves.first, halves.late, halves.inputs
    program, parent, body, terminator = op.program, op.parent, body_of(op), terminator_of(op)
    assert parent is not None
    late_values = [terminator.operands[index] for index in late]
    residuals = [value for value in inputs if value.owner is not body]
    second_block = Block(program, [value.type for value in inputs])
    mapping = {value.id: new for value, new in zip(inputs, second_block.arguments, strict=True)}
    for producer in halves.clones:
        second_block.append(clone_op(producer, mapping))
    for inner in halves.later:
        body.remove(inner)
        second_block.append(inner)
    for inner in halves.later:
        for nested in inner.walk():
            for number, value in enumerate(list(nested.operands)):
                if value.id in mapping:
                    nested.set_operand(number, mapping[value.id])
    second_block.append(Op(program, MPMD_RETURN, [mapping.get(value.id, value) for value in late_values]))
    body.append(Op(program, MPMD_RETURN, [*(terminator.operands[index] for index in first), *residuals]))
    terminator.erase()
    types = [op.results[index].type for index in first]
    residual_types = [MeshTensor(mesh_of(op), value.type).type for value in residuals]  # type: ignore[arg-type]
    numbers = {value.id: value.index for value in body.arguments}
    region = op.take_regions()[0]
    op.add_region(Region())
    keep = Op(program, op.name, op.operands, [*types, *residual_types], _half(op, KEEP_TRANSFERRED), [region])
    parent.insert_before(op, keep)
    handed_over = iter(keep.results[len(first) :])
    operands = [op.operands[numbers[value.id]] if value.id in numbers else next(handed_over) for value in inputs]
    late_types = [op.results[index].type for index in late]
    drop = Op(program, op.name, operands, late_types, _half(op, DROP_TRANSFERRED), [Region([second_block])])
    parent.insert_before(op, drop)
    for index, value in (*zip(first, keep.results, strict=False), *zip(late, drop.results, strict=True)):
        op.results[index].replace_all_uses_with(value)
    op.erase()


def _half(op: Op, mark: str) -> MutableMapping[str, Attribute]:
    attributes = copy(op.attributes)
    attributes[mark] = UNIT
    for name in (IN_SHARDINGS, OUT_SHARDINGS, "arg_attrs", "res_attrs"):
        if name in attributes:
            del attributes[name]
    return attributes

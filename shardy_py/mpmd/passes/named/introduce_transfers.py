"""Transfers in the places of assigns of unassigns."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.interfaces.ops import OpSemantics, Sum
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of, callee_of, calls_of
from shardy_py.mpmd.dialect.fragments import inferred_by, mpmd_functions, new_assign, new_fragment, new_unassign
from shardy_py.mpmd.dialect.op_names import ASSIGN, CALL, UNASSIGN
from shardy_py.mpmd.dialect.types import MeshTensor, require_mesh_tensor
from shardy_py.mpmd.passes.named.transfers import chain_before, earliest, find_transfer
from shardy_py.values import NoFields

INTRODUCE_TRANSFERS = "introduce_transfers"


class IntroduceTransfersPass(NoFields):
    """Turn assigns of unassigns into transfers.

    Where all calls of a function pass tensors of one mesh, the function takes them off that mesh itself. A sum of
    tensors of several meshes that is assigned to one of them becomes a fragment there.
    """

    name: ClassVar[str] = "mpmd-introduce-transfers"

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite the functions with a topology, callees first."""
        _push_unassigns_into_callees(program)
        for function in mpmd_functions(program):
            _visit_assigns(function, context.semantics)


def replace_assigns_of_unassigns(function: Op, *, may_transfer: bool = True) -> None:
    """Replace the assigns of each unassigned value by the value on its mesh, or by transfers of it.

    Args:
        function: The function.
        may_transfer: Whether there may be new transfers of other values than arguments.
    """
    for op in list(function.walk()):
        if op.name == UNASSIGN and op.parent is not None:
            _replace_assigns_of(op, may_transfer=may_transfer)


def _replace_assigns_of(op: Op, *, may_transfer: bool) -> None:
    """Replace the assigns of the value that an unassign takes off its mesh."""
    value, source = op.results[0], op.operands[0]
    source_type = require_mesh_tensor(source)
    while True:
        assigns = [user for user, _ in value.uses if user.name == ASSIGN and user.parent is op.parent]
        same_type = [user for user in assigns if require_mesh_tensor(user.results[0]) == source_type]
        others = [user for user in assigns if user not in same_type]
        if others and not may_transfer and not source.is_block_argument:
            others = [user for user in others if find_transfer(source, _type(user)) is not None]
            assigns = [*same_type, *others]
        if not assigns:
            break
        values = {str(source_type): source}
        if others:
            values |= chain_before(source, map(_type, others), earliest(others))
        for user in assigns:
            user.results[0].replace_all_uses_with(values[user.results[0].type.text])
            user.erase()
    if not value.uses:
        op.erase()


def _type(op: Op) -> MeshTensor:
    return require_mesh_tensor(op.results[0])


def _push_unassigns_into_callees(program: Program) -> None:
    """Take an argument off its mesh in the callee, which assigns it, where all calls pass tensors off one mesh."""
    functions = program.functions
    for name, calls in calls_of(program).items():
        function = functions.get(name)
        if function is None or any(call.name != CALL for call in calls) or not function.regions:
            continue
        for argument in list(block_of(function).arguments):
            if not any(user.name == ASSIGN for user, _ in argument.uses):
                continue
            types = {_mesh_before(call.operands[argument.index]) for call in calls}
            mesh = types.pop()
            if types or mesh is None:
                continue
            block = block_of(function)
            assign = new_assign(program, argument, mesh)
            uses = [use for use in argument.uses if use[0] is not assign]
            block.insert_after(None, assign)
            unassign = block.insert_after(assign, new_unassign(program, assign.results[0]))
            for user, number in uses:
                user.set_operand(number, unassign.results[0])


def _mesh_before(value: Value) -> MeshTensor | None:
    """Return the type on a mesh of what a call passes, also through a call of a function that returns its argument."""
    op = value.defining_op
    if op is None:
        return None
    if op.name == UNASSIGN:
        return require_mesh_tensor(op.operands[0]).without_sharding()
    if op.name != CALL:
        return None
    terminator = block_of(callee_of(op)).terminator
    assert terminator is not None
    returned = terminator.operands[value.index].defining_op
    is_unassign = returned is not None and returned.name == UNASSIGN
    return require_mesh_tensor(returned.operands[0]).without_sharding() if is_unassign and returned else None


def _visit_assigns(function: Op, semantics: OpSemantics) -> None:
    """Visit the assigns in order, as the reference does: a sum comes after the transfers of what stands before it.

    The assigns of an unassigned value become transfers. A sum of unassigns that is assigned to a mesh becomes a
    fragment there, and its operands are assigned, the outer sum first.
    """
    waiting = deque(op for op in function.walk() if op.name == ASSIGN)
    while waiting:
        assign = waiting.popleft()
        producer = assign.operands[0].defining_op if assign.parent is not None else None
        if producer is not None and producer.name == UNASSIGN:
            _replace_assigns_of(producer, may_transfer=True)
        elif producer is not None and _is_sum_of_unassigns(assign.operands[0], semantics):
            waiting.extendleft(reversed(_to_fragment(assign, producer)))


def _is_sum_of_unassigns(value: Value, semantics: OpSemantics) -> bool:
    stack = [value]
    while stack:
        current = stack.pop()
        op = current.defining_op
        if op is None:
            return False
        if op.name == UNASSIGN:
            continue
        if len(op.operands) != 2 or not semantics.has_trait(op, Sum) or not current.has_one_use:
            return False
        stack += op.operands
    return True


def _to_fragment(assign: Op, add: Op) -> list[Op]:
    """Put a fragment in the place of a sum that is assigned to a mesh; return the assigns of its operands."""
    program, parent = add.program, add.parent
    assert parent is not None
    type_ = require_mesh_tensor(assign.results[0])
    assigns = [parent.insert_before(add, new_assign(program, value, type_)) for value in add.operands]

    def fill(block: object) -> list[Value]:
        arguments = block.arguments  # type: ignore[attr-defined]
        mapping = {value.id: argument for value, argument in zip(add.operands, arguments, strict=True)}
        clone = clone_op(add, mapping)
        for number, argument in enumerate(arguments):
            clone.set_operand(number, argument)
        block.append(clone)  # type: ignore[attr-defined]
        return [clone.results[0]]

    operands = [item.results[0] for item in assigns]
    fragment = new_fragment(
        program, type_.mesh, operands, [type_.type], attributes=inferred_by(INTRODUCE_TRANSFERS), body=fill
    )
    parent.insert_before(add, fragment)
    assign.results[0].replace_all_uses_with(fragment.results[0])
    assign.erase()
    add.erase()
    return assigns

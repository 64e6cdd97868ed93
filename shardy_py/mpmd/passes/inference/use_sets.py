"""Use sets: the meshes in which a value is used in the end.

Mirrors mpmd/transforms/import/infer_mesh_assignment.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of, callee_name, check_calls
from shardy_py.mpmd.dialect.fragments import mpmd_functions
from shardy_py.mpmd.dialect.op_names import ASSIGN, BROADCAST, CALL, FOR, ORIGIN, REDUCE, UNASSIGN, USE_SET
from shardy_py.mpmd.dialect.op_names import RETURN as MPMD_RETURN
from shardy_py.mpmd.dialect.origins import MeshSet
from shardy_py.mpmd.dialect.types import is_on_mesh, require_mesh_tensor
from shardy_py.mpmd.passes.inference.mesh_sets import (
    get_set,
    is_meshless,
    put_at,
    set_of_argument,
    set_of_result,
    union,
    user_in_block,
)
from shardy_py.values import NoFields

_MOST_ROUNDS = 10
"""The number of times that calls of a function are visited again where they form chains."""


class InferMeshPopulateUseSetPass(NoFields):
    """Find the meshes in which each value is used, from assigns backwards, through calls and loops."""

    name: ClassVar[str] = "mpmd-infer-mesh-populate-use-set"

    def run(self, program: Program, context: PassContext) -> None:
        """Write the attribute ``mpmd.use_set`` of ops, arguments and results.

        Raises:
            VerificationError: a call does not fit its function.
        """
        by_name = program.functions
        check_calls(program)
        called = {callee_name(op) for op in program.walk() if op.name == CALL}
        for function in reversed(mpmd_functions(program)):
            if function.attributes["sym_name"] in called:
                continue
            _visit_function(function, by_name)


def _has_chains(function: Op) -> bool:
    """Return whether a call uses a result of another call of the same function: its uses grow with every visit."""
    for op in function.walk():
        producers = [value.defining_op for value in op.operands] if op.name == CALL else []
        if any(item is not None and item.name == CALL and callee_name(item) == callee_name(op) for item in producers):
            return True
    return False


def _visit_function(function: Op, functions: dict[str, Op]) -> bool:
    block = block_of(function)
    changed = _visit_block(block, function, functions)
    if _has_chains(function):
        calls = [op for op in reversed(list(block.ops)) if op.name == CALL]
        for _ in range(_MOST_ROUNDS):
            # All are visited: each may grow sets that others use.
            changes = [_tell_callee(call, block, function, functions) for call in calls]
            if not any(changes):
                break
    for argument in block.arguments:
        if is_on_mesh(argument):
            continue
        old = set_of_argument(function, argument.index, USE_SET) or MeshSet()
        new = old.union(_of_value(argument, block, function, functions))
        if new != old:
            put_at(function, "arg_attrs", len(block.arguments), argument.index, USE_SET, new)
            changed = True
    return changed


def _visit_block(block: Block, around: Op, functions: dict[str, Op]) -> bool:
    """Give the ops of a block their sets, the last first; return whether one of a callee or an argument changed."""
    changed = False
    op = block.last
    while op is not None:
        if op.name == ASSIGN:
            _put(op, MeshSet.of(require_mesh_tensor(op.results[0]).mesh, op.attributes.get(ORIGIN)))
        elif op.name == CALL:
            changed |= _tell_callee(op, block, around, functions)
        elif op.name == FOR:
            changed |= _visit_loop(op, block, around, functions)
        elif is_meshless(op) or op.name in (UNASSIGN, BROADCAST, REDUCE):
            _put(op, union(_of_value(value, block, around, functions) for value in op.results))
        op = op.prev
    return changed


def _put(op: Op, value: MeshSet) -> None:
    if value and get_set(op.attributes, USE_SET) != value:
        op.attributes[USE_SET] = value.attribute


def _tell_callee(call: Op, block: Block, around: Op, functions: dict[str, Op]) -> bool:
    """Add the uses of the results of a call to those of its function's results, and visit the function if they grow."""
    function, changed = functions[callee_name(call)], False
    for value in call.results:
        old = set_of_result(function, value.index, USE_SET) or MeshSet()
        new = old.union(_of_value(value, block, around, functions))
        if new != old:
            put_at(function, "res_attrs", len(call.results), value.index, USE_SET, new)
            changed = True
    if changed or USE_SET not in str(function.attributes.get("arg_attrs", "")):
        changed |= _visit_function(function, functions)
    return changed


def _visit_loop(op: Op, block: Block, around: Op, functions: dict[str, Op]) -> bool:
    """Visit the body of a loop, whose arguments are used as its results are."""
    body = op.regions[0].block
    carried = body.arguments[: len(op.results)]
    pairs = zip(carried, op.results, strict=True)
    changes = [_grow(op, argument, _of_value(value, block, around, functions)) for argument, value in pairs]
    changes.append(_visit_block(body, op, functions))
    changes += [_grow(op, argument, _of_value(argument, body, op, functions)) for argument in body.arguments]
    return any(changes)


def _grow(loop: Op, argument: Value, more: MeshSet) -> bool:
    """Add to the use set of an argument of a loop; return whether it grew."""
    old = _of_carried(loop, argument.index) or MeshSet()
    new = old.union(more)
    if new != old:
        put_at(loop, "arg_attrs", len(loop.regions[0].block.arguments), argument.index, USE_SET, new)
    return new != old


def _of_value(value: Value, block: Block, around: Op, functions: dict[str, Op]) -> MeshSet:
    """Return the union of the use sets of the users of a value, the newest first."""
    result = MeshSet()
    seen: set[tuple[int, int]] = set()
    for user, number in reversed(value.uses):
        op = user_in_block(user, block)
        if op is None or (op.id, number) in seen:
            continue
        seen.add((op.id, number))
        if op.name == RETURN:
            part = set_of_result(around, number, USE_SET)
        elif op.name == MPMD_RETURN:
            part = _of_carried(around, number)
        elif op.name == CALL:
            part = set_of_argument(functions[callee_name(op)], number, USE_SET)
        elif op.name == FOR:
            part = _of_carried(op, number)
        elif (op.name in (BROADCAST, REDUCE) and not _is_broadcast_of_broadcast(op, value)) or op.name == UNASSIGN:
            continue
        else:
            part = get_set(op.attributes, USE_SET)
        result = result if part is None else result.union(part)
    return result


def _is_broadcast_of_broadcast(op: Op, value: Value) -> bool:
    producer = value.defining_op
    return op.name == BROADCAST and producer is not None and producer.name == BROADCAST


def _of_carried(loop: Op, number: int) -> MeshSet | None:
    items = loop.attributes.get("arg_attrs")
    return get_set(items[number], USE_SET) if items else None

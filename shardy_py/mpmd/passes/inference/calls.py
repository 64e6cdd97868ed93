"""Functions that are called, and their calls, with arguments and results on the meshes of their use sets.

Mirrors mpmd/transforms/import/infer_mesh_assignment.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.mpmd.dialect.calls import (
    attributes_at,
    block_of,
    callee_of,
    replace_call,
    return_of,
    set_returned,
    with_signature,
)
from shardy_py.mpmd.dialect.fragments import new_assign, new_unassign
from shardy_py.mpmd.dialect.op_names import ASSIGN, REDUCTION, SRC_SET, USE_SET
from shardy_py.mpmd.dialect.types import MeshTensor, is_on_mesh, require_mesh_tensor, require_topology
from shardy_py.mpmd.passes.inference.mesh_sets import set_of_argument, set_of_result

SETS = (USE_SET, SRC_SET, REDUCTION)
"""The attributes of the analysis, which rewritten ops no longer have."""
COPIES = "mpmd.copies"
"""The attribute of an argument or result of a callee that is needed on more meshes: the numbers of its copies."""


def callee_on_meshes(function: Op) -> Op:
    """Return a function with arguments and results on the meshes of their use sets.

    Those needed on several meshes have copies at the end.
    """
    default = min(require_topology(function).names)
    block = block_of(function)
    in_meshes = [_meshes(value, default, set_of_argument(function, value.index, USE_SET)) for value in block.arguments]
    returned = list(return_of(function).operands)
    out_meshes = [
        _meshes(value, default, set_of_result(function, number, USE_SET)) for number, value in enumerate(returned)
    ]
    argument_types, in_copies = _types(list(block.arguments), in_meshes)
    result_types, out_copies = _types(returned, out_meshes)
    _assign_results(function, returned, out_meshes, out_copies)
    new, old_arguments = with_signature(
        function,
        argument_types,
        result_types,
        argument_attributes=_attributes(function, "arg_attrs", len(block.arguments), len(argument_types), in_copies),
        result_attributes=_attributes(function, "res_attrs", len(returned), len(result_types), out_copies),
    )
    _take_arguments_off(block_of(new), old_arguments, in_copies)
    function.erase()
    return new


def call_on_meshes(call: Op) -> Op:
    """Assign the operands of a call to the meshes of its function's arguments, and take its results off theirs.

    Returns:
        The first of the ops in the place of the call.
    """
    program, block, function = call.program, call.parent, callee_of(call)
    assert block is not None
    arguments = block_of(function).arguments
    operands: dict[int, Value] = {}
    first: Op | None = None
    for index, item in enumerate(attributes_at(function, "arg_attrs", len(arguments))):
        if index in operands:  # A copy.
            continue
        for number in (index, *item.get(COPIES, ())):
            operands[number] = value = call.operands[index]
            if value.type != arguments[number].type:
                assign = new_assign(program, value, require_mesh_tensor(arguments[number]))
                first = first or assign
                operands[number] = block.insert_before(call, assign).results[0]
    values = [operands[argument.index] for argument in arguments]
    new = replace_call(call, values, [value.type for value in function.function_results])
    _take_results_off(call, new, function)
    call.erase()
    return first or new


def _meshes(value: Value, default: str, use_set: object) -> list[str]:
    if is_on_mesh(value) or not isinstance(value.type, TensorType):
        return []
    return sorted(getattr(use_set, "names", ())) or [default]


def _assign_results(
    function: Op, returned: list[Value], meshes: Sequence[list[str]], copies: Sequence[list[int]]
) -> None:
    terminator = return_of(function)
    block, total = block_of(function), len(returned) + sum(map(len, copies))
    values: list[Value | None] = [*returned, *[None] * (total - len(returned))]
    for number, value in enumerate(returned):
        for position, mesh in zip((number, *copies[number]), meshes[number], strict=False):
            assign = new_assign(function.program, value, MeshTensor(mesh, value.type))  # type: ignore[arg-type]
            values[position] = block.insert_before(terminator, assign).results[0]
    set_returned(function, [value for value in values if value is not None])


def _types(values: Sequence[Value], meshes: Sequence[list[str]]) -> tuple[list[Any], list[list[int]]]:
    """Return the types of values on their first meshes and of their copies behind, and the numbers of the copies."""
    types: list[Any] = [
        MeshTensor(names[0], value.type).type if names else value.type  # type: ignore[arg-type]
        for value, names in zip(values, meshes, strict=True)
    ]
    copies: list[list[int]] = []
    for value, names in zip(values, meshes, strict=True):
        copies.append(list(range(len(types), len(types) + len(names[1:]))))
        types += [MeshTensor(name, value.type).type for name in names[1:]]  # type: ignore[arg-type]
    return types, copies


def _attributes(
    function: Op, name: str, count: int, new_count: int, copies: Sequence[list[int]]
) -> list[dict[str, Any]]:
    """Return the attributes of arguments or results without sets, with the numbers of copies."""
    items = [
        {key: value for key, value in item.items() if key not in SETS} for item in attributes_at(function, name, count)
    ]
    for item, numbers in zip(items, copies, strict=True):
        if numbers:
            item[COPIES] = tuple(numbers)
    return [*items, *({} for _ in range(new_count - count))]


def _take_arguments_off(block: Block, old_arguments: Sequence[Value], copies: Sequence[list[int]]) -> None:
    """Replace the old arguments by what is taken off the mesh of the new ones, in each mesh by the copy there."""
    function = block.parent_op
    assert function is not None
    anchor: Op | None = None
    for old, numbers in zip(old_arguments, copies, strict=True):
        new = block.arguments[old.index]
        if new.type == old.type:
            old.replace_all_uses_with(new)
            continue
        first: Value | None = None
        for value in (new, *(block.arguments[number] for number in numbers)):
            anchor = block.insert_after(anchor, new_unassign(function.program, value))
            mesh = require_mesh_tensor(value).mesh
            first = first or anchor.results[0]
            for user, number in list(old.uses):
                if user.name == ASSIGN and require_mesh_tensor(user.results[0]).mesh == mesh:
                    user.set_operand(number, anchor.results[0])
        if first is not None:
            old.replace_all_uses_with(first)


def _take_results_off(call: Op, new: Op, function: Op) -> None:
    """Replace the results of a call by those of the new one, taken off their meshes, in each mesh by the copy there."""
    block, anchor = new.parent, new
    assert block is not None
    items = attributes_at(function, "res_attrs", len(new.results))
    for value in call.results:
        if value.type == new.results[value.index].type:
            value.replace_all_uses_with(new.results[value.index])
            continue
        first: Value | None = None
        for number in (value.index, *items[value.index].get(COPIES, ())):
            anchor = block.insert_after(anchor, new_unassign(new.program, new.results[number]))
            first = first or anchor.results[0]
            mesh = require_mesh_tensor(new.results[number]).mesh
            for user, position in list(value.uses):
                if user.name == ASSIGN and require_mesh_tensor(user.results[0]).mesh == mesh:
                    user.set_operand(position, anchor.results[0])
        if first is not None:
            value.replace_all_uses_with(first)

"""Loops that carry tensors on meshes.

Mirrors mpmd/transforms/import/infer_mesh_assignment.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Block, Op, Region
from shardy_py.ir.graph.types import TensorType
from shardy_py.mpmd.dialect.calls import attributes_at, block_of, return_of, with_signature
from shardy_py.mpmd.dialect.fragments import new_assign, new_unassign
from shardy_py.mpmd.dialect.op_names import FOR, USE_SET
from shardy_py.mpmd.dialect.types import MeshTensor, is_on_mesh
from shardy_py.mpmd.passes.inference.mesh_sets import get_set
from shardy_py.mpmd.passes.region_ops import move_ops


def loop_on_meshes(loop: Op, default: str) -> tuple[Op, Op]:
    """Put a loop that carries tensors on the meshes of its use sets in the place of one.

    Args:
        loop: The loop, which is erased.
        default: The mesh of what is used on none.

    Returns:
        The new loop, and the first of the ops that are in the place of the old one.
    """
    parent, meshes = loop.parent, _types_on_meshes(loop, default)
    assert parent is not None
    first: Op | None = None
    operands = list(loop.operands)
    for number, on in enumerate(meshes[:-1]):
        if on is not None:
            assign = parent.insert_before(loop, new_assign(loop.program, operands[number], on))
            first, operands[number] = first or assign, assign.results[0]
    body = _body_on_meshes(loop.regions[0].block, meshes)
    types = [argument.type for argument in body.arguments[:-1]]
    attributes = copy(loop.attributes)
    if "arg_attrs" in attributes:
        del attributes["arg_attrs"]
    new = parent.insert_before(loop, Op(loop.program, FOR, operands, types, attributes, [Region([body])]))
    _take_results_off(loop, new)
    loop.erase()
    return new, first or new


def return_on_meshes(function: Op) -> None:
    """Give a function the types of what it returns, which loops may have put on meshes."""
    block, returned = block_of(function), return_of(function).operands
    types = [value.type for value in returned]
    if types == [value.type for value in function.function_results]:
        return
    new, old_arguments = with_signature(
        function,
        [value.type for value in block.arguments],
        types,
        argument_attributes=attributes_at(function, "arg_attrs", len(block.arguments)),
        result_attributes=attributes_at(function, "res_attrs", len(types)),
    )
    for old, argument in zip(old_arguments, block_of(new).arguments, strict=True):
        old.replace_all_uses_with(argument)
    function.erase()


def _types_on_meshes(loop: Op, default: str) -> list[MeshTensor | None]:
    """Return the type of each argument on its mesh; None for one that stays as it is, as an unused index does."""
    arguments = loop.regions[0].block.arguments
    result: list[MeshTensor | None] = []
    for argument, item in zip(arguments, attributes_at(loop, "arg_attrs", len(arguments)), strict=True):
        is_unused_index = argument is arguments[-1] and not argument.uses
        if is_on_mesh(argument) or is_unused_index or not isinstance(argument.type, TensorType):
            result.append(None)
            continue
        use_set = get_set(item, USE_SET)
        result.append(MeshTensor(min(use_set.names) if use_set else default, argument.type))
    return result


def _body_on_meshes(old: Block, meshes: Sequence[MeshTensor | None]) -> Block:
    """Move the ops of a loop to a block with arguments on meshes, which assigns what it returns to the same ones."""
    assert old.terminator is not None
    program, returned = old.terminator.program, list(old.terminator.operands)
    for number, on in enumerate(meshes[:-1]):
        if on is not None:
            returned[number] = old.insert_before(old.terminator, new_assign(program, returned[number], on)).results[0]
    arguments = list(old.arguments)
    types = [value.type if on is None else on.type for value, on in zip(arguments, meshes, strict=True)]
    block = Block(program, types)
    move_ops(old, block, returned)
    anchor: Op | None = None
    for value, argument, on in zip(arguments, block.arguments, meshes, strict=True):
        if on is not None and value.uses:
            anchor = block.insert_after(anchor, new_unassign(program, argument))
            argument = anchor.results[0]
        value.replace_all_uses_with(argument)
    return block


def _take_results_off(loop: Op, new: Op) -> None:
    """Replace the results of a loop by those of the new one: on their meshes where returned, taken off elsewhere."""
    parent, anchor = new.parent, new
    assert parent is not None
    for old, value in zip(loop.results, new.results, strict=True):
        for user, number in list(old.uses):
            if user.name == RETURN or old.type == value.type:
                user.set_operand(number, value)
        if old.uses:
            anchor = parent.insert_after(anchor, new_unassign(new.program, value))
            old.replace_all_uses_with(anchor.results[0])

"""Views of fragments and of the ops around them, and the creation of new ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.types import Type
from shardy_py.mpmd.dialect.op_names import (
    ASSIGN,
    CALL_COUNTER,
    DROP_TRANSFERRED,
    FRAGMENT,
    INFERRED_BY,
    KEEP_TRANSFERRED,
    ORIGIN,
    REMAT,
    RETURN,
    STAGE,
    TOPOLOGY,
    TRANSFER,
    UNASSIGN,
    UNROLL_COUNTER,
)
from shardy_py.mpmd.dialect.origins import UserOrigin, parse_user_origin
from shardy_py.mpmd.dialect.types import MeshTensor, require_mesh_tensor, type_inside

_NUMBER = re.compile(r"\s*(-?\d+)")
MESH_NAME = "mesh_name"
COUNTERS = (CALL_COUNTER, UNROLL_COUNTER)
SPLIT_WORDS = {"keep": "kKeepTransferred", "drop": "kDropTransferred"}
"""Part of a split backward fragment to upstream's word for it."""


def unsigned(number: int) -> RawAttribute:
    """Return an attribute of 32 bits without a sign, the type of counters."""
    return RawAttribute(f"{number} : ui32")


def number_of(attributes: Mapping[str, Any], name: str) -> int | None:
    """Return an integer attribute, or None where there is none."""
    value = attributes.get(name)
    match = None if value is None else _NUMBER.match(str(value))
    return None if match is None else int(match[1])


def mesh_of(op: Op) -> str:
    """Return the mesh of a fragment or of a call of one."""
    name: str = op.attributes[MESH_NAME]
    return name


def origins_of(op: Op) -> tuple[UserOrigin, ...]:
    """Return the named computations of a fragment; a fragment without any is an inferred one."""
    value = op.attributes.get(ORIGIN, ())
    return tuple(map(parse_user_origin, value if isinstance(value, (tuple, list)) else (value,)))


def is_fragment(op: Op | None) -> bool:
    """Return whether an op is a fragment."""
    return op is not None and op.name == FRAGMENT


def is_user_fragment(op: Op | None) -> bool:
    """Return whether an op is a fragment of a named computation."""
    return op is not None and op.name == FRAGMENT and bool(op.attributes.get(ORIGIN))


def is_inferred_fragment(op: Op | None) -> bool:
    """Return whether an op is a fragment that comes from mesh inference, not from a named computation."""
    return op is not None and op.name == FRAGMENT and not op.attributes.get(ORIGIN)


def stage_of(op: Op) -> int | None:
    """Return the stage of a fragment."""
    return number_of(op.attributes, STAGE)


def call_counter_of(op: Op) -> int | None:
    """Return the microbatch of a fragment or call."""
    return number_of(op.attributes, CALL_COUNTER)


def single_transpose_count(op: Op) -> int | None:
    """Return the transpose count of a fragment where all its origins have the same; None for others."""
    counts = {origin.transpose_count for origin in origins_of(op)}
    return counts.pop() if len(counts) == 1 else None


def split_kind(op: Op) -> str:
    """Return which part of a split backward fragment this is, ``keep`` or ``drop``; "" for one that is not split."""
    if KEEP_TRANSFERRED in op.attributes:
        return "keep"
    return "drop" if DROP_TRANSFERRED in op.attributes else ""


def is_remat(op: Op) -> bool:
    """Return whether a fragment is a rematerialized one."""
    return REMAT in op.attributes


def body_of(op: Op) -> Block:
    """Return the block of a function, fragment or named computation."""
    return op.regions[0].block


def terminator_of(op: Op) -> Op:
    """Return the op that ends the block of a fragment."""
    terminator = body_of(op).terminator
    assert terminator is not None
    return terminator


def inferred_by(*passes: str) -> dict[str, Any]:
    """Return the attribute that says which passes made a fragment."""
    return {INFERRED_BY: passes}


def mpmd_functions(program: Program) -> list[Op]:
    """Return the functions with a topology, callees before their callers."""
    from shardy_py.mpmd.dialect.calls import callees_first

    return [op for op in callees_first(program) if TOPOLOGY in op.attributes]


def function_around(op: Op) -> Op:
    """Return the function around an op."""
    parent = op.parent_op
    while parent is not None and parent.name != FUNCTION:
        parent = parent.parent_op
    assert parent is not None
    return parent


def new_fragment(
    program: Program,
    mesh: str,
    operands: Sequence[Value],
    result_types: Iterable[Type],
    *,
    origins: Iterable[UserOrigin] = (),
    stage: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    body: Callable[[Block], Sequence[Value]] | None = None,
    block: Block | None = None,
) -> Op:
    """Return a new fragment, in no block yet.

    Args:
        program: The program.
        mesh: The mesh.
        operands: The operands, tensors of the mesh.
        result_types: The types of the results.
        origins: The named computations it comes from.
        stage: The stage.
        attributes: Attributes besides.
        body: Fills the block, whose arguments are the operands' global tensors; returns what the fragment returns.
        block: A block with its terminator instead.
    """
    if block is None:
        block = Block(program, [type_inside(value) for value in operands])
        returned = () if body is None else body(block)
        block.append(Op(program, RETURN, returned))
    all_attributes: dict[str, Any] = {MESH_NAME: mesh, ORIGIN: tuple(item.attribute for item in origins)}
    if stage is not None:
        all_attributes[STAGE] = stage
    all_attributes |= dict(attributes or {})
    return Op(program, FRAGMENT, operands, result_types, all_attributes, [Region([block])])


def new_assign(program: Program, value: Value, type_: MeshTensor, origin: str | None = None) -> Op:
    """Return an op that puts a tensor on a mesh."""
    return Op(program, ASSIGN, [value], [type_.type], {} if origin is None else {ORIGIN: origin})


def new_unassign(program: Program, value: Value, origin: str | None = None) -> Op:
    """Return an op that takes a tensor off its mesh."""
    type_ = require_mesh_tensor(value).tensor
    return Op(program, UNASSIGN, [value], [type_], {} if origin is None else {ORIGIN: origin})


def replace_arguments(old_arguments: Iterable[Value], function: Op, origin: str | None = None) -> None:
    """Replace old arguments by those of a function, taken off their meshes where the old ones were on none.

    Args:
        old_arguments: The old arguments.
        function: The function.
        origin: The origin of the ops that take arguments off their meshes.
    """
    block, anchor = body_of(function), None
    for old, value in zip(old_arguments, block.arguments, strict=True):
        if old.type == value.type:
            old.replace_all_uses_with(value)
        else:
            anchor = block.insert_after(anchor, new_unassign(function.program, value, origin))
            old.replace_all_uses_with(anchor.results[0])


def new_transfer(program: Program, value: Value, type_: MeshTensor) -> Op:
    """Return an op that moves a tensor to another mesh or memory."""
    return Op(program, TRANSFER, [value], [type_.type])


def is_inter_mesh(transfer: Op) -> bool:
    """Return whether a transfer goes to another mesh or memory."""
    source, target = require_mesh_tensor(transfer.operands[0]), require_mesh_tensor(transfer.results[0])
    return (source.mesh, source.memory_kind) != (target.mesh, target.memory_kind)

"""Transfers between meshes that do not change shardings: a fragment on either side does.

Mirrors mpmd/transforms/sharding_propagation/extract_reshards_from_inter_mesh_transfers.cc.
"""

from __future__ import annotations

from math import prod
from typing import ClassVar

from shardy_py.api.summary import local_shape
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.fragments import (
    body_of,
    inferred_by,
    is_fragment,
    is_inter_mesh,
    mpmd_functions,
    new_fragment,
)
from shardy_py.mpmd.dialect.op_names import RETURN as MPMD_RETURN
from shardy_py.mpmd.dialect.op_names import TRANSFER
from shardy_py.mpmd.dialect.types import require_mesh_tensor, require_topology
from shardy_py.mpmd.passes.shardings.user_shardings import enforce_on_users
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import NoFields

EXTRACT_RESHARDS = "extract_reshards"


class ExtractReshardsFromInterMeshTransfersPass(NoFields):
    """Change the sharding before a transfer where that makes the tensor smaller, else behind it.

    Meshes that differ have no shardings in common; their transfers stay as they are.
    """

    name: ClassVar[str] = "mpmd-extract-reshards-from-inter-mesh-transfers"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the transfers of all functions in order.

        Raises:
            UnsupportedError: both ends of a transfer with different shardings are on the host.
        """
        for function in mpmd_functions(program):
            if not require_topology(function).is_homogeneous:
                continue
            for op in [op for op in function.walk() if op.name == TRANSFER]:
                if is_inter_mesh(op):
                    _extract(op)


def _extract(transfer: Op) -> None:
    program, source, target = transfer.program, transfer.operands[0], transfer.results[0]
    table = program.shardings
    before, after = table.get(source.id), table.get(target.id)
    if _axes(before, program) == _axes(after, program):
        return
    is_off_device = [require_mesh_tensor(value).is_off_device for value in (source, target)]
    if all(is_off_device):
        message, hint = "Resharding on host not supported with an mpmd.transfer.", "give both ends one sharding"
        raise UnsupportedError(Diagnostic("reshard-on-host", message, transfer.location, transfer.name, hint))
    is_smaller_before = is_off_device[1] or (
        not is_off_device[0] and _elements(source, before, program) > _elements(target, after, program)
    )
    if is_smaller_before:
        _reshard_before(transfer, before, after)
    else:
        _reshard_behind(transfer, before, after)


def _reshard_before(transfer: Op, before: TensorSharding | None, after: TensorSharding | None) -> None:
    """Let the producer return the sharding behind a transfer; an argument or a transfer goes through a fragment."""
    source = transfer.operands[0]
    producer = source.defining_op
    if not is_fragment(producer):
        transfer.set_operand(0, _identity(source, before, after, transfer))
        return
    _set(source, after)
    enforce_on_users(source, after or _replicated(source, before))
    _reshard_for_ends(source, after, before)


def _reshard_behind(transfer: Op, before: TensorSharding | None, after: TensorSharding | None) -> None:
    """Let the users of a transfer have the sharding before it; results and further transfers go through fragments."""
    target = transfer.results[0]
    _set(target, before)
    enforce_on_users(target, before or _replicated(target, after))
    _reshard_for_ends(target, before, after)


def _reshard_for_ends(value: Value, new: TensorSharding | None, old: TensorSharding | None) -> None:
    """Let returns of a value, and transfers of it that have its old sharding, keep that."""
    table = value.owning_op.program.shardings
    for user, number in list(value.uses):
        is_end = user.name in (RETURN, MPMD_RETURN)
        if user.name == TRANSFER:
            is_end = _axes(table.get(user.results[0].id), user.program) == _axes(old, user.program)
        if is_end:
            user.set_operand(number, _identity(value, new, old, user))


def _identity(value: Value, before: TensorSharding | None, after: TensorSharding | None, anchor: Op) -> Value:
    """Return the result of a fragment before an op that returns a value with another sharding."""
    program, parent = anchor.program, anchor.parent
    assert parent is not None

    def fill(block: Block) -> list[Value]:
        return [block.arguments[0]]

    mesh = require_mesh_tensor(value).mesh
    fragment = new_fragment(program, mesh, [value], [value.type], attributes=inferred_by(EXTRACT_RESHARDS), body=fill)
    parent.insert_before(anchor, fragment)
    known = before or after
    assert known is not None
    _set(body_of(fragment).arguments[0], before or _replicated(value, known))
    _set(fragment.results[0], after or _replicated(value, known))
    return fragment.results[0]


def _set(value: Value, sharding: TensorSharding | None) -> None:
    table = value.owning_op.program.shardings
    if sharding is not None:
        table[value.id] = sharding
    else:
        table.pop(value.id, None)


def _replicated(value: Value, other: TensorSharding | None) -> TensorSharding:
    assert other is not None
    return TensorSharding.fully_closed(other.mesh, len(value.shape))


def _axes(sharding: TensorSharding | None, program: Program) -> object:
    """Return the axes of each dimension and the unreduced ones, without those of size one; none for replicated."""
    if sharding is None:
        return None
    mesh = _mesh(sharding, program)
    dims = tuple(
        tuple(axis for axis in dim.axes if mesh is None or axis.size(mesh) > 1) for dim in sharding.dim_shardings
    )
    return (dims, sharding.unreduced_axes) if any(dims) or sharding.unreduced_axes else None


def _elements(value: Value, sharding: TensorSharding | None, program: Program) -> int:
    """Return the elements of a tensor on one device."""
    shape = tuple(size or 0 for size in value.shape)
    return prod(local_shape(shape, sharding, None if sharding is None else _mesh(sharding, program)))


def _mesh(sharding: TensorSharding, program: Program) -> Mesh | None:
    return resolve_mesh(sharding.mesh, program.meshes)

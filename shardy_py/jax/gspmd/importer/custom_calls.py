"""Custom calls ``Sharding``: sharding constraints and members of sharding groups."""

from __future__ import annotations

from shardy_py.ir.graph.op_names import CONSTRAINT, SHARDING_GROUP
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import all_ops
from shardy_py.jax.gspmd.importer.annotated import SHARDING
from shardy_py.jax.gspmd.importer.annotations import SHARDING_CALL, Annotations, target_of, unspecified_dims
from shardy_py.jax.gspmd.importer.meshes import Meshes
from shardy_py.sharding.hlo import HloSharding


def read_sharding_calls(program: Program, annotations: Annotations, meshes: Meshes) -> None:
    """Replace custom calls ``Sharding`` by sharding constraints and groups; one without a sharding, by its operand."""
    for op in list(all_ops(program)):
        if SHARDING in op.attributes and target_of(op) == SHARDING_CALL:
            sharding = annotations.of(op)
            if sharding is not None:
                _replace(op, sharding, meshes)


def _replace(op: Op, sharding: HloSharding, meshes: Meshes) -> None:
    operand, block = op.operands[0], op.parent
    assert block is not None
    value = operand
    if sharding.kind not in ("manual", "unknown"):
        tensor_sharding = meshes.read(sharding, op.results[0].type, open_dims=unspecified_dims(op))
        constraint = Op(
            op.program,
            CONSTRAINT,
            (operand,),
            (op.results[0].type,),
            {"sharding": tensor_sharding},
            register_uses=False,
        )
        block.insert_before(op, constraint)
        op.hand_over_uses(constraint)
        value = constraint.results[0]
    op.results[0].move_uses_to(value, before=(op, 0))
    if sharding.group is not None:
        add_group_member(value, sharding.group.number, at=op)
    op.erase()


def add_group_member(value: Value, number: int, *, at: Op | None = None) -> None:
    """Make a value a member of a sharding group.

    Args:
        value: The value.
        number: The number of the group.
        at: The op in whose place this is said, which takes over its use of the value; by default, right behind the
            value.
    """
    is_used = at is not None and (at, 0) in value.uses
    member = Op(value.owning_op.program, SHARDING_GROUP, (value,), (), {"group_id": number}, register_uses=not is_used)
    if at is None or at.parent is None:
        value.insert_after(member)
        return
    at.parent.insert_before(at, member)
    if is_used:
        at.hand_over_uses(member)

"""Ops without a mesh, put into fragments of the meshes that use them.

Mirrors mpmd/transforms/import/infer_mesh_assignment.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import ClassVar

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.dead_ops import is_removable
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import (
    block_of,
    calls_of,
)
from shardy_py.mpmd.dialect.fragments import (
    inferred_by,
    is_fragment,
    mesh_of,
    mpmd_functions,
    new_assign,
    new_fragment,
    new_unassign,
    terminator_of,
)
from shardy_py.mpmd.dialect.op_names import ASSIGN, CALL, FOR
from shardy_py.mpmd.dialect.types import MeshTensor, require_mesh_tensor, require_topology, type_inside
from shardy_py.mpmd.passes.inference.calls import SETS, call_on_meshes, callee_on_meshes
from shardy_py.mpmd.passes.inference.loops import loop_on_meshes, return_on_meshes
from shardy_py.mpmd.passes.inference.mesh_sets import (
    is_meshless,
    used_values,
)
from shardy_py.mpmd.passes.inference.validate import raise_some
from shardy_py.mpmd.passes.region_ops import move_ops
from shardy_py.values import frozen

WRAP_MESHLESS = "infer_mesh_wrap_meshless_ops"


@frozen
class InferMeshRewriteUsingAnalysisPass:
    """Move each op without a mesh into the fragment that uses it, or into one of its own on each mesh that does.

    Args:
        max_clones: The number of fragments up to which an op is cloned into each, instead of into fragments of its own.
    """

    name: ClassVar[str] = "mpmd-infer-mesh-rewrite-using-analysis"

    max_clones: int = 1

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite callees before their callers, and each block from its end.

        Raises:
            UnsupportedError: an op is used in no mesh.
        """
        problems: list[Diagnostic] = []
        called = calls_of(program)
        for function in mpmd_functions(program):
            if function.attributes["sym_name"] in called:
                function = callee_on_meshes(function)
            rewriter = _Rewriter(context.semantics, self.max_clones, min(require_topology(function).names))
            op = block_of(function).last
            while op is not None:
                # What a rewrite inserts before an op is visited next, what it inserts behind is not.
                op = rewriter.rewrite(op)
            problems += rewriter.problems
            return_on_meshes(function)
        raise_some(problems, -1)


class _Rewriter:
    """Rewrites the ops of one function."""

    def __init__(self, semantics: OpSemantics, max_clones: int, default: str) -> None:
        self.semantics = semantics
        self.max_clones = max_clones
        self.default = default
        self.problems: list[Diagnostic] = []

    def rewrite(self, op: Op) -> Op | None:
        """Rewrite an op; return the op to visit next, further up."""
        if op.name == CALL:
            return call_on_meshes(op).prev
        if op.name == FOR:
            return self._loop(op)
        if not is_meshless(op):
            return op.prev
        if not any(value.uses for value in op.results):
            previous = op.prev
            if is_removable(op, self.semantics):
                op.erase()
            return previous
        assigns = _assigns_of(op)
        if assigns is None:
            message = "the op is used by an op that is in no mesh"
            self.problems.append(Diagnostic("no-mesh", message, op.location, op.name))
            return op.prev
        fragments = _fragments_of(assigns)
        if fragments is not None and self._may_clone(op, len(fragments)):
            return self._into_fragments(op, assigns, fragments)
        return self._wrap(op, assigns)

    def _may_clone(self, op: Op, count: int) -> bool:
        if count == 1 or (not op.operands and not used_values(op)):
            return True
        is_small = len(op.operands) <= 1 and len(op.results) == 1 and not op.regions
        return (is_small and is_removable(op, self.semantics)) or count <= self.max_clones

    def _into_fragments(self, op: Op, assigns: list[Op], fragments: list[Op]) -> Op | None:
        """Move an op into the fragments that use it, as clones into all but one."""
        values = used_values(op)
        for fragment in fragments:
            assigned = {
                assign.results[0].id: assign.operands[0].index
                for assign in assigns
                if any(user is fragment for user, _ in assign.results[0].uses)
            }
            _pull_in(op, _free_first(op, values), fragment, assigned)
        for assign in assigns:
            assign.erase()
        previous = op.prev
        op.erase()
        return previous

    def _wrap(self, op: Op, assigns: list[Op]) -> Op | None:
        """Put an op into a fragment on each mesh to which its results are assigned."""
        program, block = op.program, op.parent
        assert block is not None
        values = used_values(op)
        first: Op | None = None
        meshes = dict.fromkeys(require_mesh_tensor(assign.results[0]).mesh for assign in assigns)
        # All results, as the reference has them: later passes drop those that nothing uses.
        returned = [value.index for value in op.results if value.uses or isinstance(value.type, TensorType)]
        for mesh in meshes:
            new = [new_assign(program, value, MeshTensor(mesh, value.type)) for value in values]  # type: ignore[arg-type]
            operands = [block.insert_before(op, assign).results[0] for assign in new]
            fragment = _wrapped(op, values, mesh, operands, returned)
            block.insert_before(op, fragment)
            first = first or (new[0] if new else fragment)
            unassigns = {
                number: block.insert_before(op, new_unassign(program, value)).results[0]
                for number, value in zip(returned, fragment.results, strict=True)
                if op.results[number].uses
            }
            for assign in assigns:
                if require_mesh_tensor(assign.results[0]).mesh == mesh:
                    assign.set_operand(0, unassigns[assign.operands[0].index])
        op.erase()
        assert first is not None
        return first.prev

    def _loop(self, loop: Op) -> Op | None:
        """Put what a loop carries on meshes, and rewrite the ops in it."""
        new, first = loop_on_meshes(loop, self.default)
        inner = new.regions[0].block.last
        while inner is not None:
            inner = self.rewrite(inner)
        return first.prev


def _assigns_of(op: Op) -> list[Op] | None:
    """Return the assigns that use an op, in the order of uses; None where something else uses it."""
    users = {user.id: user for value in op.results for user, _ in value.uses}
    assigns = list(users.values())
    return assigns if all(user.name == ASSIGN for user in assigns) else None


def _fragments_of(assigns: list[Op]) -> list[Op] | None:
    """Return the fragments that use assigns; None where something else uses one."""
    fragments: dict[int, Op] = {}
    for assign in assigns:
        for user, _ in assign.results[0].uses:
            if not is_fragment(user) or user.parent is not assign.parent:
                return None
            fragments[user.id] = user
    return list(fragments.values())


def _clean_clone(op: Op, mapping: dict[int, Value]) -> Op:
    clone = clone_op(op, mapping)
    for name in SETS:
        if name in clone.attributes:
            del clone.attributes[name]
    return clone


def _wrapped(op: Op, values: Sequence[Value], mesh: str, operands: Sequence[Value], used: Sequence[int]) -> Op:
    def fill(block: Block) -> list[Value]:
        mapping = {value.id: argument for value, argument in zip(values, block.arguments, strict=True)}
        clone = _clean_clone(op, mapping)
        block.append(clone)
        return [clone.results[number] for number in used]

    types = [MeshTensor(mesh, op.results[number].type).type for number in used]  # type: ignore[arg-type]
    return new_fragment(op.program, mesh, operands, types, attributes=inferred_by(WRAP_MESHLESS), body=fill)


def _pull_in(op: Op, values: Sequence[Value], fragment: Op, assigned: dict[int, int]) -> Op:
    """Put a clone of an op at the start of a fragment; its operands become new operands, the last ones."""
    program, parent = op.program, fragment.parent
    assert parent is not None
    mesh = mesh_of(fragment)
    unassigned = [number for number, value in enumerate(fragment.operands) if value.id not in assigned]
    present = {_assigned_value(fragment.operands[number]): number for number in unassigned}
    added = [value for value in values if value.id not in present]
    assigns = [new_assign(program, value, MeshTensor(mesh, value.type)) for value in added]  # type: ignore[arg-type]
    new_operands = [parent.insert_before(fragment, assign).results[0] for assign in assigns]
    operands = [*(fragment.operands[number] for number in unassigned), *new_operands]
    old_block = fragment.regions[0].block
    block = Block(program, [type_inside(value) for value in operands])
    move_ops(old_block, block, list(terminator_of(fragment).operands))
    for position, number in enumerate(unassigned):
        old_block.arguments[number].replace_all_uses_with(block.arguments[position])
    positions = {fragment.operands[number].id: position for position, number in enumerate(unassigned)}
    mapping = {value.id: block.arguments[len(unassigned) + index] for index, value in enumerate(added)}
    for value in values:
        if value.id in present:
            mapping[value.id] = block.arguments[positions[fragment.operands[present[value.id]].id]]
    clone = _clean_clone(op, mapping)
    block.insert_after(None, clone)
    for number, value in enumerate(fragment.operands):
        if value.id in assigned:
            old_block.arguments[number].replace_all_uses_with(clone.results[assigned[value.id]])
    new = new_fragment(program, mesh, operands, [value.type for value in fragment.results], block=block)
    new.attributes = copy(fragment.attributes)
    parent.insert_before(fragment, new)
    for old_value, new_value in zip(fragment.results, new.results, strict=True):
        old_value.replace_all_uses_with(new_value)
    fragment.erase()
    return new


def _free_first(op: Op, values: Sequence[Value]) -> list[Value]:
    """Return the values that an op uses, those of its regions before its operands, as the reference orders them."""
    operands = {value.id for value in op.operands}
    return [
        *(value for value in values if value.id not in operands),
        *(value for value in values if value.id in operands),
    ]


def _assigned_value(value: Value) -> int | None:
    """Return the id of the value that an operand of a fragment was assigned from."""
    op = value.defining_op
    return op.operands[0].id if op is not None and op.name == ASSIGN else None

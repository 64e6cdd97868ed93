"""Forward fragments made again before the backward fragments that use them.

Mirrors mpmd/transforms/optimize/remat_fragment.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.attributes import UNIT
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import (
    call_counter_of,
    is_user_fragment,
    mesh_of,
    mpmd_functions,
    single_transpose_count,
    stage_of,
)
from shardy_py.mpmd.dialect.op_names import REMAT
from shardy_py.mpmd.passes.fragments.merge_passes import next_of_mesh
from shardy_py.mpmd.passes.fragments.merging import fragment_users, merge
from shardy_py.values import frozen


@frozen
class RematFragmentPass:
    """Compute a forward fragment again for each backward fragment of its microbatch that uses it, unless that is next.

    What the forward fragment keeps for the backward one lives from one copy to the other no longer.

    Args:
        merge_remat_fragments: Whether each copy is merged into the backward fragment.
    """

    name: ClassVar[str] = "mpmd-remat-fragment"

    merge_remat_fragments: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Copy the forward fragments of each function."""
        for function in mpmd_functions(program):
            for op in list(block_of(function).ops):
                if is_user_fragment(op) and single_transpose_count(op) == 0 and call_counter_of(op) is not None:
                    for backward in fragment_users(op):
                        if _is_backward_of(op, backward) and next_of_mesh(op) is not backward:
                            self._rematerialize(op, backward)

    def _rematerialize(self, op: Op, backward: Op) -> None:
        clone = clone_op(op, {})
        clone.attributes[REMAT] = UNIT
        assert backward.parent is not None
        backward.parent.insert_before(backward, clone)
        for number, value in enumerate(backward.operands):
            if value.defining_op is op:
                backward.set_operand(number, clone.results[value.index])
        if self.merge_remat_fragments:
            merge(clone, backward, backward)


def _is_backward_of(op: Op, user: Op) -> bool:
    is_same = (mesh_of(op), stage_of(op), call_counter_of(op)) == (mesh_of(user), stage_of(user), call_counter_of(user))
    return is_same and is_user_fragment(user) and single_transpose_count(user) == 1

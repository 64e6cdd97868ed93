"""Meshes for the ends of a function: unused arguments, results, unused ops and ops without results.

Mirrors mpmd/transforms/import/infer_mesh_assignment.cc.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.interfaces.ops import OpSemantics, Pure
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import (
    block_of,
    calls_of,
    return_of,
    with_returned,
    with_types,
)
from shardy_py.mpmd.dialect.fragments import inferred_by, mpmd_functions, new_assign, new_fragment, new_unassign
from shardy_py.mpmd.dialect.op_names import BROADCAST, REDUCE, SRC_SET, USE_SET
from shardy_py.mpmd.dialect.origins import MeshSet
from shardy_py.mpmd.dialect.types import MeshTensor, is_on_mesh, require_topology
from shardy_py.mpmd.passes.inference.mesh_sets import (
    clear_sets,
    get_set,
    is_meshless,
    preferred_mesh,
    put_at,
    set_of_argument,
    used_values,
)
from shardy_py.mpmd.passes.inference.src_sets import SrcSets
from shardy_py.mpmd.passes.inference.validate import DEFAULT_LIMIT, raise_some
from shardy_py.values import frozen

WRAP_RESULTLESS = "infer_mesh_wrap_resultless_ops"


@frozen
class InferMeshAssignMeshFuncLeavesPass:
    """Assign results of entry points, unused arguments and unused ops to a mesh, where nothing else does.

    Args:
        infer_transfers: Whether a value may go to a mesh in which it cannot be had.
        error_limit: The largest number of errors; -1 for all.
    """

    name: ClassVar[str] = "mpmd-infer-mesh-assign-mesh-func-leaves"

    infer_transfers: bool = False
    error_limit: int = DEFAULT_LIMIT

    def run(self, program: Program, context: PassContext) -> None:
        """Assign the leaves of all functions with a topology.

        Raises:
            UnsupportedError: a leaf has no mesh.
        """
        calls = calls_of(program)
        problems: list[Diagnostic] = []
        for function in mpmd_functions(program):
            leaves = _Leaves(function, context.semantics, may_transfer=self.infer_transfers)
            called = calls.get(function.attributes["sym_name"], [])
            leaves.assign(called, is_callee=bool(called) or function.attributes.get("sym_visibility") == "private")
            problems += leaves.problems
        raise_some(problems, self.error_limit)


class _Leaves:
    """Assigns the leaves of one function."""

    def __init__(self, function: Op, semantics: OpSemantics, *, may_transfer: bool) -> None:
        self.function = function
        self.semantics = semantics
        self.may_transfer = may_transfer
        self.sets = SrcSets(function.program, semantics)
        self.default = min(require_topology(function).names)
        self.problems: list[Diagnostic] = []

    def assign(self, calls: list[Op], *, is_callee: bool) -> None:
        """Assign all leaves, and erase the use sets, which are found anew."""
        block = block_of(self.function)
        unused_arguments = {value.index for value in block.arguments if not value.uses and not is_on_mesh(value)}
        unused_results = self._unused_results(calls) if is_callee else {}
        self._broadcasts_and_reduces()
        self._unused_ops()
        if not is_callee:
            self._results()
        clear_sets(self.function, USE_SET)
        if is_callee:
            for index in sorted(unused_arguments):
                mesh = self._choose(None, set_of_argument(self.function, index, SRC_SET))
                if mesh is None:
                    self._refuse(f"input {index}")
                    continue
                self._put("arg_attrs", len(block.arguments), index, mesh, "inferred_unused_callee_in")
            for index, mesh in unused_results.items():
                self._put("res_attrs", len(self.function.function_results), index, mesh, "inferred_unused_callee_out")
        elif unused_arguments:
            self._put_on_mesh(unused_arguments)

    def _put(self, where: str, count: int, index: int, mesh: str, origin: str) -> None:
        put_at(self.function, where, count, index, USE_SET, MeshSet.of(mesh, origin))

    def _choose(self, use_set: MeshSet | None, src_set: MeshSet | None) -> str | None:
        """Return the mesh of a leaf; None where there is none."""
        mesh = preferred_mesh(use_set, src_set)
        return self.default if mesh is None and (src_set is None or self.may_transfer) else mesh

    def _use_set(self, value: Value) -> MeshSet | None:
        op = value.defining_op
        if op is None:
            return set_of_argument(self.function, value.index, USE_SET)
        return get_set(op.attributes, USE_SET)

    def _results(self) -> None:
        terminator = return_of(self.function)
        block, values = block_of(self.function), list(terminator.operands)
        for number, value in enumerate(values):
            if is_on_mesh(value) or not isinstance(value.type, TensorType):
                continue
            mesh = self._choose(self._use_set(value), self.sets.of_value(value))
            if mesh is None:
                message = f"Func output {number} has no mesh to be assigned to."
                self.problems.append(Diagnostic("no-mesh", message, self.function.location, hint=_HINT))
                continue
            assign = new_assign(self.function.program, value, MeshTensor(mesh, value.type), "inferred_out")
            values[number] = block.insert_before(terminator, assign).results[0]
        self.function = with_returned(self.function, values)

    def _put_on_mesh(self, indices: set[int]) -> None:
        types: list[Type] = [
            MeshTensor(self.default, value.type).type
            if value.index in indices and isinstance(value.type, TensorType)
            else value.type
            for value in block_of(self.function).arguments
        ]
        self.function = with_types(self.function, types, [value.type for value in self.function.function_results])

    def _unused_results(self, calls: list[Op]) -> dict[int, str]:
        """Return number to mesh of the results that no call uses."""
        result: dict[int, str] = {}
        for number, value in enumerate(return_of(self.function).operands):
            if is_on_mesh(value) or any(call.results[number].uses for call in calls):
                continue
            mesh = self._choose(self._use_set(value), self.sets.of_value(value))
            if mesh is None:
                self._refuse(f"output {number}")
            else:
                result[number] = mesh
        return result

    def _refuse(self, subject: str) -> None:
        name = self.function.attributes["sym_name"]
        message = f"Callee @{name} unused {subject} has no mesh to be assigned to."
        self.problems.append(Diagnostic("no-mesh", message, self.function.location, hint=_HINT))

    def _broadcasts_and_reduces(self) -> None:
        block = block_of(self.function)
        for op in list(block.ops):
            if op.name not in (BROADCAST, REDUCE):
                continue
            word = op.name.removeprefix("mpmd.")
            for number, value in enumerate(op.operands):
                producer = value.defining_op
                if producer is not None and producer.name == op.name == BROADCAST:
                    continue
                mesh = self._choose(get_set(op.attributes, USE_SET), self.sets.of_value(value)) or self.default
                type_ = MeshTensor(mesh, value.type)  # type: ignore[arg-type]
                assign = block.insert_before(op, new_assign(op.program, value, type_, word))
                unassign = block.insert_before(op, new_unassign(op.program, assign.results[0]))
                op.set_operand(number, unassign.results[0])

    def _unused_ops(self) -> None:
        block = block_of(self.function)
        for op in list(block.ops):
            has_tensors = any(isinstance(value.type, TensorType) for value in op.results)
            if not is_meshless(op) or (has_tensors and any(value.uses for value in op.results)):
                continue
            src_set = get_set(op.attributes, SRC_SET)
            if has_tensors:
                mesh = self._choose(get_set(op.attributes, USE_SET), src_set)
                if mesh is None:
                    self._refuse_empty(op, "src_set must not be empty for this op.")
                    continue
                value = next(value for value in op.results if isinstance(value.type, TensorType))
                assign = new_assign(op.program, value, MeshTensor(mesh, value.type), "inferred_unused")  # type: ignore[arg-type]
                block.insert_after(op, assign)
            elif src_set is not None and not src_set:
                self._refuse_empty(op, "src_set must not be empty for resultless ops.")
            else:
                self._wrap(op, sorted(src_set.names) if src_set else [self.default])

    def _refuse_empty(self, op: Op, message: str) -> None:
        hint = "Try setting `mpmd_infer_transfers` to let transfers be inferred" if not self.may_transfer else _HINT
        self.problems.append(Diagnostic("no-mesh", f"{message} {hint}", op.location, op.name))

    def _wrap(self, op: Op, meshes: list[str]) -> None:
        """Put an op without tensors as results into a fragment on each mesh, on the first one only where it is pure.

        Tokens go into fragments and out of them as they are; those of the first fragment stand for the op's.
        """
        program, block = op.program, op.parent
        assert block is not None
        values = used_values(op)
        is_single = self.semantics.has_trait(op, Pure) or any(value.uses for value in op.results)
        for mesh in meshes[:1] if is_single else meshes:
            operands = [self._on_mesh(value, mesh, op) for value in values]
            fragment = new_fragment(
                program,
                mesh,
                operands,
                [value.type for value in op.results],
                attributes=inferred_by(WRAP_RESULTLESS),
                body=partial(_fill_with_clone, op, values),
            )
            block.insert_before(op, fragment)
            for value, result in zip(op.results, fragment.results, strict=True):
                value.replace_all_uses_with(result)
        op.erase()

    def _on_mesh(self, value: Value, mesh: str, anchor: Op) -> Value:
        if not isinstance(value.type, TensorType):
            return value
        assert anchor.parent is not None
        assign = new_assign(anchor.program, value, MeshTensor(mesh, value.type))
        return anchor.parent.insert_before(anchor, assign).results[0]


def _fill_with_clone(op: Op, values: list[Value], inner: Block) -> list[Value]:
    """Copy an op into a block whose arguments stand for values; return its results."""
    mapping = {value.id: argument for value, argument in zip(values, inner.arguments, strict=True)}
    clone = clone_op(op, mapping)
    for name in (SRC_SET, USE_SET):
        if name in clone.attributes:
            del clone.attributes[name]
    inner.append(clone)
    return list(clone.results)


_HINT = "assign it, or a value that it is made of, to a mesh"

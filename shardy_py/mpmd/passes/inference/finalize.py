"""The end of mesh inference: arguments on their meshes, transfers in the places of assigns and unassigns.

Mirrors mpmd/transforms/import/infer_mesh_assignment.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.ops import OpSemantics, Reduction
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import attributes_at, block_of, calls_of, with_signature
from shardy_py.mpmd.dialect.fragments import inferred_by, mpmd_functions, new_fragment, new_unassign, replace_arguments
from shardy_py.mpmd.dialect.op_names import ASSIGN, BROADCAST, REDUCE, REDUCTION, SRC_SET, UNASSIGN, USE_SET
from shardy_py.mpmd.dialect.types import MeshTensor, is_on_mesh, require_mesh_tensor, require_topology
from shardy_py.mpmd.passes.inference.calls import COPIES
from shardy_py.mpmd.passes.inference.combiners import combiner_of, combining_ops
from shardy_py.mpmd.passes.inference.convert_reduce_ops import COMBINING_OP, word_of
from shardy_py.mpmd.passes.inference.mesh_sets import clear_sets, is_meshless
from shardy_py.mpmd.passes.named.introduce_transfers import replace_assigns_of_unassigns
from shardy_py.mpmd.passes.named.transfers import chain_before, earliest, transfer_before
from shardy_py.values import frozen

CONVERT_REDUCE = "infer_mesh_convert_reduce_ops"


@frozen
class InferMeshFinalizePass:
    """Give arguments the types of their meshes, and turn assigns, unassigns, broadcasts and reduces into transfers.

    Args:
        infer_transfers: Whether transfers may be added between any values, not only for arguments.
    """

    name: ClassVar[str] = "mpmd-infer-mesh-finalize"

    infer_transfers: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Finalize all functions with a topology, and check that everything has a mesh.

        Raises:
            VerificationError: an argument has several kinds of memory, or an op has no mesh.
        """
        called = calls_of(program)
        for function in mpmd_functions(program):
            if function.attributes["sym_name"] not in called:
                function = _put_arguments_on_meshes(function)
            _expand_reduces(function, context.semantics)
            _expand_broadcasts(function)
            replace_assigns_of_unassigns(function, may_transfer=self.infer_transfers)
            clear_sets(function, SRC_SET, USE_SET, REDUCTION, COPIES)
            _check(function)


def _put_arguments_on_meshes(function: Op) -> Op:
    """Return the function whose arguments are on the first of the meshes that they are assigned to, by name."""
    block = block_of(function)
    types = [_type_of_argument(function, value) for value in block.arguments]
    if types == [value.type for value in block.arguments]:
        return function
    new, old_arguments = with_signature(
        function,
        types,
        [value.type for value in function.function_results],
        argument_attributes=attributes_at(function, "arg_attrs", len(types)),
        result_attributes=attributes_at(function, "res_attrs", len(function.function_results)),
    )
    replace_arguments(old_arguments, new)
    function.erase()
    return new


def _type_of_argument(function: Op, value: Value) -> TensorType:
    assigns = [user for user, _ in value.uses if user.name == ASSIGN]
    if is_on_mesh(value) or not isinstance(value.type, TensorType):
        return value.type  # type: ignore[return-value]
    if not assigns:
        return MeshTensor(min(require_topology(function).names), value.type).type
    kinds = {require_mesh_tensor(user.results[0]).memory_kind for user in assigns}
    if len(kinds) > 1:
        more = (
            " Found at least one user with undefined memory kind and at least one user with a memory kind."
            if "" in kinds
            else ""
        )
        message = f"Argument {value.index} has different memory kinds assigned to it.{more}"
        raise VerificationError(Diagnostic("memory-kinds", message, function.location, hint="assign it to one kind"))
    return min((require_mesh_tensor(user.results[0]) for user in assigns), key=lambda item: item.mesh).type


def _expand_broadcasts(function: Op) -> None:
    """Replace each broadcast by transfers from where its operand is to each mesh that uses it."""
    for op in list(function.walk()):
        if op.name != BROADCAST:
            continue
        producer = op.operands[0].defining_op
        assigns = [user for user, _ in op.results[0].uses if user.name == ASSIGN]
        if producer is not None and producer.name == UNASSIGN and assigns:
            types = [require_mesh_tensor(user.results[0]) for user in assigns]
            values = chain_before(producer.operands[0], types, earliest(assigns))
            for user in assigns:
                user.results[0].replace_all_uses_with(values[user.results[0].type.text])
                user.erase()
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()


def _expand_reduces(function: Op, semantics: OpSemantics) -> None:
    """Replace each reduce over meshes: local ones, transfers of what they give to each mesh that uses it, one there."""
    for op in list(function.walk()):
        if op.name != REDUCE:
            continue
        _expand(op, "" if len(op.operands) == 1 else _combining_op(op, semantics))


def _expand(op: Op, name: str) -> None:
    block, program = op.parent, op.program
    assert block is not None
    by_mesh: dict[str, list[Value]] = {}
    for value in op.operands:
        producer = value.defining_op
        if producer is None or producer.name != UNASSIGN:
            message = "an operand of the reduce is on no mesh"
            raise VerificationError(Diagnostic("no-mesh", message, op.location, op.name))
        by_mesh.setdefault(require_mesh_tensor(producer.operands[0]).mesh, []).append(producer.operands[0])
    partial = {
        mesh: _combined(op, name, mesh, values) if len(values) > 1 else values[0] for mesh, values in by_mesh.items()
    }
    assigns = [user for user, _ in op.results[0].uses if user.name == ASSIGN]
    for mesh in dict.fromkeys(require_mesh_tensor(user.results[0]).mesh for user in assigns):
        on_mesh = [partial[mesh]] if mesh in partial else []
        others = [value for other, value in partial.items() if other != mesh]
        values = [*on_mesh, *(transfer_before(value, require_mesh_tensor(value).on(mesh), op) for value in others)]
        result = _combined(op, name, mesh, values)
        unassign = block.insert_before(op, new_unassign(program, result))
        for user in assigns:
            if require_mesh_tensor(user.results[0]).mesh == mesh:
                user.set_operand(0, unassign.results[0])
    if len(op.operands) == 1:
        op.results[0].replace_all_uses_with(op.operands[0])
    op.erase()


def _combined(op: Op, name: str, mesh: str, values: list[Value]) -> Value:
    """Return values of one mesh combined, in a fragment before an op; one value alone is handed on by it."""
    program, block = op.program, op.parent
    assert block is not None
    distinct = list({value.id: value for value in values}.values())

    def fill(inner: Block) -> list[Value]:
        arguments = {value.id: argument for value, argument in zip(distinct, inner.arguments, strict=True)}
        result = arguments[values[0].id]
        for value in values[1:]:
            result = inner.append(Op(program, name, [result, arguments[value.id]], [result.type])).results[0]
        return [result]

    type_ = require_mesh_tensor(values[0]).on(mesh).type
    fragment = new_fragment(program, mesh, distinct, [type_], attributes=inferred_by(CONVERT_REDUCE), body=fill)
    return block.insert_before(op, fragment).results[0]


def _combining_op(op: Op, semantics: OpSemantics) -> str:
    """Return the name of an op that combines two tensors: that of the converted op, else one of the program."""
    name = op.attributes.get(COMBINING_OP)
    if name is not None:
        return str(name)
    word = word_of(op)
    names = combining_ops(op.program, word, semantics)
    if len(names) == 1:
        return names[0]
    for other in op.program.walk():
        # A reduction within a tensor combines, too, but not two tensors.
        is_within = semantics.has_trait(other, Reduction)
        if len(other.operands) == 2 and is_meshless(other) and not is_within and combiner_of(other, semantics) == word:
            return other.name
    message = f"no op of the program combines two tensors as mpmd.reduce<{word_of(op)}> asks"
    hint = "write the reduction with ops of the program's dialect, and end it with mpmd.reduce<none>"
    raise VerificationError(Diagnostic("no-combiner", message, op.location, op.name, hint))


def _check(function: Op) -> None:
    """Check that everything of a function has a mesh.

    Raises:
        VerificationError: something has none; all problems are named.
    """
    problems = [
        Diagnostic(
            "no-mesh", f"function input {value.index} is not a MeshTensorType, but a {value.type}", function.location
        )
        for value in block_of(function).arguments
        if isinstance(value.type, TensorType) and not is_on_mesh(value)
    ]
    for op in block_of(function).ops:
        if op.name in (ASSIGN, UNASSIGN, BROADCAST):
            message = "assigns, unassigns or broadcasts are not allowed after mesh inference."
            problems.append(Diagnostic("no-mesh", message, op.location, op.name))
        elif is_meshless(op):
            message = "no more meshless ops are expected at this point."
            problems.append(Diagnostic("no-mesh", message, op.location, op.name))
    if problems:
        raise VerificationError(*problems)

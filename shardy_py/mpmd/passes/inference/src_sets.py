"""Src sets: the meshes in which a value can be had without a new transfer.

Mirrors mpmd/transforms/import/infer_mesh_assignment.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.interfaces.ops import Concatenation, OpSemantics, Reduction
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of, callee_name
from shardy_py.mpmd.dialect.fragments import mpmd_functions
from shardy_py.mpmd.dialect.op_names import (
    ASSIGN,
    CALL,
    FOR,
    ORIGIN,
    REDUCE,
    REDUCTION,
    SRC_SET,
    TRANSFER,
    UNASSIGN,
    USE_SET,
)
from shardy_py.mpmd.dialect.origins import MeshSet
from shardy_py.mpmd.dialect.types import is_on_mesh, require_mesh_tensor
from shardy_py.mpmd.passes.inference.combiners import combiner_of, reduction_attribute
from shardy_py.mpmd.passes.inference.mesh_sets import (
    get_set,
    is_meshless,
    put_at,
    set_of_argument,
    used_values,
    user_in_block,
)
from shardy_py.values import NoFields

INFERRED_IN = "inferred_in"


class InferMeshPopulateSrcSetPass(NoFields):
    """Find the meshes in which each value can be had, from unassigns forwards, and mark reductions over meshes."""

    name: ClassVar[str] = "mpmd-infer-mesh-populate-src-set"

    def run(self, program: Program, context: PassContext) -> None:
        """Write the attribute ``mpmd.src_set`` of ops and arguments; callees are visited at each of their calls."""
        called = {callee_name(op) for op in program.walk() if op.name == CALL}
        sets = SrcSets(program, context.semantics)
        for function in reversed(mpmd_functions(program)):
            if function.attributes["sym_name"] not in called:
                sets.visit_entry(function)


class SrcSets:
    """The src sets of a program, in its attributes.

    Args:
        program: The program.
        semantics: What is known about ops.
    """

    def __init__(self, program: Program, semantics: OpSemantics) -> None:
        self._functions = program.functions
        self._semantics = semantics

    def visit_entry(self, function: Op) -> None:
        """Give the arguments and ops of a function that nothing calls their sets, and those of what it calls."""
        block = block_of(function)
        for argument in block.arguments:
            use_set = None if is_on_mesh(argument) else set_of_argument(function, argument.index, USE_SET)
            if use_set:
                src_set = MeshSet(tuple((name, (INFERRED_IN,)) for name in use_set.names))
                put_at(function, "arg_attrs", len(block.arguments), argument.index, SRC_SET, src_set)
        self._visit_block(block, function, is_entry=True)

    def _visit_block(self, block: Block, around: Op, *, is_entry: bool) -> None:
        for op in block.ops:
            src_set: MeshSet | None = None
            if op.name == UNASSIGN:
                src_set = self._of_unassign(op, is_entry=is_entry)
            elif op.name == FOR:
                self._visit_arguments(op, op.regions[0].block.arguments[: len(op.operands)], op)
                self._visit_block(op.regions[0].block, op, is_entry=False)
            elif op.name == CALL:
                function = self._functions[callee_name(op)]
                self._visit_arguments(function, block_of(function).arguments, op)
                self._visit_block(block_of(function), function, is_entry=False)
            elif op.name == ASSIGN:
                src_set = self.of_value(op.operands[0])
            elif is_meshless(op):
                src_set = self._of_op(op)
            if src_set is not None:
                op.attributes[SRC_SET] = src_set.attribute

    def _visit_arguments(self, around: Op, arguments: Sequence[Value], op: Op) -> None:
        """Restrict the sets of arguments of a function or loop to what the operands of a call or loop have."""
        count = len(around.regions[0].block.arguments)
        for argument, value in zip(arguments, op.operands, strict=True):
            src_set = self.of_value(value)
            if src_set is not None and not is_on_mesh(argument):
                old = set_of_argument(around, argument.index, SRC_SET)
                put_at(
                    around,
                    "arg_attrs",
                    count,
                    argument.index,
                    SRC_SET,
                    src_set if old is None else old.intersection(src_set),
                )

    def _of_unassign(self, op: Op, *, is_entry: bool) -> MeshSet:
        source = op.operands[0]
        result = MeshSet.of(require_mesh_tensor(source).mesh, op.attributes.get(ORIGIN))
        for user, _ in source.uses:
            if user.name == TRANSFER:
                result = result.union(MeshSet.of(require_mesh_tensor(user.results[0]).mesh, "transfer"))
        if is_entry and source.is_block_argument:
            block = op.parent
            assert block is not None
            sets = [get_set(op.attributes, USE_SET)]
            users = [user_in_block(user, block) for user in op.results[0].users]
            sets += [get_set(user.attributes, USE_SET) for user in users if user is not None]
            names = [name for item in sets if item is not None for name in item.names if name not in result]
            for name in dict.fromkeys(names):
                result = result.union(MeshSet.of(name, INFERRED_IN))
        return result

    def _of_op(self, op: Op) -> MeshSet | None:
        sets = [(value, self.of_value(value)) for value in used_values(op)]
        known = [item for _, item in sets if item is not None]
        if not known:
            return None
        result = known[0]
        for item in known[1:]:
            result = result.intersection(item)
        reduction = self._reduction(op, result, sets)
        if reduction is None:
            return result
        op.attributes[REDUCTION] = reduction_attribute(reduction)
        union = MeshSet()
        for item in known:
            union = union.union(item)
        return union

    def _reduction(self, op: Op, common: MeshSet, sets: list[tuple[Value, MeshSet | None]]) -> str | None:
        """Return the word of the reduction over meshes that an op is, or None."""
        word = self._word(op)
        if word is None:
            return None
        is_of_concatenation = self._semantics.has_trait(op, Reduction)
        operands = sets[:1] if is_of_concatenation else sets
        marked = any(_marked_with(value, word) for value, _ in operands)
        if is_of_concatenation:
            return word if marked else None
        if any(not item for _, item in operands if item is not None):
            return None
        if not common:
            return word
        return word if marked else None

    def _word(self, op: Op) -> str | None:
        if self._semantics.has_trait(op, Concatenation):
            return _reduction_of_concatenation(op, self._semantics)
        return combiner_of(op, self._semantics)

    def of_value(self, value: Value) -> MeshSet | None:
        """Return the src set of a value; None for any mesh."""
        op = value.defining_op
        if op is None:
            around = value.owning_op
            if is_on_mesh(value):
                return MeshSet.of(require_mesh_tensor(value).mesh)
            return set_of_argument(around, value.index, SRC_SET)
        if op.name in (CALL, FOR):
            block = block_of(self._functions[callee_name(op)]) if op.name == CALL else op.regions[0].block
            terminator = block.terminator
            return None if terminator is None else self.of_value(terminator.operands[value.index])
        return None if op.name in (ASSIGN, TRANSFER) else get_set(op.attributes, SRC_SET)


def _marked_with(value: Value, word: str) -> bool:
    producer = value.defining_op
    mark = None if producer is None else producer.attributes.get(REDUCTION)
    return (
        mark is not None
        and producer is not None
        and producer.name != REDUCE
        and str(mark) == f"#mpmd.reduction<{word}>"
    )


def _reduction_of_concatenation(op: Op, semantics: OpSemantics) -> str | None:
    """Return the word of the reduction that combines all pieces of a concatenation, each of size one."""
    if not op.results[0].has_one_use:
        return None
    user = op.results[0].uses[0][0]
    if user.name == RETURN or not semantics.has_trait(user, Reduction):
        return None
    sizes, total = [value.shape for value in op.operands], op.results[0].shape
    dims = [dim for dim, size in enumerate(total) if all(shape[dim] == 1 for shape in sizes) and size == len(sizes)]
    reduced = _reduced_dims(user, semantics)
    return combiner_of(user, semantics) if reduced is not None and reduced in ([dim] for dim in dims) else None


def _reduced_dims(op: Op, semantics: OpSemantics) -> list[int] | None:
    """Return the dimensions of the first operand that a reduction combines, from the shapes."""
    rule = semantics.get_sharding_rule(op)
    if rule is None:
        return None
    result_factors = {factor for dim in rule.result_mappings[0] for factor in dim}
    return [
        number for number, dim in enumerate(rule.operand_mappings[0]) if dim and not result_factors.intersection(dim)
    ]

"""Reductions over meshes as ops of their own.

Mirrors mpmd/transforms/import/infer_mesh_assignment.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.fragments import mpmd_functions
from shardy_py.mpmd.dialect.op_names import REDUCE, REDUCTION, SRC_SET, USE_SET
from shardy_py.mpmd.passes.inference.combiners import combining_ops, reduction_attribute
from shardy_py.mpmd.passes.inference.src_sets import INFERRED_IN, SrcSets
from shardy_py.values import frozen

COMBINING_OP = "mpmd.combining_op"
"""The attribute of a reduce with the name of the op that combines two tensors, where its dialect has several."""
_NONE = "none"


@frozen
class InferMeshConvertReduceOpsPass:
    """Turn the ops that are marked as reductions over meshes into ``mpmd.reduce``, and trees of them into one.

    Args:
        infer_cross_mesh_reductions: Whether all marked ops are converted; by default those below a reduce of the user.
        reduces_arguments: Whether a sum with an argument that only one mesh uses counts, such as that with a bias.
    """

    name: ClassVar[str] = "mpmd-infer-mesh-convert-reduce-ops"

    infer_cross_mesh_reductions: bool = False
    reduces_arguments: bool = True

    def run(self, program: Program, context: PassContext) -> None:
        """Convert operands before their users."""
        for function in mpmd_functions(program):
            below_reduces = {op.id for reduce in function.walk() if word_of(reduce) == _NONE for op in _below(reduce)}
            sets = SrcSets(program, context.semantics)
            for op in list(function.walk()):
                is_inferred = self.infer_cross_mesh_reductions and (
                    self.reduces_arguments or not _has_free_argument(op, sets)
                )
                if _is_marked(op) and (is_inferred or op.id in below_reduces):
                    _convert(op, context.semantics)


def _is_marked(op: Op) -> bool:
    """Return whether an op is marked and combines its two operands; a concatenation that is reduced does not."""
    if REDUCTION not in op.attributes or op.name == REDUCE or len(op.operands) != 2 or op.regions:
        return False
    return all(value.type == op.results[0].type for value in op.operands)


def _has_free_argument(op: Op, sets: SrcSets) -> bool:
    """Return whether an operand is on its meshes only because they use an argument of the program."""
    src_sets = [sets.of_value(value) for value in op.operands]
    return any(item and {origins for _, origins in item.meshes} == {(INFERRED_IN,)} for item in src_sets)


def word_of(op: Op | None) -> str:
    """Return the word of the reduction of an ``mpmd.reduce``; "" for another op."""
    if op is None or op.name != REDUCE:
        return ""
    return str(op.attributes["reduction"]).partition("<")[2].removesuffix(">")


def _below(reduce: Op) -> list[Op]:
    """Return the tree of equal marked ops that a reduce of the user ends, below ops with one operand."""
    value = reduce.operands[0]
    while True:
        op = value.defining_op
        if op is None or len(op.operands) != 1 or len(op.results) != 1 or REDUCTION in op.attributes:
            break
        value = op.operands[0]
    result: list[Op] = []
    stack: list[Value] = [value]
    mark = None if op is None else op.attributes.get(REDUCTION)
    while stack:
        op = stack.pop().defining_op
        if op is not None and mark is not None and op.attributes.get(REDUCTION) == mark:
            result.append(op)
            stack += op.operands
    return result


def _convert(op: Op, semantics: OpSemantics) -> None:
    program, word = op.program, str(op.attributes[REDUCTION]).partition("<")[2].removesuffix(">")
    operands: list[Value] = []
    flattened: list[Op] = []
    for value in op.operands:
        producer = value.defining_op
        if producer is not None and word_of(producer) == word:
            operands += producer.operands
            flattened.append(producer)
        else:
            operands.append(value)
    attributes: dict[str, Attribute] = {"reduction": reduction_attribute(word)}
    if combining_ops(program, word, semantics) != [op.name]:
        attributes[COMBINING_OP] = op.name
    attributes |= {name: op.attributes[name] for name in (SRC_SET, USE_SET) if name in op.attributes}
    new = Op(program, REDUCE, operands, [op.results[0].type], attributes)
    assert op.parent is not None
    op.parent.insert_before(op, new)
    op.results[0].replace_all_uses_with(new.results[0])
    op.erase()
    for producer in flattened:
        if producer.parent is not None and not producer.results[0].uses:
            producer.erase()

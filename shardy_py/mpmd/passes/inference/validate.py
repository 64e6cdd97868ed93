"""Errors where a program would need transfers that the user did not ask for.

Mirrors mpmd/transforms/import/infer_mesh_validation.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of, calls_of
from shardy_py.mpmd.dialect.fragments import mpmd_functions
from shardy_py.mpmd.dialect.op_names import CALL, REDUCTION, SRC_SET, UNASSIGN, USE_SET
from shardy_py.mpmd.dialect.origins import MeshSet
from shardy_py.mpmd.passes.inference.mesh_sets import blocks_of, get_set, is_meshless, set_of_argument, used_values
from shardy_py.mpmd.passes.inference.source_names import SourceNames
from shardy_py.mpmd.passes.inference.src_sets import SrcSets
from shardy_py.values import frozen

_ADD_TRANSFER = "Add an explicit transfer to fix this."
DEFAULT_LIMIT = 5


@frozen
class InferMeshValidateSrcSetNotEmptyPass:
    """Refuse ops whose operands are on different meshes.

    Args:
        error_limit: The largest number of errors; -1 for all.
    """

    name: ClassVar[str] = "mpmd-infer-mesh-validate-src-set-not-empty"

    error_limit: int = DEFAULT_LIMIT

    def run(self, program: Program, context: PassContext) -> None:
        """Check the ops of all functions.

        Raises:
            UnsupportedError: the operands of an op have no mesh in common.
        """
        sets, calls_by_name = SrcSets(program, context.semantics), calls_of(program)
        sources = SourceNames(program, calls_by_name)
        problems = [item for op in _meshless_ops(program) for item in _conflicts(op, sets, sources)]
        for name, calls in calls_by_name.items():
            if all(call.name == CALL for call in calls) and name in program.functions:
                problems += _conflicting_calls(program.functions[name], calls, sets)
        raise_some(problems, self.error_limit)


@frozen
class InferMeshValidateNoAdditionalTransfersNeededPass:
    """Refuse values that are used in a mesh in which they cannot be had.

    Args:
        error_limit: The largest number of errors; -1 for all.
    """

    name: ClassVar[str] = "mpmd-infer-mesh-validate-no-additional-transfers-needed"

    error_limit: int = DEFAULT_LIMIT

    def run(self, program: Program, context: PassContext) -> None:
        """Check the ops and arguments of all functions.

        Raises:
            UnsupportedError: a use needs a transfer.
        """
        problems: list[Diagnostic] = []
        calls = calls_of(program)
        for function in mpmd_functions(program):
            if function.attributes["sym_name"] in calls:
                for argument in block_of(function).arguments:
                    sets = [set_of_argument(function, argument.index, name) for name in (USE_SET, SRC_SET)]
                    problems += _missing(function, *sets)
            for block in blocks_of(function):
                for op in block.ops:
                    if is_meshless(op) or op.name == UNASSIGN:
                        problems += _missing(op, get_set(op.attributes, USE_SET), get_set(op.attributes, SRC_SET))
        raise_some(problems, self.error_limit)


def raise_some(problems: list[Diagnostic], limit: int) -> None:
    """Raise an error with the first problems; none without any.

    Raises:
        UnsupportedError: there are some.
    """
    if problems:
        raise UnsupportedError(*(problems if limit < 0 else problems[:limit]))


def _meshless_ops(program: Program) -> Iterator[Op]:
    for function in mpmd_functions(program):
        for block in blocks_of(function):
            yield from (op for op in block.ops if is_meshless(op))


def _conflicts(op: Op, sets: SrcSets, sources: SourceNames) -> Iterator[Diagnostic]:
    """Yield an error for an op whose operands have no mesh in common, unless one of them is such an op."""
    src_set, is_reduction = get_set(op.attributes, SRC_SET), REDUCTION in op.attributes
    if src_set is None or (src_set and not is_reduction):
        return
    values = used_values(op)
    operands = [item for value in values if (item := sets.of_value(value)) is not None]
    if any(not item for item in operands):
        return
    if is_reduction:
        # A reduction over meshes that is still an op: it was not inferred.
        if any(value.defining_op is not None and REDUCTION in value.defining_op.attributes for value in values):
            return
        src_set = operands[0] if operands else src_set
        for item in operands[1:]:
            src_set = src_set.intersection(item)
    if src_set:
        return
    shown = "; ".join(f"operand {number} comes from {sources.show(value)}" for number, value in enumerate(values))
    message = (
        "Mesh assignment is not possible for op as its operands are on conflicting meshes and thus we need to transfer "
        f"some of the operands. {_ADD_TRANSFER} The operands are on meshes: {shown}"
    )
    option = "infer-cross-mesh-reductions=true" if is_reduction else "infer-transfers=true"
    yield Diagnostic("mesh-conflict", message, op.location, op.name, hint=f"or set {option}")


def _conflicting_calls(function: Op, calls: Sequence[Op], sets: SrcSets) -> Iterator[Diagnostic]:
    """Yield an error for each argument that calls of a function pass from meshes that have none in common."""
    name = str(function.attributes["sym_name"]).removeprefix("shardy_mpmd")
    for argument in block_of(function).arguments:
        src_set = set_of_argument(function, argument.index, SRC_SET)
        passed = [sets.of_value(call.operands[argument.index]) for call in calls]
        if src_set is None or src_set or any(item is not None and not item for item in passed):
            continue
        shown = "; ".join(f"{{{item.show()}}}" for item in dict.fromkeys(passed) if item is not None)
        message = (
            f'Mesh assignment is not possible for arg{argument.index} of mpmd.call "{name}" as its calls pass it from '
            f"conflicting meshes: {shown}. {_ADD_TRANSFER}"
        )
        yield Diagnostic("mesh-conflict", message, function.location, function.name, hint="or set infer-transfers=true")


def _missing(op: Op, use_set: MeshSet | None, src_set: MeshSet | None) -> Iterator[Diagnostic]:
    if not use_set or src_set is None:
        return
    if all(name in src_set or "*" in src_set for name in use_set.names):
        return
    subject = "op" if op.name != FUNCTION else "argument"
    message = (
        f"Mesh assignment is not possible for {subject} as it is used in {{{use_set.show()}}} but it can only be "
        f"placed on {{{src_set.show()}}} without introducing a transfer. {_ADD_TRANSFER}"
    )
    yield Diagnostic("mesh-conflict", message, op.location, op.name, hint="or set infer-transfers=true")

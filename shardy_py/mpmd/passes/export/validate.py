"""Checks of programs that are about to be exported: fragments, reshards and transfers that nobody wanted.

Mirrors mpmd/transforms/export/validate_no_inferred_fragments.cc, validate_no_reshards.cc,
validate_no_backward_deps.cc and validate_no_param_transfers.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from shardy_py.errors import Diagnostic
from shardy_py.frontends.mlir.native_reader import argument_names
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import attributes_at, block_of, callee_name, callee_of, return_of
from shardy_py.mpmd.dialect.fragments import (
    function_around,
    is_inferred_fragment,
    is_inter_mesh,
    mesh_of,
    mpmd_functions,
    origins_of,
)
from shardy_py.mpmd.dialect.op_names import FRAGMENT_CALL, INFERRED_BY, TRANSFER
from shardy_py.mpmd.dialect.types import mesh_tensor_of, require_mesh_tensor
from shardy_py.mpmd.passes.named.transfers import comes_before_mesh
from shardy_py.mpmd.passes.named.validate_named_ops import report
from shardy_py.sharding.axes import quote
from shardy_py.values import frozen

EXPECTED_MAKERS = frozenset(
    (
        "extract_reshards",
        "infer_mesh_convert_reduce_ops",
        "infer_mesh_wrap_meshless_ops",
        "infer_mesh_wrap_resultless_ops",
        "introduce_transfers",
        "uniquify",
    )
)
"""The passes whose fragments may stay: nothing that they could be merged with need exist."""


@frozen
class ValidateNoInferredFragmentsPass:
    """Report fragments that no named computation asked for, and that were not merged.

    Args:
        fail_on_inferred_fragments: Whether this is an error.
    """

    name: ClassVar[str] = "mpmd-validate-no-inferred-fragments"

    fail_on_inferred_fragments: bool = True

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the fragments of all functions.

        Raises:
            VerificationError: there is such a fragment, and the option is set.
        """
        report(self._problems(program), context, fails=self.fail_on_inferred_fragments)

    def _problems(self, program: Program) -> Iterator[Diagnostic]:
        for op in _top_level(program):
            makers = [str(item) for item in op.attributes.get(INFERRED_BY, ())]
            if is_inferred_fragment(op) and makers and not EXPECTED_MAKERS.issuperset(makers):
                message = f"Inferred fragment has not been merged (inferred by {', '.join(makers)})."
                hint = "give the ops in it a name, or fail-on-inferred-fragments=false"
                yield Diagnostic("inferred-fragment", message, op.location, op.name, hint)


@frozen
class ValidateNoReshardsPass:
    """Report calls of functions that only change shardings.

    Args:
        fail_on_reshard_only_fragments: Whether this is an error.
    """

    name: ClassVar[str] = "mpmd-validate-no-reshards"

    fail_on_reshard_only_fragments: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the calls in all functions.

        Raises:
            VerificationError: there is such a call, and the option is set.
        """
        report(self._problems(program), context, fails=self.fail_on_reshard_only_fragments)

    def _problems(self, program: Program) -> Iterator[Diagnostic]:
        for op in _top_level(program):
            if op.name != FRAGMENT_CALL or not _reshards_only(op):
                continue
            names = TensorNames(function_around(op))
            message = (
                f"Detected reshard-only fragment '{callee_name(op)}'. This usually indicates an unexpected reshard. "
                f"Operands: {', '.join(map(names.show, op.operands))}. "
                f"Results: {', '.join(map(names.show, op.results))}"
            )
            hint = "give the tensor one sharding on both sides"
            yield Diagnostic("reshard-only-fragment", message, op.location, op.name, hint)


def _reshards_only(call: Op) -> bool:
    """Return whether a function returns its arguments, with another sharding."""
    block = block_of(callee_of(call))
    if block.first is not block.last:
        return False
    returned = return_of(callee_of(call)).operands
    pairs = zip((call.operands[value.index] for value in returned), call.results, strict=True)
    return any(source.type != target.type for source, target in pairs)


class TensorNames:
    """Names of arguments and results of a function, as its locations and attributes have them."""

    def __init__(self, function: Op) -> None:
        arguments = block_of(function).arguments
        names = argument_names(function) or ("",) * len(arguments)
        self._names = {value.id: name for value, name in zip(arguments, names, strict=True) if name}
        returned = return_of(function).operands
        for value, item in zip(returned, attributes_at(function, "res_attrs", len(returned)), strict=True):
            if "jax.result_info" in item:
                self._names.setdefault(value.id, str(item["jax.result_info"]))

    def of(self, value: Value) -> str:
        """Return the name of a value, "" where it has none."""
        return self._names.get(value.id, "")

    def show(self, value: Value) -> str:
        """Return the sharding, the shape and the name of a value on a mesh."""
        type_ = mesh_tensor_of(value)
        if type_ is None:
            return str(value.type)
        sharding = "Replicated" if type_.sharding is None else f"#sdy.sharding{type_.sharding}"
        name = self.of(value)
        return f"{sharding} {str(type_.tensor).removeprefix('tensor')}" + (f" loc({quote(name)})" if name else "")


@frozen
class ValidateNoBackwardDepsPass:
    """Report values of a forward-only program that go to an earlier mesh.

    Args:
        fail_on_backward_deps: Whether this is an error.
    """

    name: ClassVar[str] = "mpmd-validate-no-backward-deps"

    fail_on_backward_deps: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the calls in all functions.

        Raises:
            VerificationError: there is such a value, or a backward fragment, and the option is set.
        """
        if self.fail_on_backward_deps:
            report(self._problems(program), context, fails=True)

    def _problems(self, program: Program) -> Iterator[Diagnostic]:
        for function in mpmd_functions(program):
            calls = [op for op in block_of(function).ops if op.name == FRAGMENT_CALL]
            if any(origin.transpose_count for op in calls for origin in origins_of(op)):
                message = "Expected forward-only program but found non-forward fragments."
                hint = "check backward dependencies of inference programs only"
                yield Diagnostic("not-forward-only", message, function.location, function.name, hint)
                continue
            for op in calls:
                for producer in _producing_calls(op):
                    if comes_before_mesh(mesh_of(op), mesh_of(producer)):
                        yield _backward(producer, op)


def _backward(producer: Op, op: Op) -> Diagnostic:
    first, second = (f'fragment "{callee_name(item)}" mesh="{mesh_of(item)}"' for item in (producer, op))
    message = (
        "Detected backward dependency but expected forward-only pipeline since there are no transpose fragments: "
        f"{first} produces a value consumed by {second}. In a forward-only pipeline, dependencies must go from "
        "earlier meshes to later meshes."
    )
    return Diagnostic("backward-dependency", message, op.location, op.name, "order the meshes as the data flow")


def _producing_calls(op: Op) -> list[Op]:
    """Return the calls whose results a call uses, directly or through transfers."""
    result: dict[int, Op] = {}
    for value in op.operands:
        producer = value.defining_op
        while producer is not None and producer.name == TRANSFER:
            producer = producer.operands[0].defining_op
        if producer is not None and producer.name == FRAGMENT_CALL:
            result[producer.id] = producer
    return list(result.values())


@frozen
class ValidateNoParamTransfersPass:
    """Report parameters that are transferred between meshes; they are known by the names of arguments.

    Args:
        fail_on_param_transfers: Whether this is an error.
        param_transfer_pattern: What the name of a parameter contains.
    """

    name: ClassVar[str] = "mpmd-validate-no-param-transfers"

    fail_on_param_transfers: bool = False
    param_transfer_pattern: str = "params['transformer"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the transfers in all functions.

        Raises:
            VerificationError: there is such a transfer, and the option is set.
        """
        report(self._problems(program), context, fails=self.fail_on_param_transfers)

    def _problems(self, program: Program) -> Iterator[Diagnostic]:
        for function in mpmd_functions(program):
            names = TensorNames(function)
            for op in block_of(function).ops:
                if op.name != TRANSFER or not is_inter_mesh(op):
                    continue
                source = op.operands[0]
                name = names.of(source) if source.is_block_argument else ""
                if not self.param_transfer_pattern or self.param_transfer_pattern not in name:
                    continue
                meshes = [require_mesh_tensor(value).mesh for value in (source, op.results[0])]
                message = (
                    f'Detected cross-mesh transfer of a parameter matching "{self.param_transfer_pattern}" from mesh '
                    f'"{meshes[0]}" to "{meshes[1]}". JAX locations: ["{name}"]'
                )
                hint = "assign the argument to the mesh that uses it"
                yield Diagnostic("parameter-transfer", message, op.location, op.name, hint)


def _top_level(program: Program) -> Iterator[Op]:
    for function in mpmd_functions(program):
        yield from block_of(function).ops

"""Make the outputs of a function distinct values, each of which can have its own sharding and buffer.

Mirrors mpmd/transforms/common/uniquify_function_inputs_outputs.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of, return_of
from shardy_py.mpmd.dialect.fragments import inferred_by, mpmd_functions, new_fragment, new_transfer
from shardy_py.mpmd.dialect.types import mesh_tensor_of, require_mesh_tensor
from shardy_py.values import frozen

UNIQUIFY = "uniquify"


@frozen
class UniquifyFunctionInputsOutputsPass:
    """Copy the arguments that a function returns, and what it returns more than once.

    Args:
        use_transfer_instead_of_fragment: Whether each copy is a transfer within its mesh; by default one fragment per
            mesh makes all copies there.
    """

    name: ClassVar[str] = "mpmd-uniquify-function-inputs-outputs"

    use_transfer_instead_of_fragment: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Copy the outputs of all functions."""
        for function in mpmd_functions(program):
            if self.use_transfer_instead_of_fragment:
                _copy_by_transfers(return_of(function))
            else:
                _copy_by_fragments(function)


def _copy_by_transfers(terminator: Op) -> None:
    """Transfer each returned argument, and each value from its second output on."""
    block, seen = terminator.parent, set()
    assert block is not None
    for number, value in enumerate(list(terminator.operands)):
        if mesh_tensor_of(value) is not None and (value.is_block_argument or value.id in seen):
            transfer = new_transfer(terminator.program, value, require_mesh_tensor(value))
            terminator.set_operand(number, block.insert_before(terminator, transfer).results[0])
        seen.add(value.id)


def _copy_by_fragments(function: Op) -> None:
    """Let a fragment of each mesh return its arguments, once for each output."""
    terminator, block = return_of(function), block_of(function)
    outputs: dict[int, list[int]] = {}
    for number, value in enumerate(terminator.operands):
        if mesh_tensor_of(value) is not None:
            outputs.setdefault(value.id, []).append(number)
    values = {value.id: value for value in terminator.operands}
    by_mesh: dict[str, list[Value]] = {}
    for id_, numbers in outputs.items():
        if values[id_].is_block_argument or len(numbers) > 1:
            by_mesh.setdefault(require_mesh_tensor(values[id_]).mesh, []).append(values[id_])
    for mesh, copied in by_mesh.items():
        positions = [(argument, number) for argument, value in enumerate(copied) for number in outputs[value.id]]

        def fill(inner: Block, positions: list[tuple[int, int]] = positions) -> list[Value]:
            return [inner.arguments[argument] for argument, _ in positions]

        types = [copied[argument].type for argument, _ in positions]
        fragment = new_fragment(function.program, mesh, copied, types, attributes=inferred_by(UNIQUIFY), body=fill)
        block.insert_before(terminator, fragment)
        for value, (_, number) in zip(fragment.results, positions, strict=True):
            terminator.set_operand(number, value)

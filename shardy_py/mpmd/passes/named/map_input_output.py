"""The meshes that the user chose for arguments and results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import Type
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import attributes_at, block_of, return_of, set_returned, with_signature
from shardy_py.mpmd.dialect.fragments import mpmd_functions, new_assign, new_unassign
from shardy_py.mpmd.dialect.types import require_topology
from shardy_py.mpmd.passes.assignments import MeshAssignment, check_meshes, indexed, parse_assignments
from shardy_py.values import frozen

USER_IN = "user_in"
USER_OUT = "user_out"
MEMORY_KIND = "mhlo.memory_kind"


@frozen
class MapInputOutputToMeshPass:
    """Give the arguments and results of entry points the meshes that the user chose.

    Args:
        input_assignment: The meshes of arguments by number.
        output_assignment: The meshes of results by number.
    """

    name: ClassVar[str] = "mpmd-map-input-output-to-mesh"

    input_assignment: tuple[str, ...] = ()
    output_assignment: tuple[str, ...] = ()

    def run(self, program: Program, context: PassContext) -> None:
        """Map the arguments and results of public functions with a topology.

        Raises:
            OptionError: an assignment is malformed, or names a mesh that is not in the topology.
        """
        inputs = indexed(parse_assignments(self.input_assignment))
        outputs = indexed(parse_assignments(self.output_assignment))
        if not inputs and not outputs:
            return
        for function in mpmd_functions(program):
            if function.attributes.get("sym_visibility", "public") != "public":
                continue
            for assignments in (inputs, outputs):
                check_meshes(
                    {f"number {number}": value for number, value in assignments.items()}, require_topology(function)
                )
            _map(function, inputs, outputs)


def _map(function: Op, inputs: Mapping[int, MeshAssignment], outputs: Mapping[int, MeshAssignment]) -> None:
    program = function.program
    returned = list(return_of(function).operands)
    arguments = block_of(function).arguments
    argument_types = [_type(value, inputs.get(value.index)) for value in arguments]
    result_types = [_type(value, outputs.get(number)) for number, value in enumerate(returned)]
    argument_attributes = attributes_at(function, "arg_attrs", len(arguments))
    result_attributes = attributes_at(function, "res_attrs", len(returned))
    for items, assignments in ((argument_attributes, inputs), (result_attributes, outputs)):
        for number, item in enumerate(items):
            if number in assignments and assignments[number].memory_kind:
                item.pop(MEMORY_KIND, None)
    new, old_arguments = with_signature(
        function,
        argument_types,
        result_types,
        argument_attributes=argument_attributes,
        result_attributes=result_attributes,
    )
    block, anchor = block_of(new), None
    for old, value in zip(old_arguments, block.arguments, strict=True):
        if value.index in inputs and isinstance_mesh(argument_types[value.index]):
            anchor = block.insert_after(anchor, new_unassign(program, value, USER_IN))
            old.replace_all_uses_with(anchor.results[0])
        else:
            old.replace_all_uses_with(value)
    terminator = return_of(new)
    values = list(terminator.operands)
    for number, assignment in sorted(outputs.items()):
        if number < len(values) and not isinstance_mesh(values[number].type):
            type_ = assignment.type_of(values[number].type)
            values[number] = block.insert_before(
                terminator, new_assign(program, values[number], type_, USER_OUT)
            ).results[0]
    set_returned(new, values)
    function.erase()


def _type(value: Value, assignment: MeshAssignment | None) -> Type:
    if assignment is None or isinstance_mesh(value.type):
        return value.type
    return assignment.type_of(value.type).type


def isinstance_mesh(type_: object) -> bool:
    """Return whether a type is one of tensors on a mesh."""
    return str(type_).startswith("!mpmd.mesh_tensor<")

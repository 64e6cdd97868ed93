"""Arguments and results that must be on one mesh.

Mirrors mpmd/transforms/import/infer_mesh_assignment.cc and enforce_equisharding.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import (
    attributes_at,
    block_of,
    calls_of,
    return_of,
    set_returned,
    with_returned,
    with_signature,
)
from shardy_py.mpmd.dialect.fragments import mpmd_functions, new_assign, new_transfer, replace_arguments
from shardy_py.mpmd.dialect.op_names import SRC_SET, USE_SET
from shardy_py.mpmd.dialect.origins import MeshSet
from shardy_py.mpmd.dialect.types import MeshTensor, mesh_tensor_of
from shardy_py.mpmd.passes.inference.mesh_sets import get_set, preferred_mesh, set_of_argument
from shardy_py.mpmd.passes.inference.src_sets import SrcSets
from shardy_py.values import frozen

_ORIGINS = ("io_constraint_in", "io_constraint_out")
_Pairs = tuple[tuple[int, int], ...]


def parse_constraints(items: Iterable[str]) -> _Pairs:
    """Return pairs of the numbers of an argument and a result.

    >>> parse_constraints(["0:1"])
    ((0, 1),)

    Raises:
        OptionError: an item is not two numbers with a colon in between.
    """
    pairs = []
    for item in items:
        first, colon, second = item.strip().partition(":")
        if not (colon and first.isdecimal() and second.isdecimal()):
            message, hint = f"{item!r} is not a valid constraint", "write argument:result, such as 0:1"
            raise OptionError(Diagnostic("invalid-constraint", message, hint=hint))
        pairs.append((int(first), int(second)))
    return tuple(pairs)


@frozen
class InferMeshAssignUsingInputOutputConstraintsPass:
    """Assign an argument and a result to one mesh, if neither has one that the other cannot have.

    Args:
        constraints: Pairs ``argument:result`` by number.
    """

    name: ClassVar[str] = "mpmd-infer-mesh-assign-using-input-output-constraints"

    constraints: tuple[str, ...] = ()

    def run(self, program: Program, context: PassContext) -> None:
        """Assign the pairs of each entry point.

        Raises:
            OptionError: a constraint is malformed, or names an argument or result that does not exist.
        """
        for function, pairs in _constrained_functions(program, self.constraints):
            sets = SrcSets(program, context.semantics)
            for argument, result in pairs:
                mesh = _choose(function, argument, result, sets)
                if mesh is not None:
                    function = _assign(function, argument, result, mesh)


def _constrained_functions(program: Program, constraints: Iterable[str]) -> Iterator[tuple[Op, _Pairs]]:
    """Yield the entry points that constraints hold for, with the pairs of numbers.

    Raises:
        OptionError: a constraint is malformed, or names an argument or result that does not exist.
    """
    pairs = parse_constraints(constraints)
    called = calls_of(program)
    for function in mpmd_functions(program) if pairs else ():
        if function.attributes["sym_name"] not in called:
            check_numbers(function, pairs)
            yield function, pairs


def check_numbers(function: Op, pairs: Iterable[tuple[int, int]]) -> None:
    """Check that arguments and results of a function exist.

    Raises:
        OptionError: one does not.
    """
    counts = len(block_of(function).arguments), len(return_of(function).operands)
    for pair in pairs:
        for number, count, word in zip(pair, counts, ("arguments", "results"), strict=True):
            if number >= count:
                message = f"the constraint {pair[0]}:{pair[1]} does not fit a function with {count} {word}"
                raise OptionError(Diagnostic("invalid-constraint", message, function.location, hint="count from 0"))


def _choose(function: Op, argument: int, result: int, sets: SrcSets) -> str | None:
    """Return the mesh of a pair: that of an end, else one that both ends use, else one that an end uses or may have."""
    source, target = block_of(function).arguments[argument], return_of(function).operands[result]
    types = mesh_tensor_of(source), mesh_tensor_of(target)
    if None not in types:
        return None
    argument_uses = set_of_argument(function, argument, USE_SET) or MeshSet()
    producer, available = target.defining_op, sets.of_value(target)
    used = (get_set(producer.attributes, USE_SET) if producer is not None else argument_uses) or MeshSet()
    if types[0] is not None:
        return types[0].mesh if available is None or types[0].mesh in available else None
    if types[1] is not None:
        return types[1].mesh
    if not argument_uses:
        return preferred_mesh(used, None) or preferred_mesh(None, available)
    common = MeshSet(tuple(item for item in used.meshes if item[0] in argument_uses))
    if not common:
        common = argument_uses if available is None else argument_uses.intersection(available)
    return preferred_mesh(common, None)


def _assign(function: Op, argument: int, result: int, mesh: str) -> Op:
    """Return the function with an argument and a result on a mesh; ends that have one stay as they are."""
    block, program = block_of(function), function.program
    argument_types = [value.type for value in block.arguments]
    values = list(return_of(function).operands)
    if mesh_tensor_of(argument_types[argument]) is None:
        argument_types[argument] = MeshTensor(mesh, argument_types[argument]).type  # type: ignore[arg-type]
    if mesh_tensor_of(values[result]) is None:
        type_ = MeshTensor(mesh, values[result].type)  # type: ignore[arg-type]
        assign = new_assign(program, values[result], type_, _ORIGINS[1])
        values[result] = block.insert_before(return_of(function), assign).results[0]
    set_returned(function, values)
    new, old_arguments = with_signature(
        function,
        argument_types,
        [value.type if value.owner is not block else argument_types[value.index] for value in values],
        argument_attributes=_without_sets(function, "arg_attrs", argument_types, argument),
        result_attributes=attributes_at(function, "res_attrs", len(values)),
    )
    replace_arguments(old_arguments, new, _ORIGINS[0])
    function.erase()
    return new


def _without_sets(function: Op, where: str, types: Sequence[object], number: int) -> list[dict[str, Any]]:
    items = attributes_at(function, where, len(types))
    items[number] = {name: value for name, value in items[number].items() if name not in (USE_SET, SRC_SET)}
    return items


@frozen
class EnforceInputOutputEquishardingPass:
    """Transfer a result to the type of the argument that it must be like.

    Args:
        constraints: Pairs ``argument:result`` by number.
    """

    name: ClassVar[str] = "mpmd-enforce-input-output-equisharding"

    constraints: tuple[str, ...] = ()

    def run(self, program: Program, context: PassContext) -> None:
        """Transfer the results of each entry point.

        Raises:
            OptionError: a constraint is malformed, or names an argument or result that does not exist.
        """
        for function, pairs in _constrained_functions(program, self.constraints):
            _transfer(function, pairs)


def _transfer(function: Op, pairs: Iterable[tuple[int, int]]) -> None:
    block, values = block_of(function), list(return_of(function).operands)
    for argument, result in pairs:
        argument_type = mesh_tensor_of(block.arguments[argument])
        if argument_type is not None and values[result].type != argument_type.type:
            transfer = new_transfer(function.program, values[result], argument_type)
            values[result] = block.insert_before(return_of(function), transfer).results[0]
    with_returned(function, values)

"""Sources of values without a mesh, in the words of the user: inputs and named computations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardy_py.frontends.mlir.native_reader import argument_names
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.mpmd.dialect.calls import block_of, callee_name
from shardy_py.mpmd.dialect.fragments import is_fragment, origins_of
from shardy_py.mpmd.dialect.op_names import CALL, ORIGIN, SRC_SET, UNASSIGN
from shardy_py.mpmd.dialect.origins import MeshSet
from shardy_py.mpmd.dialect.types import mesh_tensor_of
from shardy_py.mpmd.passes.inference.mesh_sets import get_set, set_of_argument, used_values


class SourceNames:
    """The sources of values: inputs of entry points, and what was taken off a mesh.

    Args:
        program: The program.
        calls: The calls of its functions by name.
    """

    def __init__(self, program: Program, calls: Mapping[str, Sequence[Op]]) -> None:
        self._functions = program.functions
        self._calls = calls

    def show(self, value: Value) -> str:
        """Return the sources of a value with their meshes: ``Input "x": m1[user_in], named_computation "f": m2[f]``."""
        names: dict[str, None] = {}
        stack, seen = [value], set()
        while stack:
            current = stack.pop()
            if current.id in seen:
                continue
            seen.add(current.id)
            op = current.defining_op
            if op is None:
                passed = self._passed_values(current)
                stack += passed
                if not passed:
                    names[self._input(current)] = None
            elif op.name == UNASSIGN:
                names[self._name_of_unassigned(op)] = None
            elif op.name == CALL:
                terminator = block_of(self._functions[callee_name(op)]).terminator
                stack += () if terminator is None else (terminator.operands[current.index],)
            else:
                stack += reversed(used_values(op))
        return ", ".join(names) or "constants"

    def _passed_values(self, argument: Value) -> list[Value]:
        """Return what the calls of a function pass for its argument."""
        function = argument.owning_op
        calls = self._calls.get(str(function.attributes.get("sym_name")), []) if function.name == FUNCTION else []
        return [call.operands[argument.index] for call in calls]

    def _input(self, argument: Value) -> str:
        function = argument.owning_op
        type_ = mesh_tensor_of(argument)
        meshes = set_of_argument(function, argument.index, SRC_SET) if type_ is None else MeshSet.of(type_.mesh)
        return _with_meshes(f"Input {_name(argument)}", meshes)

    def _name_of_unassigned(self, op: Op) -> str:
        """Return the words for what an unassign takes off its mesh."""
        source, meshes = op.operands[0], get_set(op.attributes, SRC_SET)
        producer = source.defining_op
        if producer is not None and is_fragment(producer) and origins_of(producer):
            names = ", ".join(str(origin) for origin in origins_of(producer))
            return _with_meshes(f"named_computation {names}", meshes)
        if producer is None:
            return _with_meshes(f"Input {_name(source)}", meshes)
        return _with_meshes(f"{op.attributes.get(ORIGIN) or producer.name}", meshes)


def _name(argument: Value) -> str:
    function = argument.owning_op
    names = argument_names(function) if function.name == FUNCTION else ()
    return f'"{names[argument.index]}"' if names and names[argument.index] else f"#{argument.index}"


def _with_meshes(text: str, meshes: MeshSet | None) -> str:
    return f"{text}: {meshes.show()}" if meshes is not None else text

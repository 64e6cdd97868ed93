"""Running of programs over several meshes: each fragment on its mesh, transfers as copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from attrs import field

from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.frontends.mlir import import_module, parse_module, print_module, write_back
from shardy_py.ir.graph.attributes import symbols_in
from shardy_py.ir.graph.op_names import MESH, RETURN
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of, callee_name
from shardy_py.mpmd.dialect.fragments import mesh_of
from shardy_py.mpmd.dialect.op_names import FRAGMENT_CALL, MESH_SHAPE, TOPOLOGY, TRANSFER
from shardy_py.mpmd.dialect.types import MeshTensor, mesh_tensor_of, require_mesh_tensor
from shardy_py.mpmd.passes.export.lower_to_fragment_calls import LowerToFragmentCallsPass
from shardy_py.plugins.type_definition import give_shapes
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.run import run_on_attributes
from shardy_py.values import define, frozen

if TYPE_CHECKING:
    from shardy_py.mpmd.pipeline_program import PipelineProgram

_RESERVED = "reserved_hbm_bytes"


@frozen
class Step:
    """A step of a program at its top level: a call of a function on a mesh, a transfer, or the return.

    Args:
        kind: The name of the op.
        function: The name of the function of a call, else "".
        mesh: The mesh of a call, or the target of a transfer.
        operands: The ids of the values that it uses.
        results: The ids of the values that it makes.
    """

    kind: str
    function: str
    mesh: str
    operands: tuple[int, ...]
    results: tuple[int, ...]


@frozen(eq=False)
class LoweredSteps:
    """The steps of a program, and what they call.

    Attributes:
        steps: The steps, in order.
        arguments: The ids of the arguments, with their meshes.
        types: The types of all values that are tensors on meshes, by their ids.
        texts: Function to the module with it as main.
    """

    steps: tuple[Step, ...]
    arguments: tuple[tuple[int, str], ...]
    types: Mapping[int, MeshTensor]
    texts: Mapping[str, str]

    @classmethod
    def of(cls, source: PipelineProgram) -> LoweredSteps:
        """Return the steps of a program, whose fragments become functions."""
        program = import_module(parse_module(source.text))
        give_shapes(program, source.registry)
        run_on_attributes(program, [LowerToFragmentCallsPass()], PassContext(source.registry))
        text = print_module(write_back(program))
        block = block_of(import_module(parse_module(text)).functions["main"])
        steps = tuple(map(_step, block.ops))
        meshes = {step.function: step.mesh for step in steps if step.function}
        values = (*block.arguments, *(value for op in block.ops for value in op.results))
        types = {value.id: mesh_tensor_of(value) for value in values}
        return cls(
            steps,
            tuple((value.id, require_mesh_tensor(value).mesh) for value in block.arguments),
            {id_: type_ for id_, type_ in types.items() if type_ is not None},
            {name: _function_text(text, name, source.topology.mesh(mesh)) for name, mesh in meshes.items()},
        )


class Runtime(Protocol):
    """Devices of meshes, or a simulation of them: runs functions on meshes and moves arrays between them."""

    def function(self, text: str, mesh: str) -> Callable[..., Any]:
        """Return what runs the main function of an MLIR module on a mesh: arrays in, a sequence of arrays out."""
        ...

    def transfer(self, value: Any, mesh: str) -> Any:
        """Return an array on a mesh."""
        ...


@define(eq=False)
class PipelineExecution:
    """A program over several meshes with what runs it.

    Calls are started in the order of the program. JAX does not wait for them: meshes work at the same time.

    Attributes:
        steps: The steps of the program.
        runtime: What runs functions and transfers.
        arguments: The ids of the arguments, with their meshes.
    """

    steps: tuple[Step, ...]
    runtime: Runtime
    arguments: tuple[tuple[int, str], ...]
    _texts: Mapping[str, str]
    _functions: dict[str, Callable[..., list[Any]]] = field(factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, source: PipelineProgram, runtime: Runtime) -> PipelineExecution:
        """Return the execution of a program."""
        lowered = LoweredSteps.of(source)
        return cls(lowered.steps, runtime, lowered.arguments, lowered.texts)

    def __call__(self, *arguments: Any) -> list[Any]:
        """Run the program.

        Args:
            arguments: One array per argument, of the global shape.

        Returns:
            One array per result, on its mesh.

        Raises:
            OptionError: not one array per argument, or one of another shape or dtype.
        """
        if len(arguments) != len(self.arguments):
            message = f"expected {len(self.arguments)} arguments, got {len(arguments)}"
            raise OptionError(Diagnostic("argument-count", message, hint="give one array per argument of main"))
        values: dict[int, Any] = {id_: value for (id_, _), value in zip(self.arguments, arguments, strict=True)}
        meshes = dict(self.arguments)
        last_uses = self._last_uses()
        for number, step in enumerate(self.steps):
            operands = [values[id_] for id_ in step.operands]
            if step.kind == RETURN:
                return [self.runtime.transfer(values[id_], meshes[id_]) for id_ in step.operands]
            if step.kind == TRANSFER:
                results = [self.runtime.transfer(operands[0], step.mesh)]
            else:
                results = self._function(step)(*operands)
            for id_, value in zip(step.results, results, strict=True):
                values[id_], meshes[id_] = value, step.mesh
            for id_ in step.operands:
                if last_uses[id_] == number:
                    values.pop(id_, None)
        raise UnsupportedError(Diagnostic("no-return", "the main function has no return"))

    def _last_uses(self) -> dict[int, int]:
        return {id_: number for number, step in enumerate(self.steps) for id_ in step.operands}

    def _function(self, step: Step) -> Callable[..., Any]:
        """Return a function on its mesh, partitioned when it is called first."""
        if step.function not in self._functions:
            self._functions[step.function] = self.runtime.function(self._texts[step.function], step.mesh)
        return self._functions[step.function]


def _step(op: Op) -> Step:
    """Return the step that an op is.

    Raises:
        UnsupportedError: it is not a call of a fragment's function, a transfer or the return.
    """
    if op.name not in (FRAGMENT_CALL, TRANSFER, RETURN):
        message = "only calls of fragments and transfers can run at the top level"
        raise UnsupportedError(Diagnostic("unknown-step", message, op.location, op.name))
    function = callee_name(op) if op.name == FRAGMENT_CALL else ""
    mesh = mesh_of(op) if function else ""
    if op.name == TRANSFER:
        mesh = require_mesh_tensor(op.results[0]).mesh
    ids = tuple(tuple(value.id for value in values) for values in (op.operands, op.results))
    return Step(op.name, function, mesh, *ids)


def _function_text(text: str, name: str, mesh: Mesh | None) -> str:
    """Return a module with one function as main, what it calls, and the mesh it runs on."""
    program = import_module(parse_module(text))
    functions = program.functions
    needed, waiting = {name}, [functions[name]]
    while waiting:
        for op in waiting.pop().walk():
            for other in symbols_in(op.attributes):
                if other in functions and other not in needed:
                    needed.add(other)
                    waiting.append(functions[other])
    for other, function in functions.items():
        if other not in needed:
            function.erase()
    for op in list(program.body.ops):
        if op.name == MESH and op.attributes["mesh"].axes and mesh is not None:
            op.attributes["mesh"] = mesh
            if "stablehlo.mesh" in op.attributes:
                del op.attributes["stablehlo.mesh"]
    main = functions[name]
    for attribute in (MESH_SHAPE, TOPOLOGY, _RESERVED):
        if attribute in main.attributes:
            del main.attributes[attribute]
    main.attributes["sym_name"], main.attributes["sym_visibility"] = "main", "public"
    return print_module(write_back(program))

"""Running of programs over several meshes on devices of JAX: each fragment on its mesh, transfers as copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field

from shardy_py.api.propagate import propagate
from shardy_py.api.registries import load_registry
from shardy_py.errors import Diagnostic, OptionError, UnsupportedError, require_library
from shardy_py.frontends.mlir import import_module, parse_module, print_module, write_back
from shardy_py.ir.graph.attributes import symbols_in
from shardy_py.ir.graph.op_names import MESH, RETURN
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of, callee_name
from shardy_py.mpmd.dialect.fragments import mesh_of
from shardy_py.mpmd.dialect.op_names import FRAGMENT_CALL, MESH_SHAPE, TOPOLOGY, TRANSFER
from shardy_py.mpmd.dialect.types import Topology, require_mesh_tensor
from shardy_py.mpmd.passes.export.lower_to_fragment_calls import LowerToFragmentCallsPass
from shardy_py.plugins import RuleOptions
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


@define(eq=False)
class PipelineExecution:
    """A program over several meshes with the devices that run it.

    Calls are started in the order of the program, and JAX does not wait for them: meshes work at the same time.

    Attributes:
        steps: The steps of the program.
        devices: The devices of each mesh.
        arguments: The ids of the arguments, with their meshes.
    """

    steps: tuple[Step, ...]
    devices: Mapping[str, tuple[Any, ...]]
    arguments: tuple[tuple[int, str], ...]
    _texts: Mapping[str, str]
    _topology: Topology
    _functions: dict[str, Callable[..., list[Any]]] = field(factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, source: PipelineProgram, devices: Mapping[str, Sequence[Any]] | None) -> PipelineExecution:
        """Return the execution of a program.

        Raises:
            OptionError: there are too few devices.
        """
        require_library("jax", purpose="running a program needs", extra="jax")
        registry = load_registry(options=RuleOptions())
        program = import_module(parse_module(source.text))
        give_shapes(program, registry)
        run_on_attributes(program, [LowerToFragmentCallsPass()], PassContext(registry))
        text = print_module(write_back(program))
        lowered = import_module(parse_module(text))
        main = lowered.functions["main"]
        steps = tuple(map(_step, block_of(main).ops))
        meshes = {step.function: step.mesh for step in steps if step.function}
        return cls(
            steps,
            _devices(source.topology, devices),
            tuple((value.id, require_mesh_tensor(value).mesh) for value in block_of(main).arguments),
            {name: _function_text(text, name, source.topology.mesh(mesh)) for name, mesh in meshes.items()},
            source.topology,
        )

    def __call__(self, *arguments: Any) -> list[Any]:
        """Run the program.

        Args:
            arguments: One array per argument, of the global shape; each is put on its mesh.

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
                return [self._placed(values[id_], meshes[id_]) for id_ in step.operands]
            if step.kind == TRANSFER:
                results = [self._transfer(operands[0], step.mesh)]
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

    def _function(self, step: Step) -> Callable[..., list[Any]]:
        """Return a function on the devices of its mesh, partitioned when it is called first."""
        if step.function not in self._functions:
            result = propagate(self._texts[step.function], self._topology.mesh(step.mesh))
            self._functions[step.function] = result.to_jax(self.devices[step.mesh]).run
        return self._functions[step.function]

    def _placed(self, value: Any, mesh: str) -> Any:
        """Return an array on its mesh: an argument that is a result may still be elsewhere."""
        import jax

        is_there = isinstance(value, jax.Array) and value.devices() <= set(self.devices[mesh])
        return value if is_there else self._transfer(value, mesh)

    def _transfer(self, value: Any, mesh: str) -> Any:
        """Return an array copied to the devices of a mesh, cut as it was where both meshes have its axes."""
        import jax
        from jax.sharding import NamedSharding, PartitionSpec

        target = self._jax_mesh(mesh)
        spec = PartitionSpec()
        sharding = getattr(value, "sharding", None)
        if isinstance(sharding, NamedSharding) and dict(sharding.mesh.shape) == dict(target.shape):
            spec = sharding.spec
        return jax.device_put(value, NamedSharding(target, spec))

    def _jax_mesh(self, name: str) -> Any:
        import numpy
        from jax.sharding import Mesh as JaxMesh

        mesh = self._topology.mesh(name) or Mesh()
        axes = {axis.name: axis.size for axis in mesh.axes} or {"device": 1}
        devices = numpy.array(self.devices[name], dtype=object).reshape(tuple(axes.values()))
        return JaxMesh(devices, tuple(axes))


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


def _devices(topology: Topology, devices: Mapping[str, Sequence[Any]] | None) -> dict[str, tuple[Any, ...]]:
    """Return the devices of each mesh.

    Raises:
        OptionError: there are too few.
    """
    import jax

    rest = list(jax.devices())
    result: dict[str, tuple[Any, ...]] = {}
    for name, mesh in topology.meshes:
        chosen = list((devices or {}).get(name, ())) or rest[: mesh.total_size]
        if len(chosen) < mesh.total_size:
            count = sum(mesh.total_size for _, mesh in topology.meshes)
            message = f"the mesh {name!r} needs {mesh.total_size} devices, and {len(chosen)} are left"
            hint = f"on a host, set XLA_FLAGS=--xla_force_host_platform_device_count={count} before JAX starts"
            raise OptionError(Diagnostic("too-few-devices", message, hint=hint))
        result[name] = tuple(chosen[: mesh.total_size])
        rest = [device for device in rest if device not in result[name]]
    return result


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

"""Programs over several meshes, ready to be looked at, simulated and run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import field

from shardy_py.api.registries import load_registry
from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.frontends.mlir import import_module, parse_module, print_module, to_module, write_back
from shardy_py.frontends.select import find_frontend
from shardy_py.ir.graph.op_names import MESH
from shardy_py.ir.graph.printing import print_program
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import is_fragment, mesh_of
from shardy_py.mpmd.dialect.op_names import TOPOLOGY
from shardy_py.mpmd.dialect.types import Topology
from shardy_py.mpmd.passes.assignments import check_meshes, parse_assignments
from shardy_py.mpmd.passes.pipelines import MpmdImportPipeline, MpmdOptimizePipeline
from shardy_py.mpmd.passes.propagation import MpmdShardingPropagationPipeline
from shardy_py.mpmd.passes.scheduling.pipeline_scheduler import unit_of
from shardy_py.mpmd.schedules.actions import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, Action
from shardy_py.mpmd.schedules.predicates import SPLITTING, find_predicate
from shardy_py.mpmd.schedules.schedule import PipelineSchedule
from shardy_py.mpmd.scopes import name_scopes
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.plugins.type_definition import give_shapes
from shardy_py.sharding.mesh import Mesh
from shardy_py.support.arguments import shown
from shardy_py.transforms.run import run_on_attributes
from shardy_py.values import define

if TYPE_CHECKING:
    from shardy_py.mpmd.execution import PipelineExecution

MAIN = "main"
_WITH_MODULES = ("mlir", "jax", "jit", "hlo")
"""The frontends whose programs are modules of MLIR."""


@define(eq=False, slots=False)
class PipelineProgram:
    """A program over several meshes: fragments in the order in which each mesh runs them, and transfers.

    Args:
        text: The program as MLIR of the mpmd dialect.
        topology: The meshes.
        warnings: What the passes had to say.
        registry: What is known about ops.
    """

    text: str
    topology: Topology
    warnings: tuple[Diagnostic, ...] = ()
    registry: Registry = field(factory=lambda: load_registry(options=RuleOptions()), repr=False)
    _execution: PipelineExecution | None = field(default=None, init=False, repr=False)

    @cached_property
    def program(self) -> Program:
        """The op graph of the text."""
        program = import_module(parse_module(self.text))
        give_shapes(program, self.registry)
        return program

    @property
    def main(self) -> Op:
        """The function with the fragments."""
        return self.program.functions[MAIN]

    def fragments(self, mesh: str) -> list[Op]:
        """Return the fragments of a mesh, in the order in which it runs them."""
        return [op for op in block_of(self.main).ops if is_fragment(op) and mesh_of(op) == mesh]

    def schedule(self) -> PipelineSchedule:
        """Return the order of the microbatches as a schedule; a mesh that has no stages is stage by its number.

        Raises:
            UnsupportedError: a mesh runs two fragments for one stage and microbatch.
        """
        orders = [tuple(self._actions(mesh)) for mesh in self.topology.device_meshes]
        return PipelineSchedule(tuple(orders))

    def _actions(self, mesh: str) -> Iterable[Action]:
        for op in self.fragments(mesh):
            unit = unit_of(op, self.topology)
            if unit is None:
                continue
            halves = {"keep": INPUT_GRADIENT, "drop": WEIGHT_GRADIENT, "": BACKWARD}
            kind = FORWARD if unit.is_forward else halves[unit.split]
            yield Action(kind, unit.mesh if unit.stage is None else unit.stage, unit.counter)

    def execution(self, devices: Mapping[str, Sequence[Any]] | None = None) -> PipelineExecution:
        """Return what runs the program on devices of JAX.

        Args:
            devices: The devices of each mesh; by default each mesh gets the next ones of ``jax.devices()``.

        Raises:
            OptionError: there are too few devices.
        """
        from shardy_py.mpmd.execution import PipelineExecution
        from shardy_py.mpmd.jax_runtime import JaxRuntime

        if devices is None and self._execution is not None:
            return self._execution
        execution = PipelineExecution.of(self, JaxRuntime.of(self.topology, devices, self.registry))
        if devices is None:
            self._execution = execution
        return execution

    def __call__(self, *arguments: Any) -> list[Any]:
        """Run the program on devices of JAX, with one array per argument; see `PipelineExecution.__call__`."""
        return self.execution()(*arguments)


def partition(
    source: Any,
    topology: Mapping[str, Any],
    assignment: Mapping[str, str] | Iterable[str],
    *,
    schedule: str = "1F1B",
    input_meshes: Mapping[int, str] | None = None,
    output_meshes: Mapping[int, str] | None = None,
    infer_transfers: bool = True,
    infer_cross_mesh_reductions: bool = True,
    plugins: Iterable[Any] = (),
) -> PipelineProgram:
    """Return a program with named computations as one over several meshes.

    Args:
        source: MLIR text, bytecode, a path or a module, what ``jax.jit(f).lower(...)`` returns, or a program of
            another frontend, such as a model of ONNX.
        topology: Name to mesh, a `Mesh` or a mapping of axis sizes, in order.
        assignment: Name of a computation, tensor or function to mesh: ``{"stage1": "m1"}``, also with a stage,
            ``"m1/0"``, or a memory, ``"m1#pinned_host"``. For ONNX, a name is the scope of nodes.
        schedule: The name of the schedule.
        input_meshes: Number of an argument to mesh; others are inferred.
        output_meshes: Number of a result to mesh.
        infer_transfers: Whether values may move between meshes where no name asks for it.
        infer_cross_mesh_reductions: Whether sums of values of several meshes become reductions over meshes.
        plugins: Dialects besides the installed ones.

    Raises:
        OptionError: a name, mesh or schedule is not known.
        UnsupportedError: an op has no mesh, or the schedule contradicts the data.
    """
    meshes = read_topology(topology)
    find_predicate(schedule)
    names = _items(assignment)
    assignments = dict(parse_assignments(names))
    check_meshes(assignments, meshes)
    registry = load_registry(options=RuleOptions(), plugins=tuple(plugins))
    program = import_module(parse_module(_text(source, assignments, registry)))
    warnings = list(give_shapes(program, registry))
    _give_topology(program, meshes)
    importing = MpmdImportPipeline(
        name_to_mesh_assignment=names,
        input_assignment=_items(input_meshes or {}),
        output_assignment=_items(output_meshes or {}),
        infer_transfers=infer_transfers,
        infer_cross_mesh_reductions=infer_cross_mesh_reductions,
        split_bwd_fragments=schedule in SPLITTING,
    )
    optimizing = MpmdOptimizePipeline(pipeline_schedule=schedule)
    context = PassContext(registry, warnings)
    passes = [*importing.passes, *optimizing.passes, *MpmdShardingPropagationPipeline().passes]
    run_on_attributes(program, passes, context)
    return PipelineProgram(print_module(write_back(program)), meshes, tuple(context.warnings), registry)


def _text(source: Any, names: Iterable[str], registry: Registry) -> str:
    """Return a source as MLIR; programs of other frontends have computations by the scopes of their ops."""
    frontend = find_frontend(source, registry)
    if frontend.name in _WITH_MODULES:
        return print_module(to_module(source), with_locations=True)
    program = frontend.import_program(source)
    name_scopes(program, names)
    return print_program(program)


def read_topology(topology: Mapping[str, Any]) -> Topology:
    """Return a topology of a mapping of names to meshes, axis sizes, or meshes of JAX.

    Raises:
        OptionError: it is not such a mapping, or it is empty.
    """
    if not isinstance(topology, Mapping) or not topology:
        message = f"the topology is {shown(topology)}, not a mapping of names to meshes"
        raise OptionError(Diagnostic("invalid-topology", message, hint='give {"m0": {"x": 2}, "m1": {"x": 2}}'))
    return Topology(tuple((name, _mesh(name, mesh)) for name, mesh in topology.items()))


def _mesh(name: str, mesh: Any) -> Mesh:
    if isinstance(mesh, Mesh):
        return mesh
    sizes = mesh if isinstance(mesh, Mapping) else getattr(mesh, "shape", None)
    if not isinstance(name, str) or not isinstance(sizes, Mapping):
        message = f"the mesh {shown(name)} is {shown(mesh)}, neither a mesh nor a mapping of axis sizes"
        raise OptionError(Diagnostic("invalid-topology", message, hint='give {"m0": {"x": 2}, "m1": {"x": 2}}'))
    return Mesh.of({axis: int(size) for axis, size in sizes.items()})


def _items(assignment: Mapping[Any, str] | Iterable[str]) -> tuple[str, ...]:
    if isinstance(assignment, Mapping):
        return tuple(f"{name}@{mesh}" for name, mesh in assignment.items())
    return tuple(assignment)


def _give_topology(program: Program, topology: Topology) -> None:
    """Put the topology on the main function, and its mesh into the module, which shardings refer to.

    Raises:
        UnsupportedError: there is no main function.
    """
    main = program.functions.get(MAIN)
    if main is None:
        message = "the module has no function named main"
        raise UnsupportedError(Diagnostic("no-main", message, hint="call the function that all meshes run main"))
    main.attributes[TOPOLOGY] = topology.attribute
    if not any(mesh.axes for mesh in program.meshes.values()):
        name = "mesh" if "mesh" not in program.meshes else "topology_mesh"
        op = Op(program, MESH, attributes={"sym_name": name, "mesh": topology.meshes[0][1]})
        program.body.insert_after(None, op)

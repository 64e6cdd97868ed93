"""Programs over several meshes, ready to be looked at, simulated and run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import field

from shardy_py.api.registries import load_registry
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.frontends.mlir import import_module, parse_module, print_module, write_back
from shardy_py.ir.graph.program import Op, Program
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import is_fragment, mesh_of
from shardy_py.mpmd.dialect.types import Topology
from shardy_py.mpmd.partitioning import MAIN, Partitioning
from shardy_py.mpmd.passes.scheduling.pipeline_scheduler import unit_of
from shardy_py.mpmd.schedules.actions import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, Action
from shardy_py.mpmd.schedules.schedule import PipelineSchedule
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.plugins.type_definition import give_shapes
from shardy_py.values import define

if TYPE_CHECKING:
    from shardy_py.api.given_shardings import InShardings
    from shardy_py.mpmd.execution import PipelineExecution
    from shardy_py.mpmd.explanations.explain import PipelineExplanation
    from shardy_py.mpmd.program_timeline import ProgramTimeline


@define(eq=False, slots=False)
class PipelineProgram:
    """A program over several meshes: fragments in the order in which each mesh runs them, and transfers.

    Args:
        text: The program as MLIR of the mpmd dialect.
        topology: The meshes.
        warnings: What the passes had to say.
        registry: What is known about ops.
        partitioning: The program that it comes from, with the options; `explain` runs it again.
    """

    text: str
    topology: Topology
    warnings: tuple[Diagnostic, ...] = ()
    registry: Registry = field(factory=lambda: load_registry(options=RuleOptions()), repr=False)
    partitioning: Partitioning | None = field(default=None, repr=False)
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

    def explain(self) -> PipelineExplanation:
        """Return why ops are on their meshes, and why there are transfers; ``str`` of it is readable.

        Raises:
            OptionError: the program was not made by `partition`.
        """
        from shardy_py.mpmd.explanations.explain import explain_pipeline

        if self.partitioning is None:
            message = "only a program that partition returned can be explained: it is partitioned again"
            raise OptionError(Diagnostic("not-partitioned", message, hint="shardy_py.mpmd.partition(...).explain()"))
        return explain_pipeline(self.partitioning)

    def simulate(self, machine: Any) -> ProgramTimeline:
        """Return what each mesh does when on a machine, and how much it holds; ``str`` of it is readable.

        Args:
            machine: The machine, by name or as a value: what each mesh is a part of.
        """
        from shardy_py.mpmd.program_timeline import simulate_program

        return simulate_program(self, machine)

    def __call__(self, *arguments: Any) -> list[Any]:
        """Run the program on devices of JAX, with one array per argument; see `PipelineExecution.__call__`."""
        return self.execution()(*arguments)


def partition(
    source: Any,
    topology: Mapping[str, Any],
    assignment: Mapping[str, str] | Iterable[str],
    *,
    schedule: str | None = "1F1B",
    input_meshes: Mapping[int, str] | None = None,
    output_meshes: Mapping[int, str] | None = None,
    infer_transfers: bool = True,
    infer_cross_mesh_reductions: bool = True,
    cheapest_transfers: bool = False,
    in_shardings: InShardings | None = None,
    plugins: Iterable[Any] = (),
) -> PipelineProgram:
    """Return a program with named computations as one over several meshes.

    Args:
        source: MLIR text, bytecode, a path or a module, what ``jax.jit(f).lower(...)`` returns, or a program of
            another frontend, such as a model of ONNX.
        topology: Name to mesh, a `Mesh` or a mapping of axis sizes, in order.
        assignment: Name of a computation, tensor or function to mesh: ``{"stage1": "m1"}``, also with a stage,
            ``"m1/0"``, or a memory, ``"m1#pinned_host"``. For ONNX, a name is the scope of nodes, for PyTorch the
            path of a submodule.
        schedule: The name of the schedule; None for the order of the program, as its name ``None``.
        input_meshes: Number of an argument to mesh; others are inferred.
        output_meshes: Number of a result to mesh.
        infer_transfers: Whether values may move between meshes where no name asks for it.
        infer_cross_mesh_reductions: Whether sums of values of several meshes become reductions over meshes.
        cheapest_transfers: Whether a value moves where the fewest bytes do, not as soon as another mesh uses it: with
            a cast between two stages, the smaller of the two tensors.
        in_shardings: The shardings of arguments over the first mesh, as `propagate` takes them.
        plugins: Dialects besides the installed ones.

    Raises:
        OptionError: a name, mesh or schedule is not known.
        UnsupportedError: an op has no mesh, or the schedule contradicts the data.
    """
    partitioning = Partitioning.of(
        source,
        topology,
        _items(assignment),
        schedule=str(schedule),
        inputs=_items(input_meshes or {}),
        outputs=_items(output_meshes or {}),
        infer_transfers=infer_transfers,
        infer_cross_mesh_reductions=infer_cross_mesh_reductions,
        cheapest_transfers=cheapest_transfers,
        in_shardings=in_shardings,
        registry=load_registry(options=RuleOptions(), plugins=tuple(plugins)),
    )
    program, warnings = partitioning.run()
    text = print_module(write_back(program))
    return PipelineProgram(text, partitioning.topology, warnings, partitioning.registry, partitioning)


def _items(assignment: Mapping[Any, str] | Iterable[str]) -> tuple[str, ...]:
    if isinstance(assignment, Mapping):
        return tuple(f"{name}@{mesh}" for name, mesh in assignment.items())
    return tuple(assignment)

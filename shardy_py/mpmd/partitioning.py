"""A program and the options of its partition: what `partition` runs, and runs again for explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import field

from shardy_py.api.given_shardings import InShardings, apply_in_shardings
from shardy_py.errors import Diagnostic, OptionError, UnsupportedError, unknown_name
from shardy_py.frontends.mlir import import_module, parse_module, print_module, to_module, write_back
from shardy_py.frontends.select import find_frontend
from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.op_names import MESH
from shardy_py.ir.graph.printing import print_program
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import load_shardings, store_shardings
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.mpmd.dialect.calls import block_of, return_of
from shardy_py.mpmd.dialect.name_marks import names_of
from shardy_py.mpmd.dialect.op_names import TOPOLOGY
from shardy_py.mpmd.dialect.types import Topology
from shardy_py.mpmd.passes.assignments import check_meshes, check_numbers, parse_assignments
from shardy_py.mpmd.passes.pipelines import MpmdImportPipeline, MpmdOptimizePipeline
from shardy_py.mpmd.passes.propagation import MpmdShardingPropagationPipeline
from shardy_py.mpmd.schedules.predicates import SPLITTING, find_predicate
from shardy_py.mpmd.scopes import name_scopes
from shardy_py.plugins import Registry
from shardy_py.plugins.type_definition import give_shapes
from shardy_py.sharding.mesh import Mesh
from shardy_py.support.arguments import shown
from shardy_py.transforms.run import run_on_attributes
from shardy_py.values import frozen

MAIN = "main"
WITH_MODULES = ("mlir", "jax", "jit", "hlo")
"""The frontends whose programs are modules of MLIR."""


@frozen(eq=False)
class Partitioning:
    """A program as MLIR, with the options of `partition`.

    Args:
        text: The program, with locations.
        topology: The meshes.
        names: The assignments of names, ``name@mesh``.
        schedule: The name of the schedule.
        inputs: The assignments of arguments by number.
        outputs: The assignments of results by number.
        infer_transfers: Whether values may move where no name asks for it.
        infer_cross_mesh_reductions: Whether sums of values of several meshes become reductions over meshes.
        cheapest_transfers: Whether values move where the fewest bytes do.
        registry: What is known about ops.
        locations: The locations of the ops in the program that the text was printed from, where these are others.
        source_name: What locations call the source: the name of its file, or a dash.
    """

    text: str = field(repr=False)
    topology: Topology
    names: tuple[str, ...]
    schedule: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    infer_transfers: bool
    infer_cross_mesh_reductions: bool
    cheapest_transfers: bool
    registry: Registry = field(repr=False)
    locations: tuple[str, ...] = field(default=(), repr=False)
    source_name: str = "-"

    @classmethod
    def of(
        cls,
        source: Any,
        topology: Mapping[str, Any],
        names: Iterable[str],
        *,
        schedule: str,
        inputs: Iterable[str],
        outputs: Iterable[str],
        cheapest_transfers: bool,
        in_shardings: InShardings | None,
        registry: Registry,
        infer_transfers: bool = True,
        infer_cross_mesh_reductions: bool = True,
    ) -> Partitioning:
        """Return the partitioning of a source of any frontend.

        Raises:
            ShardyError: an argument is not valid.
        """
        meshes, items = read_topology(topology), tuple(names)
        find_predicate(schedule)
        assignments = dict(parse_assignments(items))
        check_meshes(assignments, meshes)
        text, locations, registry = source_text(source, assignments, meshes, in_shardings, registry)
        return cls(
            text,
            meshes,
            items,
            schedule,
            tuple(inputs),
            tuple(outputs),
            infer_transfers,
            infer_cross_mesh_reductions,
            cheapest_transfers,
            registry,
            locations,
            find_frontend(source, registry).source_name(source) or "-",
        )

    def run(
        self, *, text: str | None = None, after_pass: Callable[[str, Program], None] | None = None
    ) -> tuple[Program, tuple[Diagnostic, ...]]:
        """Return the program over several meshes, and warnings.

        Args:
            text: The program in another text.
            after_pass: Called after each pass with its name and the program.

        Raises:
            ShardyError: an op has no mesh, the schedule contradicts the data, or an argument or result with a mesh does
                not exist.
        """
        program = import_module(parse_module(self.text if text is None else text), name=self.source_name)
        warnings = [*give_shapes(program, self.registry), *_unused_names(program, self.names)]
        give_topology(program, self.topology)
        main = program.functions[MAIN]
        check_numbers(self.inputs, "argument", len(block_of(main).arguments))
        check_numbers(self.outputs, "result", len(return_of(main).operands))
        context = PassContext(self.registry, warnings)
        run_on_attributes(program, self.passes(), context, after_pass)
        return program, tuple(context.warnings)

    def passes(self) -> tuple[Pass, ...]:
        """Return the passes from names to shardings, in order."""
        importing = MpmdImportPipeline(
            name_to_mesh_assignment=self.names,
            input_assignment=self.inputs,
            output_assignment=self.outputs,
            infer_transfers=self.infer_transfers,
            infer_cross_mesh_reductions=self.infer_cross_mesh_reductions,
            cheapest_transfers=self.cheapest_transfers,
            split_bwd_fragments=self.schedule in SPLITTING,
        )
        optimizing = MpmdOptimizePipeline(pipeline_schedule=self.schedule)
        return (*importing.passes, *optimizing.passes, *MpmdShardingPropagationPipeline().passes)


def _unused_names(program: Program, items: Iterable[str]) -> Iterator[Diagnostic]:
    """Give a warning for each name with a mesh that nothing in the program has: it may be misspelt."""
    assignments = parse_assignments(items)
    known = {name for op in program.walk() for name in names_of(op)}
    for name, assignment in assignments.items():
        if name not in known:
            message = f"{name!r} is assigned to the mesh {assignment.mesh!r}, but nothing in the program has this name"
            yield unknown_name("unused-name", message, name, known)


def source_text(
    source: Any, names: Iterable[str], topology: Topology, in_shardings: InShardings | None, registry: Registry
) -> tuple[str, tuple[str, ...], Registry]:
    """Return a source as MLIR; programs of other frontends have computations by the scopes of their ops.

    Args:
        source: The program.
        names: The names that have meshes.
        topology: The meshes.
        in_shardings: The shardings of arguments over the first mesh.
        registry: What is known about ops.

    Returns:
        The text, the locations of its ops where they are not those of the text, and what is known about its ops.

    Raises:
        ShardyError: the source or a sharding is not valid.
    """
    frontend = find_frontend(source, registry)
    if frontend.name in WITH_MODULES:
        module = to_module(source)
        if in_shardings is not None:
            program = import_module(module)
            give_shapes(program, registry)
            _shard_arguments(program, topology, in_shardings, registry)
            module = write_back(program)
        return print_module(module, with_locations=True), (), registry
    program = frontend.import_program(source)
    registry = frontend.extend_registry(program, registry)
    name_scopes(program, names, partial(frontend.op_scope, program))
    if in_shardings is not None:
        _shard_arguments(program, topology, in_shardings, registry)
    return print_program(program), tuple(frontend.op_scope(program, op) for op in program.walk()), registry


def _shard_arguments(program: Program, topology: Topology, in_shardings: InShardings, registry: Registry) -> None:
    """Give the arguments of the main function shardings over the first mesh."""
    name = _add_mesh(program, topology)
    main = main_function(program)
    load_shardings(program, registry)
    if main is not None:
        apply_in_shardings(program, main, in_shardings, name)
    store_shardings(program, registry)


def _add_mesh(program: Program, topology: Topology) -> str:
    """Return the name of the mesh that shardings refer to; the first one of the topology where there is none yet."""
    known = next((name for name, mesh in program.meshes.items() if mesh.axes), None)
    if known is not None:
        return known
    name = "mesh" if "mesh" not in program.meshes else "topology_mesh"
    op = Op(program, MESH, attributes={"sym_name": name, "mesh": topology.meshes[0][1]})
    program.body.insert_after(None, op)
    return name


def give_topology(program: Program, topology: Topology) -> None:
    """Put the topology on the main function, and its mesh into the module, which shardings refer to.

    Raises:
        UnsupportedError: there is no main function.
    """
    main = program.functions.get(MAIN)
    if main is None:
        message = "the module has no function named main"
        raise UnsupportedError(Diagnostic("no-main", message, hint="call the function that all meshes run main"))
    main.attributes[TOPOLOGY] = topology.attribute
    _add_mesh(program, topology)


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

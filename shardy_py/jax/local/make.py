"""Local programs from propagated modules whose communication is explicit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve

from shardy_py.api.given_sizes import module_of_sizes
from shardy_py.api.options import LocalOptions
from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.frontends.mlir import MLIR, import_module, parse_module, print_module, to_module
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.op_names import MESH
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.symbols import check_has_body
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.jax.arguments import ArrayType, array_types, array_values
from shardy_py.jax.devices import device_count, extend_mesh
from shardy_py.jax.form.number_global_devices import NumberGlobalDevicesPass
from shardy_py.jax.local.local_program import LocalProgram
from shardy_py.jax.local.native_form import FrontendForm, GraphForm, MlirForm, NativeForm
from shardy_py.jax.local.partitioning_rules import call_partitioning_rules
from shardy_py.jax.local.port import GIVE_SIZES, make_ports
from shardy_py.jax.local.run_effects_once import RunEffectsOncePass
from shardy_py.local.communication.guard import Attempt, with_least_communication
from shardy_py.local.communication.sent_bytes import local_sent_bytes
from shardy_py.local.dynamic import put_numbers, take_numbers
from shardy_py.local.explicit import explicit_passes
from shardy_py.local.local_ops import find_local_ops
from shardy_py.local.pipeline import communication_passes, local_passes
from shardy_py.plugins import Registry
from shardy_py.plugins.type_definition import give_shapes
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.unknown_size import is_derived
from shardy_py.transforms.run import run, run_on_attributes
from shardy_py.values import frozen

_ACTING = frozenset(f"stablehlo.{name}" for name in ("infeed", "outfeed", "send", "recv"))
"""Ops that act outside of the program."""
_PARTITIONED_BY_JAX = "CustomSPMDPartitioning"
_MOST_DEVICES = 2**22


def make_local_program(
    module: Any,
    *,
    registry: Registry,
    options: LocalOptions,
    name: str = "-",
    is_explicit: bool = False,
    padding: float | None = None,
) -> LocalProgram:
    """Return the program that each device runs.

    Args:
        module: What `to_module` takes, propagated; it stays as it is.
        registry: What is known about ops.
        options: The options.
        name: What locations call a source without a name of its own.
        is_explicit: Whether all communication of the module is explicit, as collectives.
        padding: A number that the padding of all values shall hold, for tests: results must not depend on it.

    Raises:
        ShardyError: an op has no local form, or the meshes are not over the same devices.
    """
    text = print_module(to_module(module), with_locations=True)

    def read() -> Program:
        program = import_module(parse_module(text), name=name)
        program.kinds_hold = True
        if _PARTITIONED_BY_JAX in text:
            program = call_partitioning_rules(program, registry)
        give_shapes(program, registry)
        return program

    explicit = () if is_explicit else explicit_passes()
    before = (RunEffectsOncePass(), *explicit, NumberGlobalDevicesPass())
    local = _Source(read, MlirForm(), before, run_on_attributes, registry, options, padding).best()
    if not any(port.is_dynamic for port in local.arguments):
        return local

    def of_sizes(sizes: Mapping[str, int]) -> LocalProgram:
        sized = module_of_sizes(text, MLIR, sizes, registry)
        return make_local_program(sized, registry=registry, options=options, name=name, is_explicit=is_explicit)

    return evolve(local, of_sizes=of_sizes, pads=options.pad_dynamic_sizes)


def make_local_graph(program: Program, *, registry: Registry, options: LocalOptions, is_explicit: bool) -> LocalProgram:
    """Return the program that each device runs, of a program that MLIR does not read.

    Args:
        program: The propagated program; it stays as it is.
        registry: The definitions of ops.
        options: The options.
        is_explicit: Whether all communication of the program is explicit, as collectives.

    Raises:
        ShardyError: an op has no local form, the meshes are not over the same devices, or dynamic sizes are to be
            padded.
    """

    def read() -> Program:
        local = copy_program(program)
        local.origin = program.origin
        return local

    before, frontend = () if is_explicit else explicit_passes(), frontend_of(program)
    local = _Source(read, FrontendForm(frontend), tuple(before), run, registry, options).best()
    if options.pad_dynamic_sizes and any(port.is_dynamic for port in local.arguments):
        message = f"a local program of the frontend {frontend.name} does not pad dynamic sizes"
        raise OptionError(Diagnostic("not-padded", message, hint=GIVE_SIZES))
    return local


def count_local_program(explicit: Program, *, registry: Registry, options: LocalOptions) -> LocalProgram:
    """Return the program that each device runs as an op graph, to count in; it has no native module.

    Args:
        explicit: A propagated program whose communication is explicit, as collectives; it stays as it is.
        registry: What is known about ops.
        options: The options.

    Raises:
        ShardyError: an op has no local form, a function of the user says how it is partitioned, or the meshes are not
            over the same devices.
    """
    for op in ops_named(explicit, "stablehlo.custom_call"):
        if op.attributes.get("call_target_name") == _PARTITIONED_BY_JAX:
            message = "only Result.cost calls the function that says how it is partitioned, and what it sends"
            hint = "propagate the Lowered of jax.jit, and ask for the result's cost"
            raise UnsupportedError(Diagnostic("partitioned-by-jax", message, op.location, op.name, hint))
    before = (RunEffectsOncePass(), NumberGlobalDevicesPass())
    return _Source(lambda: copy_program(explicit), GraphForm(), before, run, registry, options).best()


@frozen(eq=False)
class _Source:
    """A propagated program with the options of its local program.

    Args:
        read: Returns the program, another one each time.
        form: How its frontend writes local programs.
        before: The passes before those of local programs.
        run: Runs passes over a program.
        registry: What is known about ops.
        options: The options.
        padding: A number that the padding of all values shall hold.
    """

    read: Callable[[], Program]
    form: NativeForm
    before: tuple[Pass, ...]
    run: Callable[[Program, Sequence[Pass], PassContext], None]
    registry: Registry
    options: LocalOptions
    padding: float | None = None

    def best(self) -> LocalProgram:
        """Return the local program that sends the fewest bytes.

        Raises:
            ShardyError: an op has no local form, or the meshes are not over the same devices.
        """
        if not self.options.optimize:
            return self.local(()).form
        passes = communication_passes(reorder_sums=self.options.reorder_sums)
        least = with_least_communication(self.local, passes)
        return evolve(least.form, warnings=(*least.form.warnings, *least.warnings)) if least.warnings else least.form

    def local(self, communication: Sequence[Pass]) -> Attempt[LocalProgram]:
        """Return the local program that some passes on communication make."""
        registry, program = self.registry, self.read()
        main = program.functions.get("main")
        if main is None:
            message = "the module has no function named main"
            raise UnsupportedError(Diagnostic("no-main", message, hint="call the function that the devices run main"))
        check_has_body(main)
        _refuse_side_effects(program)
        is_dynamic = put_numbers(program)
        mesh = _extend_meshes(program)
        ends = array_values(entry_arguments(main)), array_values(main.function_results)
        types = array_types(ends[0], "argument"), array_types(ends[1], "result")
        context = PassContext(registry, communication=[], sent_bytes=[])
        self.run(program, [*self.before, *local_passes(self.options, self.padding, communication)], context)
        local, ops = program.functions["main"], find_local_ops(program, registry)
        sent = local_sent_bytes(program, ops, registry, mesh)
        if is_dynamic:
            take_numbers(program)
            types = _with_unknown_sizes(types[0]), _with_unknown_sizes(types[1])
        local_program = LocalProgram(
            self.form.write(program),
            program,
            mesh,
            make_ports(program, array_values(entry_arguments(local)), types[0]),
            make_ports(program, array_values(local.function_results), types[1]),
            ops,
            tuple(context.warnings),
            tuple(context.communication or ()),
            self.form,
        )
        return Attempt(local_program, sent, sum(context.sent_bytes or ()), bool(context.communication))


def _with_unknown_sizes(types: Sequence[ArrayType]) -> tuple[ArrayType, ...]:
    return tuple(ArrayType(tuple(-1 if is_derived(n) else n for n in item.shape), item.dtype) for item in types)


def _refuse_side_effects(program: Program) -> None:
    """Check that no op acts outside of the program in a way that no device can.

    Raises:
        UnsupportedError: one does.
    """
    for op in program.walk():
        if op.name in _ACTING:
            message = "the op acts outside of the program, and each device would do it once more"
            hint = "take it out of the program"
            raise UnsupportedError(Diagnostic("side-effects", message, op.location, op.name, hint))


def _extend_meshes(program: Program) -> Mesh:
    """Give each mesh all devices, with another axis if need be, and return the first that had them all.

    Without meshes it is one device.

    Raises:
        UnsupportedError: there are too many devices, or the meshes are not over the same ones.
    """
    count = device_count(program.meshes.values())
    if count > _MOST_DEVICES:
        message = f"a local program lists its devices, and there are {count}"
        raise UnsupportedError(Diagnostic("too-many-devices", message, hint=f"at most {_MOST_DEVICES} are possible"))
    full = [mesh for mesh in program.meshes.values() if mesh.axes and mesh.total_size == count]
    for op in program.body.ops:
        if op.name != MESH:
            continue
        mesh = op.attributes["mesh"]
        if mesh.axes and mesh.total_size != count:
            op.attributes["mesh"] = extend_mesh(mesh, count)
            if "stablehlo.mesh" in op.attributes:
                del op.attributes["stablehlo.mesh"]
    extended = [mesh for mesh in program.meshes.values() if mesh.axes and mesh.total_size == count]
    return next(iter((*full, *extended)), Mesh())

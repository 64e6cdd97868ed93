"""Local programs from propagated modules whose communication is explicit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.api.options import LocalOptions
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.mlir import import_module, parse_module, print_module, to_module, write_back
from shardy_py.ir.graph.op_names import MESH
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.jax.arguments import array_types, array_values
from shardy_py.jax.devices import device_count, extend_mesh
from shardy_py.jax.form.number_global_devices import NumberGlobalDevicesPass
from shardy_py.jax.local.local_program import LocalProgram
from shardy_py.jax.local.partitioning_rules import call_partitioning_rules
from shardy_py.jax.local.port import make_ports
from shardy_py.jax.local.run_effects_once import RunEffectsOncePass
from shardy_py.local.communication.guard import Attempt, with_least_communication
from shardy_py.local.communication.sent_bytes import local_sent_bytes
from shardy_py.local.explicit import explicit_passes
from shardy_py.local.local_ops import find_local_ops
from shardy_py.local.pipeline import communication_passes, local_passes
from shardy_py.plugins import Registry
from shardy_py.plugins.type_definition import give_shapes
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.run import run_on_attributes
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
    source = _Source(text, registry, options, name, is_explicit, padding)
    if not options.optimize:
        return source.local(()).form
    return with_least_communication(source.local, communication_passes(reorder_sums=options.reorder_sums))


@frozen(eq=False)
class _Source:
    """A propagated module with the options of its local program.

    Args:
        text: The text of the module.
        registry: What is known about ops.
        options: The options.
        name: What locations call a source without a name of its own.
        is_explicit: Whether all communication of the module is explicit, as collectives.
        padding: A number that the padding of all values shall hold.
    """

    text: str
    registry: Registry
    options: LocalOptions
    name: str
    is_explicit: bool
    padding: float | None

    def local(self, communication: Sequence[Pass]) -> Attempt[LocalProgram]:
        """Return the local program that some passes on communication make.

        Raises:
            ShardyError: an op has no local form, or the meshes are not over the same devices.
        """
        registry = self.registry
        program = import_module(parse_module(self.text), name=self.name)
        if _PARTITIONED_BY_JAX in self.text:
            program = call_partitioning_rules(program, registry)
        give_shapes(program, registry)
        main = program.functions.get("main")
        if main is None:
            message = "the module has no function named main"
            raise UnsupportedError(Diagnostic("no-main", message, hint="call the function that the devices run main"))
        _refuse_side_effects(program)
        mesh = _extend_meshes(program)
        ends = array_values(entry_arguments(main)), array_values(main.function_results)
        types = array_types(ends[0], "argument"), array_types(ends[1], "result")
        context = PassContext(registry, communication=[], sent_bytes=[])
        explicit = () if self.is_explicit else explicit_passes()
        passes = local_passes(self.options, self.padding, communication)
        run_on_attributes(program, [RunEffectsOncePass(), *explicit, NumberGlobalDevicesPass(), *passes], context)
        local, ops = program.functions["main"], find_local_ops(program, registry)
        form = LocalProgram(
            write_back(program),
            program,
            mesh,
            make_ports(program, array_values(entry_arguments(local)), types[0]),
            make_ports(program, array_values(local.function_results), types[1]),
            ops,
            tuple(context.warnings),
            tuple(context.communication or ()),
        )
        sent = local_sent_bytes(program, ops, registry, max(1, mesh.total_size))
        return Attempt(form, sent, sum(context.sent_bytes or ()), bool(context.communication))


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

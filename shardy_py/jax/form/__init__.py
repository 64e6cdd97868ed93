"""The form for XLA: a propagated module as XLA takes it through JAX."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from warnings import warn

from shardy_py.errors import Diagnostic
from shardy_py.frontends.mlir import import_module, to_module, verify_module, write_back
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import load_shardings, store_shardings
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.jax.devices import device_count
from shardy_py.jax.form.constrain_values import ConstrainValuesPass
from shardy_py.jax.form.donate_arguments import DonateArgumentsPass
from shardy_py.jax.form.drop_op_shardings import DropOpShardingsPass
from shardy_py.jax.form.drop_shardings import DropShardingsPass
from shardy_py.jax.form.extend_meshes import ExtendMeshesPass
from shardy_py.jax.form.faults import find_faults
from shardy_py.jax.form.number_global_devices import NumberGlobalDevicesPass
from shardy_py.jax.form.remove_barriers import RemoveBarriersPass
from shardy_py.jax.form.reshards_to_constraints import ReshardsToConstraintsPass
from shardy_py.transforms.run import run


def form_passes(*, leave_open: bool = False) -> tuple[Pass, ...]:
    """Return the passes that bring a propagated program into the form for XLA, in order."""
    return (
        NumberGlobalDevicesPass(),
        ReshardsToConstraintsPass(),
        ConstrainValuesPass(leave_open=leave_open),
        RemoveBarriersPass(),
        DropOpShardingsPass(),
        DonateArgumentsPass(),
        ExtendMeshesPass(),
    )


ONE_DEVICE: tuple[Pass, ...] = (
    NumberGlobalDevicesPass(),
    DropShardingsPass(),
    DonateArgumentsPass(),
    ExtendMeshesPass(),
)
"""The passes for a program whose meshes have one device."""


def for_xla(
    module: Any, *, semantics: OpSemantics, leave_open: bool = False, name: str = "-"
) -> tuple[Program, tuple[Diagnostic, ...]]:
    """Return a propagated module in the form for XLA, and the faults of XLA's partitioner that it meets.

    Args:
        module: What `to_module` takes; it stays as it is.
        semantics: What the dialects say about the ops (a `Registry`).
        leave_open: Whether values without a sharding are left to XLA's own propagation.
        name: What locations call a source without a name of its own.

    Returns:
        A program whose `origin` holds the module, written back, and the errors and warnings of `find_faults`.
    """
    program = import_module(_copy(to_module(module)), name=name)
    load_shardings(program, semantics)
    is_partitioned = device_count(program.meshes.values()) > 1
    faults = find_faults(program, leave_open=leave_open) if is_partitioned else ()
    run(program, form_passes(leave_open=leave_open) if is_partitioned else ONE_DEVICE, PassContext(semantics))
    store_shardings(program, semantics)
    verify_module(write_back(program))
    return program, faults


def form_module(
    module: Any, *, semantics: OpSemantics, leave_open: bool, name: str, warnings: list[Diagnostic] | None
) -> Any:
    """Return a propagated module in the form for XLA, and warn of the faults that it meets.

    Args:
        module: What `to_module` takes; it stays as it is.
        semantics: What the dialects say about the ops (a `Registry`).
        leave_open: Whether values without a sharding are left to XLA's own propagation.
        name: What locations call a source without a name of its own.
        warnings: Gets the faults; without it, Python's `warnings` do.
    """
    program, faults = for_xla(module, semantics=semantics, leave_open=leave_open, name=name)
    if warnings is not None:
        warnings.extend(faults)
    else:
        for item in faults:
            warn(item.show("warning"), stacklevel=3)
    return program.origin.module


def _copy(module: Any) -> Any:
    buffer = BytesIO()
    module.operation.write_bytecode(buffer)
    return type(module).parse(buffer.getvalue(), module.context)

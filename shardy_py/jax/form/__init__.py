"""The form for XLA: a propagated module as XLA takes it through JAX."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from shardy_py.frontends.mlir import import_module, to_module, verify_module, write_back
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import load_shardings, store_shardings
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.jax.devices import device_count
from shardy_py.jax.form.batch_groups import BatchGroupsPass
from shardy_py.jax.form.clamp_starts import ClampStartsPass
from shardy_py.jax.form.constrain_values import ConstrainValuesPass
from shardy_py.jax.form.count_sort_dimensions import CountSortDimensionsPass
from shardy_py.jax.form.donate_arguments import DonateArgumentsPass
from shardy_py.jax.form.drop_op_shardings import DropOpShardingsPass
from shardy_py.jax.form.drop_shardings import DropShardingsPass
from shardy_py.jax.form.extend_meshes import ExtendMeshesPass
from shardy_py.jax.form.forget_dynamic_sizes import ForgetDynamicSizesPass
from shardy_py.jax.form.gather_operands import GatherOperandsPass
from shardy_py.jax.form.number_global_devices import NumberGlobalDevicesPass
from shardy_py.jax.form.reduce_uneven_values import ReduceUnevenValuesPass
from shardy_py.jax.form.remove_barriers import RemoveBarriersPass
from shardy_py.jax.form.reshards_to_constraints import ReshardsToConstraintsPass
from shardy_py.transforms.run import run


def form_passes(*, leave_open: bool = False) -> tuple[Pass, ...]:
    """Return the passes that bring a propagated program into the form for XLA, in order."""
    return (
        NumberGlobalDevicesPass(),
        CountSortDimensionsPass(),
        ForgetDynamicSizesPass(),
        ReduceUnevenValuesPass(),
        ReshardsToConstraintsPass(),
        BatchGroupsPass(),
        GatherOperandsPass(),
        ClampStartsPass(leave_open=leave_open),
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


def for_xla(module: Any, *, semantics: OpSemantics, leave_open: bool = False, name: str = "-") -> Program:
    """Return a propagated module in the form for XLA.

    Args:
        module: What `to_module` takes; it stays as it is.
        semantics: What the dialects say about the ops (a `Registry`).
        leave_open: Whether values without a sharding are left to XLA's own propagation.
        name: What locations call a source without a name of its own.

    Returns:
        A program whose `origin` holds the module, written back.
    """
    program = import_module(_copy(to_module(module)), name=name)
    load_shardings(program, semantics)
    passes = form_passes(leave_open=leave_open) if device_count(program.meshes.values()) > 1 else ONE_DEVICE
    run(program, passes, PassContext(semantics))
    store_shardings(program, semantics)
    verify_module(write_back(program))
    return program


def _copy(module: Any) -> Any:
    buffer = BytesIO()
    module.operation.write_bytecode(buffer)
    return type(module).parse(buffer.getvalue(), module.context)

"""The program without any sharding, on one device: what a sharded run is compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.mlir import import_module, parse_module, print_module, write_back
from shardy_py.ir.graph import Op, Program
from shardy_py.targets.jax.kernels import register_kernels

MANUAL_COMPUTATION = "sdy.manual_computation"

_IDENTITIES = frozenset(
    f"sdy.{name}"
    for name in (
        *("sharding_constraint", "reshard", "propagation_barrier", "data_flow_edge", "func_data_flow_edge"),
        *("all_gather", "all_slice", "all_to_all", "collective_permute", "all_reduce", "reduce_scatter"),
        *("replicated_to_unreduced", "sharded_to_unreduced"),
    )
)
"""Ops that say where the elements are, and leave them as they are."""

_SHARDING_CALLS = frozenset(("Sharding", "xla.sdy.FuncResultSharding"))
_PARTITIONS = ("mhlo.num_partitions", "mhlo.num_replicas")
_ANNOTATIONS = ("sdy.", "mhlo.sharding")


def has_manual_computations(program: Program) -> bool:
    """Return whether parts of a program are written for one device of several."""
    return any(op.name == MANUAL_COMPUTATION for op in program.walk())


def without_shardings(text: str) -> str:
    """Return a module without shardings, meshes, and ops that only say where elements are.

    Args:
        text: The module, propagated or not.

    Raises:
        UnsupportedError: a part of it is written for one device of several, a manual computation.
    """
    program = import_module(parse_module(text))
    if has_manual_computations(program):
        message = "a manual computation is written for one device of several: it has no form without its mesh"
        raise UnsupportedError(Diagnostic("manual-computation", message, op=MANUAL_COMPUTATION))
    for op in list(program.walk()):
        _drop(program, op)
    for name in [name for name in program.attributes if name in _PARTITIONS or name.startswith(_ANNOTATIONS)]:
        del program.attributes[name]
    return print_module(write_back(program))


def _drop(program: Program, op: Op) -> None:
    """Take what says anything about shardings off an op, or the op out of the program."""
    if op.name in ("sdy.mesh", "sdy.sharding_group"):
        op.erase()
        return
    is_call = op.name in ("stablehlo.custom_call", "mhlo.custom_call")
    if op.name in _IDENTITIES or (is_call and op.attributes.get("call_target_name") in _SHARDING_CALLS):
        _take_out(op)
        return
    if op.name == "sdy.constant":
        _rename(program, op, "stablehlo.constant")
        return
    for name in [name for name in op.attributes if name.startswith(_ANNOTATIONS)]:
        del op.attributes[name]
    for name in ("arg_attrs", "res_attrs"):
        dictionaries = op.attributes.get(name)
        if dictionaries is not None:
            op.attributes[name] = tuple(
                {key: value for key, value in item.items() if not key.startswith(_ANNOTATIONS)} for item in dictionaries
            )


def _take_out(op: Op) -> None:
    for result, operand in zip(op.results, op.operands, strict=False):
        result.replace_all_uses_with(operand)
    op.erase()


def _rename(program: Program, op: Op, name: str) -> None:
    new = Op(program, name, (), [value.type for value in op.results], {"value": op.attributes["value"]})
    assert op.parent is not None
    op.parent.insert_before(op, new)
    for old_result, result in zip(op.results, new.results, strict=True):
        old_result.replace_all_uses_with(result)
    op.erase()


def compile_unsharded(text: str, *, device: Any = None) -> Callable[..., Sequence[Any]]:
    """Compile a module without shardings for one device.

    Args:
        text: The module, propagated or not; its shardings are left out.
        device: The device; the first of ``jax.devices()`` by default.

    Returns:
        What runs it: it takes one array per argument of the main function, and gives one per result.

    Raises:
        UnsupportedError: a part of the module is written for one device of several, or XLA refuses it.
    """
    import jax
    from jaxlib import xla_client

    register_kernels()
    chosen = jax.devices()[0] if device is None else device
    options = xla_client.CompileOptions()
    try:
        executable = chosen.client.compile_and_load(without_shardings(text), xla_client.DeviceList((chosen,)), options)
    except jax.errors.JaxRuntimeError as error:
        raise UnsupportedError(Diagnostic("refused-by-xla", f"XLA refuses the module: {error}")) from error

    def run(*arguments: Any) -> Sequence[Any]:
        placed = [jax.device_put(value, chosen) for value in arguments]
        results = executable.execute_sharded(placed).disassemble_into_single_device_arrays()
        return [shards[0] for shards in results]

    return run

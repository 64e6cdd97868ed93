"""The program without any sharding: what a sharded run is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.frontends.mlir import import_module, parse_module, print_module, to_module, write_back
from shardy_py.ir.graph.op_names import CONSTANT, MANUAL_COMPUTATION, MESH, SHARDING_GROUP
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.jax.compile import to_jax
from shardy_py.jax.compiled import CompiledModule

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
_DONATIONS = ("tf.aliasing_output", "jax.buffer_donor")


def has_manual_computations(program: Program) -> bool:
    """Return whether parts of a program are written for one device of several."""
    return any(op.name == MANUAL_COMPUTATION for op in program.walk())


def without_shardings(module: Any) -> Any:
    """Return a module without shardings and ops that only say where elements are.

    Meshes go, too, unless there are manual computations: these are written for one device of several, and keep their
    shardings. All that is around them has none.

    Args:
        module: What `to_module` takes, propagated or not; it stays as it is.

    Returns:
        A ``jaxlib.mlir.ir.Module``.
    """
    program = import_module(parse_module(print_module(to_module(module))))
    keep_meshes = has_manual_computations(program)
    for op in list(program.walk()):
        if op.name != MESH:
            _drop(program, op)
        elif not keep_meshes:
            op.erase()
    for name in [name for name in program.attributes if name in _PARTITIONS or name.startswith(_ANNOTATIONS)]:
        del program.attributes[name]
    return write_back(program)


def _drop(program: Program, op: Op) -> None:
    """Take what says anything about shardings off an op, or the op out of the program."""
    if op.name == SHARDING_GROUP:
        op.erase()
        return
    is_call = op.name in ("stablehlo.custom_call", "mhlo.custom_call")
    if op.name in _IDENTITIES or (is_call and op.attributes.get("call_target_name") in _SHARDING_CALLS):
        _take_out(op)
        return
    if op.name == CONSTANT:
        _rename(program, op, "stablehlo.constant")
        return
    for name in [name for name in op.attributes if name.startswith(_ANNOTATIONS)]:
        del op.attributes[name]
    for name in ("arg_attrs", "res_attrs"):
        dictionaries = op.attributes.get(name)
        if dictionaries is not None:
            op.attributes[name] = tuple(
                {key: value for key, value in item.items() if not key.startswith((*_ANNOTATIONS, *_DONATIONS))}
                for item in dictionaries
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


def compile_unsharded(module: Any, *, semantics: OpSemantics, devices: Sequence[Any] | None = None) -> CompiledModule:
    """Compile a module without its shardings: for one device, or replicated where it has manual computations.

    Args:
        module: What `to_module` takes, propagated or not; it stays as it is.
        semantics: What the dialects say about the ops (a `Registry`).
        devices: The devices; the first ones of ``jax.devices()`` by default.

    Raises:
        ShardyError: as `to_jax`.
    """
    return to_jax(without_shardings(module), semantics=semantics, devices=devices)

"""Sources of all kinds to the op graph that Shardy gets inside of `jax.jit`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardy_py.errors import ShardyError
from shardy_py.frontends.mlir import import_module, to_module
from shardy_py.ir.graph.dead_ops import erase_dead_ops
from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.jax.gspmd.importer import import_round_trip
from shardy_py.jax.gspmd.importer.annotated import annotated_ops, mark_round_trip
from shardy_py.jax.hlo import HLO
from shardy_py.jax.hlo.tuples import flatten_tuples
from shardy_py.jax.like_jit import ConversionError
from shardy_py.jax.like_jit.capture_values import capture_unchanged_values, open_captured_values
from shardy_py.jax.like_jit.convert import convert_hlo, convert_native
from shardy_py.jax.modules import shared_module_of_stage
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding


def read(source: Any, frontend: Frontend, semantics: OpSemantics) -> Program:
    """Return the op graph of a program as `jax.jit` propagates it; see `import_like_jit`."""
    name = frontend.source_name(source) or "-"
    if frontend.name == "hlo":
        module = convert_hlo(HLO.serialize(source), name=name)
    elif frontend.name == "jax":
        module = convert_native(shared_module_of_stage(source), isolated=False, name=name)
    elif frontend.name == "mlir":
        module = convert_native(to_module(source), isolated=True, name=name)
    else:
        raise ConversionError(f"programs of the frontend {frontend.name!r} are not compiled by XLA")
    program = import_module(module, name=name)
    program.kinds_hold = True
    _import_as_xla(program, semantics)
    return program


def _import_as_xla(program: Program, semantics: OpSemantics) -> None:
    """Import a module as XLA does before it propagates (``stablehlo_import.cc``), in the order of its passes.

    Raises:
        ConversionError: it has shardings of GSPMD, which `jax.jit` propagates by itself, or a text that cannot be read.
    """
    flatten_tuples(program)
    mark_round_trip(program)
    capture_unchanged_values(program)
    erase_dead_ops(program, semantics)
    try:
        has_texts = import_round_trip(program)
    except ShardyError as error:
        raise ConversionError(error.diagnostics[0].message) from None
    if not has_texts and annotated_ops(program):
        raise ConversionError(
            "it was lowered without the Shardy partitioner, and jit propagates such programs by GSPMD"
        )
    _refuse_split_shardings(program)
    open_captured_values(program)
    # Nothing here keeps count of the names of attributes, nor of types.
    program.attribute_names = program.value_types = None


def _refuse_split_shardings(program: Program) -> None:
    """Check the shardings of ops: HLO has several ops for one, each of which gets its sharding.

    Raises:
        ConversionError: one does not fit its op.
    """
    meshes = program.meshes
    for op in all_ops(program):
        sharding = op.attributes.get(SHARDING)
        if sharding is None:
            continue
        # An op without results, such as a call into Python, may have a sharding that says on which device it runs.
        pairs = zip(op.results, sharding.shardings, strict=False)
        if any(not _fits(value, item, meshes) for value, item in pairs):
            place = op.location or op.name
            raise ConversionError(f"HLO has several ops for one with a sharding, which does not fit them all: {place}")


def _fits(value: Value, sharding: TensorSharding, meshes: Mapping[str, Mesh]) -> bool:
    """Return whether a sharding has the rank of a value, or names the one device that has it."""
    mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes.get(sharding.mesh)
    is_of_one_device = mesh is not None and not mesh.axes
    return is_of_one_device or len(getattr(value.type, "shape", None) or ()) == len(sharding.dim_shardings)

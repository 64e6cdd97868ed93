"""Shardings as parts of the types of tensors on meshes.

Mirrors mpmd/transforms/sharding_propagation/convert_sdy_shardings_to_mpmd_types.cc and
common/simplify_program.cc.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from copy import copy
from typing import Any, ClassVar

from attrs import evolve

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.op_names import CONSTANT, FUNCTION
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.graph.types import Type
from shardy_py.ir.graph.walk import names_with_trait
from shardy_py.ir.interfaces.ops import AsSdyConstant
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import attributes_at, block_of, return_of, set_attributes_at, with_types
from shardy_py.mpmd.dialect.fragments import is_fragment, mpmd_functions
from shardy_py.mpmd.dialect.op_names import FOR, IN_SHARDINGS, OUT_SHARDINGS, TRANSFER
from shardy_py.mpmd.dialect.types import mesh_tensor_of
from shardy_py.mpmd.passes.region_ops import simplify
from shardy_py.mpmd.passes.shardings.user_shardings import complete_shardings
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import NoFields


class ConvertSdyShardingsToMpmdTypesPass(NoFields):
    """Move shardings into the types of tensors on meshes, and drop them within fragments.

    A transfer whose two ends have different shardings is warned about.
    """

    name: ClassVar[str] = "mpmd-convert-sdy-shardings-to-mpmd-types"

    def run(self, program: Program, context: PassContext) -> None:
        """Convert all functions."""
        names = names_with_trait(program, context.semantics, AsSdyConstant) - {CONSTANT}
        constant_name = next(iter(names)) if len(names) == 1 else ""
        for function in mpmd_functions(program):
            _Converter(function, context.warnings, constant_name).run()


class _Converter:
    """Converts the types of one function; constants get the name back that they had before propagation."""

    def __init__(self, function: Op, warnings: list[Diagnostic], constant_name: str) -> None:
        self._function = function
        self._constant_name = constant_name
        self._table: MutableMapping[int, TensorSharding] = function.program.shardings
        self._warnings = warnings

    def run(self) -> None:
        function = self._function
        self._complete()
        for op in list(block_of(function).ops):
            self._convert(op)
        arguments = [self._type_of(value) for value in block_of(function).arguments]
        # An output that is an argument has its type, whatever the function says.
        results = [
            arguments[value.index] if value.owner is block_of(function) else value.type
            for value in return_of(function).operands
        ]
        for name, count in (("arg_attrs", len(arguments)), ("res_attrs", len(results))):
            set_attributes_at(function, name, list(map(_without_sharding, attributes_at(function, name, count))))
        for value in (*block_of(function).arguments, *function.function_results):
            self._table.pop(value.id, None)
        with_types(function, arguments, results)

    def _complete(self) -> None:
        """Give the other results of fragments with a sharded result a sharding, and what fragments use theirs."""
        fragments = [op for op in self._function.walk() if is_fragment(op)]
        for op in fragments:
            complete_shardings(op.results, self._table)
        for op in fragments:
            for value, argument in zip(op.operands, op.regions[0].block.arguments, strict=True):
                if argument.id in self._table:
                    self._table.setdefault(value.id, self._table[argument.id])

    def _type_of(self, value: Value) -> Type:
        """Return the type of a value with its sharding in it."""
        type_, sharding = mesh_tensor_of(value), self._table.get(value.id)
        if type_ is None or sharding is None:
            return value.type
        return evolve(type_, sharding=sharding.closed_like()).type

    def _convert(self, op: Op) -> None:
        """Put an op with other types in the place of one; what is in a fragment loses its shardings."""
        if op.name == FOR:
            for inner in list(op.regions[0].block.ops):
                self._convert(inner)
        elif is_fragment(op):
            self._strip(op)
        elif op.name == TRANSFER:
            self._warn(op)
        elif op.name == FUNCTION or not op.results:
            return
        types = [self._type_of(value) for value in op.results]
        for value in op.results:
            self._table.pop(value.id, None)
        _replace(op, types)

    def _warn(self, op: Op) -> None:
        source, target = self._table.get(op.operands[0].id), self._table.get(op.results[0].id)
        known = mesh_tensor_of(op.operands[0])
        if source is None and known is not None:
            source = known.sharding
        shown = [None if item is None else f"#sdy.sharding{item}" for item in (source, target)]
        is_one_mesh = source is not None and target is not None and source.mesh == target.mesh
        if is_one_mesh and source is not None and not source.is_equivalent(target):
            message = (
                "Transfer op has different shardings for the tensor and result, "
                f"tensor sharding: {shown[0]}, result sharding: {shown[1]}"
            )
            hint = "it moves and reshards; mpmd-extract-reshards-from-inter-mesh-transfers takes both apart"
            self._warnings.append(Diagnostic("resharding-transfer", message, op.location, op.name, hint))

    def _strip(self, op: Op) -> None:
        """Drop the shardings in a fragment, but those of single devices and of ops that need theirs."""
        table, meshes = self._table, op.program.meshes
        for value in op.regions[0].block.arguments:
            table.pop(value.id, None)
        for inner in op.walk():
            if inner is op or (inner.name.startswith("sdy.") and inner.name != CONSTANT):
                continue
            if inner.name == CONSTANT and self._constant_name:
                inner.name = self._constant_name
            for value in inner.results:
                sharding = table.get(value.id)
                mesh = None if sharding is None else meshes.get(str(sharding.mesh))
                if mesh is None or not (mesh.device_ids and not mesh.axes):
                    table.pop(value.id, None)


def _without_sharding(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if name != SHARDING}


def _replace(op: Op, types: list[Type]) -> None:
    """Put an op with other result types in the place of one, with its region."""
    attributes = copy(op.attributes)
    for name in (SHARDING, IN_SHARDINGS, OUT_SHARDINGS):
        if name in attributes:
            del attributes[name]
    regions = op.take_regions()
    for _ in regions:
        op.add_region(Region())
    if op.name == FOR:
        regions = [Region([_with_types(op.program, regions[0].block, types)])]
    new = Op(op.program, op.name, op.operands, types, attributes, regions)
    assert op.parent is not None
    op.parent.insert_before(op, new)
    for value, result in zip(op.results, new.results, strict=True):
        value.replace_all_uses_with(result)
    op.erase()


def _with_types(program: Program, block: Block, types: list[Type]) -> Block:
    """Return a block with the ops of one, and other types of all arguments but the last, the index of a loop."""
    new = Block(program, [*types, block.arguments[-1].type])
    for old, argument in zip(block.arguments, new.arguments, strict=True):
        old.replace_all_uses_with(argument)
    for op in list(block.ops):
        block.remove(op)
        new.append(op)
    return new


class SimplifyProgramPass(NoFields):
    """Drop duplicate, unused and forwarded results of fragments, and what only they need: users before producers."""

    name: ClassVar[str] = "mpmd-simplify-program"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit all functions."""
        for function in mpmd_functions(program):
            for op in reversed(list(block_of(function).ops)):
                if is_fragment(op):
                    simplify(op, context.semantics, may_forward=lambda operand, result: operand.type == result.type)
                elif op.name == TRANSFER and not op.results[0].uses:
                    op.erase()

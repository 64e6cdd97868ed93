"""Single ops as functions of their own, which become local and come back as manual computations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from attrs import evolve

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.op_names import FUNCTION, MANUAL_COMPUTATION, MESH, REGION_RETURN, RESHARD, RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.graph.types import TensorType, Type, function_type, static_shape
from shardy_py.ir.interfaces.local import LocalEmitter, LocalOps, local_type
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import ManualAxes, TensorSharding, TensorShardingPerValue
from shardy_py.transforms.run import run
from shardy_py.transforms.sharding_walker import IN_SHARDINGS, OUT_SHARDINGS, load_computation
from shardy_py.values import frozen


@frozen(eq=False)
class Instruction:
    """An op that is partitioned by itself.

    Args:
        op: The op.
        in_shardings: The shardings of its operands, closed and whole where they have none.
        out_shardings: Those of its results, without unreduced axes.
        in_types: The types of its operands, padded where they do not divide.
        out_types: The types of its results, padded in the same way.
    """

    op: Op
    in_shardings: tuple[TensorSharding, ...]
    out_shardings: tuple[TensorSharding, ...]
    in_types: tuple[Type, ...]
    out_types: tuple[Type, ...]

    @classmethod
    def of(cls, op: Op, program: Program) -> Instruction:
        """Return an op with its shardings.

        Raises:
            UnsupportedError: its tensors have several meshes.
        """
        values, meshes = (*op.operands, *op.results), program.meshes
        known_shardings = [sharding for value in values if (sharding := program.sharding(value)) is not None]
        if len({item.mesh for item in known_shardings}) > 1:
            message = "the tensors of the op are sharded over several meshes"
            hint = "reshard them to one mesh first"
            raise UnsupportedError(Diagnostic("several-meshes", message, op.location, op.name, hint))
        shardings = [
            program.sharding(value) or TensorSharding.fully_closed(known_shardings[0].mesh, len(_shape(value.type)))
            for value in values
        ]
        types = [_padded(value.type, item, meshes) for value, item in zip(values, shardings, strict=True)]
        if op.name == RESHARD:
            # Operand and result have one type, so that both are padded for both shardings.
            types = [_largest(types[0], types[1])] * 2
        size = len(op.operands)
        outs = [evolve(item, unreduced_axes=()) for item in shardings[size:]]
        return cls(op, tuple(shardings[:size]), tuple(outs), tuple(types[:size]), tuple(types[size:]))

    @property
    def manual_axes(self) -> ManualAxes:
        """The names of the axes of all shardings, in the order in which they come."""
        axes = (axis for item in (*self.in_shardings, *self.out_shardings) for axis in _axes(item))
        return ManualAxes(tuple(dict.fromkeys(axes)))

    def outlined(self, program: Program, name: str) -> Op:
        """Return a function of the op only, in no block yet."""
        # A reshard runs on padded tensors. Other ops see the sizes that they have: conversion masks what it pads.
        is_padded = self.op.name == RESHARD
        ins = self.in_types if is_padded else tuple(value.type for value in self.op.operands)
        outs = self.out_types if is_padded else tuple(value.type for value in self.op.results)
        block = Block(program, ins)
        new_op = block.append(clone_op(self.op, {}))
        for result, type_ in zip(new_op.results, outs, strict=True):
            result.type = type_
        for number, argument in enumerate(block.arguments):
            new_op.set_operand(number, argument)
            program.shardings[argument.id] = self.in_shardings[number]
        block.append(Op(program, RETURN, new_op.results))
        attributes = {"sym_name": name, "sym_visibility": "private", "function_type": function_type(ins, outs)}
        function = Op(program, FUNCTION, attributes=attributes, regions=[Region([block])])
        program.new_function_results(function, outs)
        for result, sharding in zip(function.function_results, self.out_shardings, strict=True):
            program.shardings[result.id] = sharding
        return function


def partition(
    program: Program, instructions: Sequence[Instruction], ops: LocalOps, passes: Sequence[Pass], context: PassContext
) -> None:
    """Replace ops by manual computations with what one device runs of them.

    Args:
        program: The program.
        instructions: The ops.
        ops: The ops that pad and cut.
        passes: The passes that make of a function of one op what one device runs.
        context: Their context.
    """
    outside, program.body = program.body, Block(program)
    try:
        for op in outside.ops:
            if op.name == MESH:
                program.body.append(Op(program, MESH, attributes=dict(op.attributes)))
        names = [f"instruction_{number}" for number in range(len(instructions))]
        for instruction, name in zip(instructions, names, strict=True):
            program.body.append(instruction.outlined(program, name))
        program.index.invalidate()
        run(program, passes, context)
        functions = program.functions
        bodies = [functions[name].regions[0] for name in names]
    finally:
        program.body = outside
        program.index.invalidate()
    for instruction, body in zip(instructions, bodies, strict=True):
        load_computation(program, _replace(program, instruction, body, ops), context.semantics)


def _replace(program: Program, instruction: Instruction, body: Region, ops: LocalOps) -> Op:
    """Put a manual computation in the place of an op, and return it."""
    op = instruction.op
    operands = [
        _resized(program, op, value, type_, sharding, ops)
        for value, type_, sharding in zip(op.operands, instruction.in_types, instruction.in_shardings, strict=True)
    ]
    computation = Op(
        program,
        MANUAL_COMPUTATION,
        operands,
        instruction.out_types,
        {
            IN_SHARDINGS: TensorShardingPerValue(instruction.in_shardings),
            OUT_SHARDINGS: TensorShardingPerValue(instruction.out_shardings),
            "manual_axes": instruction.manual_axes,
        },
        [_finished(program, body)],
    )
    _block_of(op).insert_before(op, computation)
    for old, new, sharding in zip(op.results, computation.results, instruction.out_shardings, strict=True):
        old.replace_all_uses_with(_resized(program, op, new, old.type, sharding, ops))
    op.erase()
    return computation


def _finished(program: Program, body: Region) -> Region:
    """Return the body of a manual computation: without shardings, and with its own terminator."""
    block = body.block
    end = block.terminator
    values = list(end.operands) if end is not None else []
    if end is not None:
        end.erase()
    block.append(Op(program, REGION_RETURN, values))
    for op in body.block.walk():
        op.attributes.pop("sdy.sharding", None)
        for value in op.results:
            program.shardings.pop(value.id, None)
    for value in block.arguments:
        program.shardings.pop(value.id, None)
    return Region([block])


def _resized(program: Program, op: Op, value: Value, type_: Type, sharding: TensorSharding, ops: LocalOps) -> Value:
    """Return a value padded or cut to a type, before an op."""
    if value.type == type_:
        return value
    block = Block(program)
    result = ops.resize(LocalEmitter(program, block, count(1).__next__), value, static_shape(type_) or ())
    for item in list(block.ops):
        block.remove(item)
        _block_of(op).insert_before(op, item)
    program.shardings[result.id] = sharding
    return result


def _padded(type_: Type, sharding: TensorSharding, meshes: dict[str, Mesh]) -> Type:
    """Return a type whose sharded dimensions are multiples of their numbers of parts."""
    local = local_type(type_, sharding, meshes)
    if not isinstance(type_, TensorType) or local == type_:
        return type_
    mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes[sharding.mesh]
    parts = [dim.sharded_size(mesh) for dim in sharding.dim_shardings]
    sizes = [part * size for part, size in zip(parts, static_shape(local) or (), strict=True)]
    return TensorType(tuple(sizes), type_.element_type)


def _largest(left: Type, right: Type) -> Type:
    if not isinstance(left, TensorType):
        return left
    sizes = zip(_shape(left), _shape(right), strict=True)
    return TensorType(tuple(max(pair) for pair in sizes), left.element_type)


def _axes(sharding: TensorSharding) -> list[str]:
    dims = [axis for dim in sharding.dim_shardings for axis in dim.axes]
    return [axis.name for axis in (*dims, *sharding.replicated_axes, *sharding.unreduced_axes)]


def _shape(type_: Type) -> Sequence[int]:
    return static_shape(type_) or ()


def _block_of(op: Op) -> Block:
    if op.parent is None:
        raise ValueError(f"{op!r} is in no block")
    return op.parent

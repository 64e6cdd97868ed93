"""The context of passes over kernels, and rewrites that several passes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TypeVar

from xdsl.dialects import arith, builtin, func, scf
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import MemoryEffect, NoMemoryEffect

from shardy_py.kernels.device import H100, DeviceSpec
from shardy_py.kernels.dialect.ops import YieldOp
from shardy_py.kernels.dialect.types import index_attribute
from shardy_py.kernels.locations import has_location
from shardy_py.transforms.run import PassOver
from shardy_py.values import frozen


@frozen
class KernelContext:
    """Inputs of passes besides the module.

    Args:
        device: The device that the kernel is for.
    """

    device: DeviceSpec = H100


KernelPass = PassOver[builtin.ModuleOp, KernelContext]
"""A pass over the module of a kernel, named as ``--stage`` takes it."""


def functions(module: builtin.ModuleOp) -> list[func.FuncOp]:
    """Return the functions of a module that have a body."""
    return [op for op in module.body.block.ops if isinstance(op, func.FuncOp) and op.body.blocks]


def replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """Put values in the place of an op's results, and erase it."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.detach()
    op.erase()


def add_before(op: Operation, new: Operation) -> None:
    """Add an op before another one, at the same location."""
    block = op.parent
    assert block is not None
    if not has_location(new):
        new.location = op.location
    block.insert_op_before(new, op)


def insert_before(op: Operation, new: Operation) -> SSAValue:
    """Add an op before another one and return its first result."""
    add_before(op, new)
    return new.results[0]


def index_before(op: Operation, value: int) -> SSAValue:
    """Add a constant index before an op."""
    return insert_before(op, arith.ConstantOp(index_attribute(value)))


def constant_value(value: SSAValue) -> int | None:
    """Return the integer that a value is, or None where it is not a constant."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, builtin.IntegerAttr):
        return op.value.value.data
    return None


def inline_block(block: Block, before: Operation, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """Move the ops of a block before an op and return what its terminator gives.

    Args:
        block: The block; its terminator is erased.
        before: The op.
        arguments: What stands for the block's arguments.
    """
    for argument, value in zip(block.args, arguments, strict=True):
        argument.replace_all_uses_with(value)
    target = before.parent
    assert target is not None
    terminator = block.last_op
    assert isinstance(terminator, YieldOp | scf.YieldOp | func.ReturnOp)
    returned = list(terminator.operands)
    terminator.detach()
    terminator.erase()
    for op in list(block.ops):
        op.detach()
        target.insert_op_before(op, before)
    return returned


def erase_dead_ops(region: Region) -> None:
    """Erase ops without side effects that nothing uses, last ones first."""
    for block in region.blocks:
        for op in reversed(list(block.ops)):
            if op.results and all(result.first_use is None for result in op.results) and has_no_effects(op):
                op.detach()
                op.erase()
                continue
            for inner in op.regions:
                erase_dead_ops(inner)


@cache
def _effects_of(kind: type[Operation]) -> bool | tuple[MemoryEffect, ...]:
    """Return whether no op of a kind does anything to memory, or the traits that say so for each one."""
    traits = tuple(trait for trait in kind.traits if isinstance(trait, MemoryEffect))
    if all(isinstance(trait, NoMemoryEffect) for trait in traits):
        return bool(traits)
    return traits


def has_no_effects(op: Operation) -> bool:
    """Return whether an op is known to do nothing but to compute its results."""
    traits = _effects_of(type(op))
    if isinstance(traits, bool):
        return traits
    effects = [trait.get_effects(op) for trait in traits]
    return all(kinds is not None and not kinds for kinds in effects)


def walk_ops(region: Region) -> Iterator[Operation]:
    """Yield the ops of a region, each before those in its own regions; changes behind the current op are seen."""
    for block in region.blocks:
        op = block.first_op
        while op is not None:
            following = op.next_op
            yield op
            if op.parent is block:
                for inner in op.regions:
                    yield from walk_ops(inner)
                following = op.next_op
            op = following


_Kind = TypeVar("_Kind", bound=Operation)


def inner_first(module: builtin.ModuleOp, kind: type[_Kind]) -> list[_Kind]:
    """Return the ops of a kind, each before those around it."""
    ops: list[_Kind] = []
    _collect(module.body, kind, ops)
    return ops[::-1]


def _collect(region: Region, kind: type[_Kind], ops: list[_Kind]) -> None:
    """Add the ops of a kind in a region to a list, each before those in its own regions."""
    for block in region.blocks:
        op = block.first_op
        while op is not None:
            # Classes of ops are final; `isinstance` asks the one of all ops in Python.
            if type(op) is kind or kind is Operation:
                ops.append(op)
            for inner in op.regions:
                _collect(inner, kind, ops)
            op = op.next_op


def retype_values(op: Operation, convert: Callable[[Attribute], Attribute]) -> None:
    """Change the types of the results of an op and of the arguments of its blocks."""
    arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
    for value in (*arguments, *op.results):
        type_ = convert(value.type)
        if type_ != value.type:
            value._type = type_

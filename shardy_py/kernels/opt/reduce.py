"""Reducing a module while it stays wrong in the same way: ops, branches, loops and functions are taken out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import evolve
from xdsl.dialects import arith, builtin, gpu, scf
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from shardy_py.errors import ShardyError
from shardy_py.indexing import Bound, IndexingMap, Interval
from shardy_py.kernels.dialect.constants import zero, zeros
from shardy_py.kernels.dialect.ops import LoopOp
from shardy_py.kernels.dialect.types import IndexingMapAttr
from shardy_py.kernels.opt.modules import KernelModule
from shardy_py.kernels.passes.base import KernelContext, erase_dead_ops, inline_block, insert_before, replace
from shardy_py.kernels.passes.inline import EraseDeadFunctions
from shardy_py.kernels.passes.pipeline import verify_ops
from shardy_py.kernels.run.kernel import FUNCTIONS

Predicate = Callable[[KernelModule], bool]
Edit = Callable[[Operation], None]
MOST_TRIES = 1000


def reduce_module(kernel: KernelModule, predicate: Predicate, *, most_tries: int = MOST_TRIES) -> KernelModule:
    """Return a module that is as small as possible, and for which a predicate still holds.

    Args:
        kernel: A module for which it holds.
        predicate: Called with smaller modules that are valid. An error of this package counts as False.
        most_tries: How often it is called at most.
    """
    tries = 0
    is_smaller = True
    while is_smaller and tries < most_tries:
        is_smaller, number, count = False, 0, _edit_count(kernel)
        while number < count and tries < most_tries:
            candidate = _edited(kernel, number)
            tries += 1
            if candidate is not None and _holds(predicate, candidate):
                # What comes next has the number of what is gone.
                kernel, is_smaller, count = candidate, True, _edit_count(candidate)
            else:
                number += 1
    return kernel


def _edit_count(kernel: KernelModule) -> int:
    return sum(1 for _ in _edits(kernel.module))


def _holds(predicate: Predicate, kernel: KernelModule) -> bool:
    try:
        return predicate(kernel)
    except ShardyError:
        return False


def _edited(kernel: KernelModule, number: int) -> KernelModule | None:
    """Return a module after one edit, or None where the edit does not leave a valid module that is smaller."""
    module = kernel.module.clone()
    op, edit = list(_edits(module))[number]
    size = _size(module)
    try:
        edit(op)
        erase_dead_ops(module.body)
        EraseDeadFunctions().run(module, KernelContext())
        verify_ops(module)
    except (LookupError, ValueError, VerifyException):
        # No value can stand for a result, an op is still used, or the module is not valid any more.
        return None
    return KernelModule(module, kernel.name) if _size(module) < size else None


def _size(module: builtin.ModuleOp) -> int:
    """Return a measure of a module: ops, and the trips of loops."""
    total = 0
    for op in module.walk():
        total += 1 if isinstance(op, arith.ConstantOp) else 2
        if isinstance(op, LoopOp):
            total += sum(bound.interval.size - 1 for bound in op.map.ranges)
    return total


def _edits(module: builtin.ModuleOp) -> Iterator[tuple[Operation, Edit]]:
    """Yield ops with ways to do without them, those with regions first."""
    for op in sorted(_inner_ops(module), key=lambda op: not op.regions):
        if op.has_trait(IsTerminator) or op.successors:
            continue
        if not op.results:
            yield op, _erase
            continue
        if isinstance(op, scf.IfOp):
            yield op, lambda item: _take_region(item, 0)
            yield op, lambda item: _take_region(item, 1)
        if isinstance(op, LoopOp):
            yield op, _shorten
        if not any(result.uses.get_length() for result in op.results):
            yield op, _erase
        yield op, _use_operands
        yield op, _use_earlier
        if not isinstance(op, arith.ConstantOp):
            yield op, _use_zeros


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


def _take_region(op: Operation, number: int) -> None:
    """Put the ops of one branch in the place of a condition."""
    replace(op, inline_block(op.regions[number].block, op, []))


def _shorten(op: Operation) -> None:
    """Let a loop run once."""
    assert isinstance(op, LoopOp)
    first = tuple(Bound(Interval(bound.interval.lower, bound.interval.lower), bound.name) for bound in op.map.ranges)
    map_: IndexingMap = evolve(op.map, ranges=first)
    op.attributes["indexing_map_attr"] = IndexingMapAttr(map_)


def _use_operands(op: Operation) -> None:
    """Replace the results of an op by operands of the same types, the last ones first, as loops carry these."""
    remaining = list(op.operands)[::-1]
    replacements: list[SSAValue] = []
    for result in reversed(op.results):
        operand = next((value for value in remaining if value.type == result.type), None)
        if operand is None:
            raise LookupError(str(result.type))
        remaining.remove(operand)
        replacements.append(operand)
    replace(op, replacements[::-1])


def _use_earlier(op: Operation) -> None:
    """Put results of ops before this one, the nearest of the same types, in the place of the results."""
    replace(op, [_nearest(op, result.type) for result in op.results])


def _nearest(op: Operation, type_: Attribute) -> SSAValue:
    before = op.prev_op
    while before is not None:
        for value in before.results:
            if value.type == type_:
                return value
        before = before.prev_op
    raise LookupError(str(type_))


def _use_zeros(op: Operation) -> None:
    """Put zeros in the place of the results."""
    values = []
    for result in op.results:
        type_: Any = result.type
        is_vector = isinstance(type_, builtin.VectorType)
        element = type_.element_type if is_vector else type_
        if not isinstance(element, builtin.IntegerType | builtin.IndexType | builtin.AnyFloat):
            raise LookupError(str(type_))
        attribute = zeros(type_) if is_vector else zero(type_)
        values.append(insert_before(op, arith.ConstantOp(attribute)))
    replace(op, values)


def module_size(module: builtin.ModuleOp) -> int:
    """Return the number of ops of a module without those around."""
    return sum(1 for _ in _inner_ops(module))


def _inner_ops(module: builtin.ModuleOp) -> Iterator[Operation]:
    """Yield the ops in the functions of a module."""
    return (op for op in module.walk() if not isinstance(op, (builtin.ModuleOp, gpu.ModuleOp, *FUNCTIONS)))

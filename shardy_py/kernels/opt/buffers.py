"""Buffers of a kernel module: which arguments of its entry function are read and written, and by what elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import field
from xdsl.dialects import builtin, cf, llvm, tensor, vector
from xdsl.ir import Attribute, Block, Operation, SSAValue

from shardy_py.kernels.dialect import memory_ops, tile_ops
from shardy_py.kernels.dialect.arith_and_llvm import CompareExchangeOp, LLVMAtomicRMWOp
from shardy_py.kernels.dialect.forall import ForallOp
from shardy_py.values import frozen

Origins = frozenset[int]
_READS = (tensor.ExtractOp, vector.TransferReadOp, memory_ops.PredicatedExtractOp, llvm.LoadOp)
_VALUES = (tile_ops.ReindexOp, tile_ops.ReduceOp, tile_ops.MaterializeOp)
_WRITES = (tensor.InsertOp, vector.TransferWriteOp, memory_ops.PredicatedInsertOp, tile_ops.InsertOp, llvm.StoreOp)
_UPDATES = (memory_ops.AtomicRMWOp, LLVMAtomicRMWOp, CompareExchangeOp)


@frozen(eq=False)
class BufferUse:
    """Reads and writes of the memory behind an argument.

    Args:
        is_read: Whether elements are read.
        is_written: Whether elements are written.
        elements: The types of the elements that accesses through a pointer move.
    """

    is_read: bool = False
    is_written: bool = False
    elements: tuple[Attribute, ...] = field(default=())


def buffer_uses(entry: Operation, functions: Mapping[str, Operation]) -> list[BufferUse]:
    """Return what a module does with each argument of its entry function.

    Args:
        entry: The entry function.
        functions: The functions of the module by name.
    """
    ops = [op for function in functions.values() for op in function.walk()]
    origins = _origins(entry, functions, ops)
    count = len(entry.regions[0].blocks[0].args)
    read: set[int] = set()
    written: set[int] = set()
    elements: dict[int, dict[Attribute, None]] = {}
    for op in ops:
        if not isinstance(op, (*_READS, *_WRITES, *_UPDATES, *_VALUES)):
            continue
        for value in op.operands:
            if isinstance(op, llvm.StoreOp) and value is op.value:
                # A pointer that is stored is not accessed.
                continue
            arguments = origins.get(value, frozenset())
            if not isinstance(op, _WRITES):
                read |= arguments
            if isinstance(op, (*_WRITES, *_UPDATES)):
                written |= arguments
            for number in arguments:
                elements.setdefault(number, {}).update(dict.fromkeys(_element_types(op)))
    return [BufferUse(number in read, number in written, tuple(elements.get(number, ()))) for number in range(count)]


def _element_types(op: Operation) -> Iterator[Attribute]:
    type_: Attribute | None = None
    if isinstance(op, llvm.LoadOp):
        type_ = op.dereferenced_value.type
    elif isinstance(op, llvm.StoreOp | LLVMAtomicRMWOp | CompareExchangeOp):
        type_ = op.value.type
    if type_ is not None:
        yield type_.element_type if isinstance(type_, builtin.VectorType) else type_


def _origins(entry: Operation, functions: Mapping[str, Operation], ops: Sequence[Operation]) -> dict[SSAValue, Origins]:
    """Return the arguments whose memory each value may be: a fixpoint over ops, regions, branches and calls."""
    origins: dict[SSAValue, Origins] = {
        argument: frozenset((number,)) for number, argument in enumerate(entry.regions[0].blocks[0].args)
    }
    changed = True
    while changed:
        changed = False
        for op in ops:
            for source, target in _flows(op, functions):
                known, new = origins.get(target, frozenset()), origins.get(source, frozenset())
                if not new <= known and _is_memory(target.type):
                    origins[target] = known | new
                    changed = True
    return origins


def _is_memory(type_: Attribute) -> bool:
    return isinstance(type_, builtin.TensorType | llvm.LLVMPointerType)


def _flows(op: Operation, functions: Mapping[str, Operation]) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Yield pairs of values, of which the second one may be the memory of the first one."""
    callee = op.attributes.get("callee") or op.properties.get("callee")
    called = functions.get(callee.string_value()) if isinstance(callee, builtin.SymbolRefAttr) else None
    if called is not None and called.regions and called.regions[0].blocks:
        yield from zip(op.operands, called.regions[0].blocks[0].args, strict=False)
        for block in called.regions[0].blocks:
            if block.last_op is not None and not block.last_op.successors:
                yield from zip(block.last_op.operands, op.results, strict=False)
    if isinstance(op, _VALUES):
        return
    if isinstance(op, ForallOp):
        yield from ((op.yielded_tensor(number), result) for number, result in enumerate(op.outputs))
    if isinstance(op, cf.ConditionalBranchOp | llvm.CondBrOp):
        yield from zip(op.then_arguments, op.then_block.args, strict=False)
        yield from zip(op.else_arguments, op.else_block.args, strict=False)
    elif op.successors:
        yield from ((source, argument) for block in op.successors for source in op.operands for argument in block.args)
    elif op.regions:
        # Carried values are the last operands and the last arguments of the body.
        yield from _last(op.operands, op.results)
        yield from (pair for block in _entries(op) for pair in _last(op.operands, block.args, len(op.results)))
    elif len(op.operands) == len(op.results):
        yield from zip(op.operands, op.results, strict=True)
    else:
        yield from ((source, result) for source in op.operands for result in op.results)
    parent = op.parent_op()
    if parent is not None and op.parent is not None and op is op.parent.last_op and not op.successors:
        yield from _last(op.operands, parent.results)
        yield from (pair for block in _entries(parent) for pair in _last(op.operands, block.args, len(parent.results)))


def _last(
    sources: Sequence[SSAValue], targets: Sequence[SSAValue], count: int | None = None
) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Yield pairs of the last values of two lists, at most so many."""
    size = min(len(sources), len(targets)) if count is None else min(len(sources), len(targets), count)
    yield from zip(sources[len(sources) - size :], targets[len(targets) - size :], strict=True)


def _entries(op: Operation) -> Iterator[Block]:
    for region in op.regions:
        if region.blocks:
            yield region.blocks[0]

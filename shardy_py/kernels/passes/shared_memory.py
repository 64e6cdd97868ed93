"""Memory that the threads of a block share: its size, and the barriers that all threads must reach."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.dialects import builtin, func, scf
from xdsl.ir import Block, Operation, SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.device import DeviceSpec, shared_tile_bytes
from shardy_py.kernels.dialect.gpu import BarrierOp, ShuffleOp, ThreadIdOp
from shardy_py.kernels.dialect.memory_ops import AllocateSharedOp, ShuffleReduceOp, SyncThreadsOp
from shardy_py.kernels.dialect.ops import LoopOp
from shardy_py.kernels.fusion.fusion import bits_of
from shardy_py.kernels.passes.base import KernelContext, functions
from shardy_py.values import frozen


@frozen
class LowerShared:
    """Move allocations to the begin of their function: a block has each tile once, whatever loop asks for it."""

    name: str = "lower-shared"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for function in functions(module):
            entry = function.body.blocks[0]
            allocations = [op for op in function.walk() if isinstance(op, AllocateSharedOp)]
            for op in reversed(allocations):
                first = entry.first_op
                if first is op or first is None:
                    continue
                op.detach()
                entry.insert_op_before(op, first)


def check_shared_memory(module: builtin.ModuleOp, device: DeviceSpec) -> None:
    """Check that a block's tiles fit the shared memory of a device.

    Args:
        module: The module before the first pass.
        device: The device.

    Raises:
        UnsupportedError: they do not.
    """
    for function in functions(module):
        types = [op.output.type for op in function.walk() if isinstance(op, AllocateSharedOp)]
        tensors = [type_ for type_ in types if isinstance(type_, builtin.TensorType)]
        needed = sum(shared_tile_bytes(prod(item.get_shape()), bits_of(str(item.element_type))) for item in tensors)
        if needed > device.shared_bytes:
            message = f"expected at most {device.shared_bytes} bytes of shared memory on {device.name}, got {needed}"
            hint = f"the kernel has {len(tensors)} tiles; let it compute fewer results, or give a device with more"
            raise UnsupportedError(Diagnostic("shared-memory", message, op=function.sym_name.data, hint=hint))


_BARRIERS = (BarrierOp, SyncThreadsOp)
_OF_THREAD = (ThreadIdOp, ShuffleOp, ShuffleReduceOp)
_RANGE = "xla.range"


def check_barriers(module: builtin.ModuleOp) -> None:
    """Check that all threads of a block reach every barrier.

    A value differs between threads if it is computed from the number of the thread, from another lane's value, or in a
    branch that does.

    Raises:
        UnsupportedError: what is around a barrier depends on such a value; all are named.
    """
    problems = []
    for function in functions(module):
        barriers = [op for op in function.walk() if isinstance(op, _BARRIERS)]
        varying = _Varying(function) if barriers else None
        for op in barriers:
            problems += [_problem(op, outer) for outer in _around(op) if varying and varying.decides(outer)]
    if problems:
        raise UnsupportedError(*problems)


def _problem(op: Operation, outer: Operation) -> Diagnostic:
    message = f"it waits for all threads of a block, but '{outer.name}' around it depends on the thread"
    hint = "move the barrier out of it, or let it depend on the block and on constants alone"
    return Diagnostic("non-uniform-barrier", message, op=op.name, hint=hint)


def _around(op: Operation) -> Iterator[Operation]:
    """Yield the ops around an op, up to its function."""
    outer = op.parent_op()
    while outer is not None and not isinstance(outer, func.FuncOp):
        yield outer
        outer = outer.parent_op()


class _Varying:
    """The values of a function that differ between the threads of a block."""

    def __init__(self, function: func.FuncOp) -> None:
        self._values: set[SSAValue] = set()
        if "xla.entry" not in function.attributes:
            self._values.update(function.body.blocks[0].args)
        ops = list(function.walk())
        previous_count = -1
        # What a loop carries is known after its body only.
        while previous_count != len(self._values):
            previous_count = len(self._values)
            for op in ops:
                self._visit(op)

    def decides(self, op: Operation) -> bool:
        """Return whether not all threads run what is in an op equally often."""
        if isinstance(op, LoopOp):
            return bool(op.map.constraints) and any(value in self._values for value in op.operands)
        if isinstance(op, scf.ForOp):
            return any(value in self._values for value in (op.lb, op.ub, op.step))
        if isinstance(op, scf.WhileOp):
            return self._leaves_apart(op)
        return any(value in self._values for value in op.operands)

    def _leaves_apart(self, op: scf.WhileOp) -> bool:
        condition = op.before_region.blocks[0].last_op
        return condition is None or condition.operands[0] in self._values

    def _visit(self, op: Operation) -> None:
        if isinstance(op, func.FuncOp):
            return
        varies = isinstance(op, _OF_THREAD) and not _has_one_value(op)
        varies = varies or any(value in self._values for value in op.operands)
        if op.regions:
            self._visit_regions(op, varies=varies)
        elif varies:
            self._values.update(op.results)

    def _visit_regions(self, op: Operation, *, varies: bool) -> None:
        """Take what goes into regions and out of them: by position where that is clear, else all together."""
        blocks = [block for region in op.regions for block in region.blocks]
        if isinstance(op, scf.ForOp):
            self._visit_for(op)
            return
        if varies:
            for block in blocks:
                self._values.update(block.args)
        if varies or any(value in self._values for block in blocks for value in _given_back(block)):
            self._values.update(op.results)

    def _visit_for(self, op: scf.ForOp) -> None:
        (block,) = op.body.blocks
        differs = self.decides(op)
        if differs:
            self._values.add(block.args[0])
        for argument, start, end, result in zip(
            block.args[1:], op.iter_args, _given_back(block), op.results, strict=True
        ):
            if differs or start in self._values or end in self._values:
                self._values.update((argument, result))


def _given_back(block: Block) -> tuple[SSAValue, ...]:
    return () if block.last_op is None else tuple(block.last_op.operands)


def _has_one_value(op: Operation) -> bool:
    """Return whether the number of a thread has one value only."""
    bounds = op.attributes.get(_RANGE)
    return isinstance(bounds, builtin.ArrayAttr) and len(set(bounds.data)) == 1

"""Tensors as pointers: accesses as loads and stores, constants as globals; functions return scalars only."""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.dialects import arith, builtin, func, llvm, scf, tensor, vector
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from shardy_py.kernels.device import TILE_ALIGNMENT
from shardy_py.kernels.dialect.constants import element_type
from shardy_py.kernels.dialect.gpu import BarrierOp
from shardy_py.kernels.dialect.memory_ops import AllocateSharedOp, AtomicRMWOp, SyncThreadsOp
from shardy_py.kernels.fusion.fusion import bits_of
from shardy_py.kernels.passes.atomics import lower_atomic
from shardy_py.kernels.passes.base import KernelContext, add_before, functions, insert_before, walk_ops
from shardy_py.kernels.passes.buffer_facts import argument_attributes
from shardy_py.kernels.passes.packed_elements import (
    POINTER,
    SHARED_POINTER,
    SHARED_SPACE,
    NarrowElements,
    bytes_of_constant,
    element_pointer,
    is_narrow,
)
from shardy_py.values import frozen

INVARIANT = "invariant"


@frozen
class LowerTensors:
    """Turn tensors into pointers to their first element; what carried tensors carries nothing of them any more."""

    name: str = "lower-tensors"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        lowering = _Lowering(module)
        for function in functions(module):
            lowering.function(function)


class _Lowering:
    """The pointers of tensors, and the ops that are done with."""

    def __init__(self, module: builtin.ModuleOp) -> None:
        self._module = module
        self._pointers: dict[SSAValue, SSAValue] = {}
        self._done: list[Operation] = []
        self._invariant: set[SSAValue] = set()
        self._globals = 0

    def function(self, function: func.FuncOp) -> None:
        block = function.body.block
        for number, argument in enumerate(block.args):
            if isinstance(argument.type, builtin.TensorType):
                self._pointers[argument] = argument
                if "xla.invariant" in argument_attributes(function, number):
                    self._invariant.add(argument)
        self._done.clear()
        self._block(block)
        for op in self._done:
            op.operands = []
        _drop_tensors(function)
        for op in reversed(self._done):
            op.detach()
            op.erase()
        for argument in block.args:
            if isinstance(argument.type, builtin.TensorType):
                argument._type = POINTER
        outputs = [type_ for type_ in function.function_type.outputs if not isinstance(type_, builtin.TensorType)]
        types = builtin.FunctionType.from_lists([item.type for item in block.args], outputs)
        function.properties["function_type"] = types

    def _block(self, block: Block) -> None:
        for op in list(block.ops):
            self._op(op)

    def _op(self, op: Operation) -> None:
        if isinstance(op, tensor.ExtractOp):
            self._load(op, op.tensor, op.indices, op.result)
        elif isinstance(op, vector.TransferReadOp):
            self._load(op, op.source, op.indices, op.result)
        elif isinstance(op, tensor.InsertOp):
            self._store(op, op.scalar, op.dest, op.indices)
        elif isinstance(op, vector.TransferWriteOp):
            self._store(op, op.vector, op.source, op.indices)
        elif isinstance(op, scf.ForOp):
            self._loop(op)
        elif isinstance(op, scf.IfOp | scf.IndexSwitchOp):
            self._branch(op)
        elif isinstance(op, func.CallOp):
            op.operands = [self._pointers.get(value, value) for value in op.operands]
        elif isinstance(op, arith.ConstantOp) and isinstance(op.result.type, builtin.TensorType):
            self._constant(op)
        elif isinstance(op, AllocateSharedOp):
            self._allocate(op)
        elif isinstance(op, SyncThreadsOp):
            self._wait(op)
        elif isinstance(op, AtomicRMWOp):
            self._update(op)

    def _pointer(self, tensor_: SSAValue) -> SSAValue:
        return self._pointers[tensor_]

    def _place(self, op: Operation, tensor_: SSAValue, indices: Any) -> SSAValue:
        """Return the pointer to the element at an index; flat tensors have one index, scalars none."""
        pointer, index = self._pointer(tensor_), _wide_index(op, indices)
        return pointer if index is None else insert_before(op, element_pointer(pointer, index, element_type(tensor_)))

    def _narrow(self, op: Operation, tensor_: SSAValue, indices: Any) -> NarrowElements | None:
        """Return the access to elements of less than a byte; None for others."""
        type_, pointer = element_type(tensor_), self._pointer(tensor_)
        if not is_narrow(type_):
            return None
        is_buffer = isinstance(pointer.owner, Block)
        return NarrowElements(pointer, _wide_index(op, indices), type_, is_packed=is_buffer)

    def _load(self, op: Operation, tensor_: SSAValue, indices: Any, result: SSAValue) -> None:
        narrow, is_invariant = self._narrow(op, tensor_, indices), self._pointer(tensor_) in self._invariant
        if narrow is None:
            load = llvm.LoadOp(self._place(op, tensor_, indices), result.type, _alignment(result.type))
            value = insert_before(op, load)
        elif isinstance(result.type, builtin.VectorType):
            load, value = narrow.load_vector(op, result.type.get_shape()[0])
        else:
            load = narrow.load(op, is_atomic=not is_invariant)
            value = narrow.element(op, load.dereferenced_value)
        if is_invariant:
            load.attributes[INVARIANT] = builtin.UnitAttr()
        result.replace_all_uses_with(value)
        self._done.append(op)

    def _store(self, op: Operation, value: SSAValue, tensor_: SSAValue, indices: Any) -> None:
        narrow = self._narrow(op, tensor_, indices)
        if narrow is None:
            add_before(op, llvm.StoreOp(value, self._place(op, tensor_, indices), _alignment(value.type)))
        elif isinstance(value.type, builtin.VectorType):
            narrow.store_vector(op, value, value.type.get_shape()[0])
        else:
            narrow.store(op, value)
        self._pointers[op.results[0]] = self._pointer(tensor_)
        self._done.append(op)

    def _loop(self, op: scf.ForOp) -> None:
        for argument, result, init in zip(op.body.block.args[1:], op.results, op.iter_args, strict=True):
            if init in self._pointers:
                self._pointers[argument] = self._pointers[result] = self._pointers[init]
        self._block(op.body.block)

    def _branch(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                self._block(block)
        for region in op.regions:
            last = region.block.last_op if region.blocks else None
            for value, result in zip(last.operands if last is not None else (), op.results, strict=False):
                if value in self._pointers:
                    self._pointers[result] = self._pointers[value]

    def _allocate(self, op: AllocateSharedOp) -> None:
        name = self._global_name("shared")
        type_ = op.output.type
        assert isinstance(type_, builtin.TensorType)
        element = builtin.i8 if is_narrow(type_.element_type) else type_.element_type
        array = llvm.LLVMArrayType(builtin.IntAttr(prod(type_.get_shape())), element)
        global_op = llvm.GlobalOp(array, name, "internal", SHARED_SPACE, alignment=TILE_ALIGNMENT)
        self._module.body.block.add_op(global_op)
        self._pointers[op.output] = insert_before(op, llvm.AddressOfOp(name, SHARED_POINTER))
        self._done.append(op)

    def _wait(self, op: SyncThreadsOp) -> None:
        add_before(op, BarrierOp())
        for value, result in zip(op.tensors, op.outputs, strict=True):
            self._pointers[result] = self._pointer(value)
        self._done.append(op)

    def _update(self, op: AtomicRMWOp) -> None:
        self._block(op.body.block)
        self._pointers[op.output] = self._pointer(op.dest)
        narrow = self._narrow(op, op.dest, op.indices)
        if narrow is None:
            lower_atomic(op, self._place(op, op.dest, op.indices))
        else:
            narrow.update(op)
        self._done.append(op)

    def _global_name(self, kind: str) -> str:
        """Return a name for a global of the module that none of its functions has."""
        function_names = {op.sym_name.data for op in self._module.body.block.ops if isinstance(op, func.FuncOp)}
        while (name := f"{kind}_{self._globals}") in function_names:
            self._globals += 1
        self._globals += 1
        return name

    def _constant(self, op: arith.ConstantOp) -> None:
        name = self._global_name("constant")
        assert isinstance(op.value, builtin.DenseIntOrFPElementsAttr)
        value = bytes_of_constant(op.value)
        count = value.type.get_shape()[0] if value.type.get_shape() else 1
        type_ = llvm.LLVMArrayType(builtin.IntAttr(count), value.get_element_type())
        global_op = llvm.GlobalOp(type_, name, "internal", constant=True, value=value)
        self._module.body.block.add_op(global_op)
        address = insert_before(op, llvm.AddressOfOp(name, POINTER))
        self._pointers[op.result] = address
        self._invariant.add(address)
        self._done.append(op)


def _wide_index(op: Operation, indices: Any) -> SSAValue | None:
    """Return the only index of an access as an integer, None for a scalar."""
    if not indices:
        return None
    (index,) = indices
    return insert_before(op, arith.IndexCastOp(index, builtin.i64))


def _alignment(type_: Attribute) -> int | None:
    """Return the bytes that the address of a vector is a multiple of: the launch gives each thread whole vectors."""
    if not isinstance(type_, builtin.VectorType):
        return None
    bits: int = bits_of(str(type_.element_type)) * type_.get_shape()[0]
    return min(16, max(1, bits // 8))


def _drop_tensors(function: func.FuncOp) -> None:
    """Drop tensors from what regions yield, then from what loops and branches carry."""
    holders: list[Operation] = []
    for op in walk_ops(function.body):
        if isinstance(op, scf.YieldOp | func.ReturnOp):
            op.operands = [value for value in op.operands if not isinstance(value.type, builtin.TensorType)]
        elif isinstance(op, AtomicRMWOp):
            continue
        elif op.regions and any(isinstance(result.type, builtin.TensorType) for result in op.results):
            holders.append(op)
    for op in reversed(holders):
        _without_tensors(op)


def _without_tensors(op: Operation) -> None:
    other_results = [result for result in op.results if not isinstance(result.type, builtin.TensorType)]
    regions = list(op.regions)
    operands = [value for value in op.operands if not isinstance(value.type, builtin.TensorType)]
    for region in regions:
        for block in region.blocks:
            for argument in list(block.args):
                if isinstance(argument.type, builtin.TensorType):
                    block.erase_arg(argument)
    moved: list[Region] = [op.detach_region(region) for region in regions]
    replacement = type(op).create(
        operands=operands,
        result_types=[result.type for result in other_results],
        properties=op.properties,
        attributes=op.attributes,
        regions=moved,
    )
    add_before(op, replacement)
    for result, new in zip(other_results, replacement.results, strict=True):
        result.replace_all_uses_with(new)
    op.detach()
    op.operands = []
    op.erase()

"""Running a kernel module as it is: from an array per argument to what it writes, and what its threads return."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from attrs import evolve
from xdsl.dialects import builtin, llvm
from xdsl.ir import Attribute, Operation

from shardy_py.errors import Diagnostic, OptionError, VerificationError
from shardy_py.kernels.dialect.types import layout_of_type
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.opt.buffers import BufferUse, buffer_uses
from shardy_py.kernels.opt.modules import KernelModule
from shardy_py.kernels.passes.buffer_facts import argument_attributes
from shardy_py.kernels.run.arrays import random_array
from shardy_py.kernels.run.kernel import (
    argument_slice,
    argument_slices,
    loaded_kernel,
    run_blocks,
    spans,
    threads_at_once,
)
from shardy_py.kernels.run.memory import Buffer, Memory, Pointer, Value
from shardy_py.kernels.run.threads import WARP, Threads, block_size
from shardy_py.kernels.run.values import (
    array_dtype,
    buffer_form,
    low_bits,
    narrow_bits,
    packed_array,
    rank_of,
    unpacked_array,
    word_dtype,
)
from shardy_py.layout.numpy_arrays import numpy_dtype
from shardy_py.values import frozen

BYTES = "llvm.dereferenceable"


@frozen(eq=False)
class ModuleArgument:
    """An argument of a module: an array for tensors and pointers, one number for others.

    Args:
        name: Its name in reports.
        shape: The shape of the array, in the order of memory.
        dtype: The dtype of the array.
        slice_: The number of the buffer; equal numbers are the same memory.
        is_buffer: Whether it is memory.
        use: What the module does with it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Any
    slice_: int
    is_buffer: bool
    use: BufferUse


@frozen
class ModuleResult:
    """A result of a run: the content of a buffer that was written, or the value that each thread returns.

    Args:
        name: The name of the buffer, or the number of the value.
        array: The elements.
    """

    name: str
    array: Any


def module_arguments(kernel: KernelModule) -> list[ModuleArgument]:
    """Return the arguments of a module.

    Raises:
        OptionError: it does not say how many bytes a pointer points to, or what they hold.
        UnsupportedError: no array holds elements of an argument.
    """
    entry, functions = kernel.entry, kernel.functions
    uses = buffer_uses(entry, functions)
    module_args = []
    for number, (argument, use) in enumerate(zip(entry.body.blocks[0].args, uses, strict=True)):
        shape, dtype, is_buffer = _form(kernel, entry, number, argument.type, use)
        slice_ = argument_slice(entry, number)
        module_args.append(
            ModuleArgument(f"argument {number}", shape, dtype, number if slice_ is None else slice_, is_buffer, use)
        )
    return module_args


def _form(
    kernel: KernelModule, entry: Any, number: int, type_: Attribute, use: BufferUse
) -> tuple[tuple[int, ...], Any, bool]:
    """Return shape and dtype of the array for an argument, and whether it is memory."""
    if isinstance(type_, builtin.TensorType):
        order = layout_of_type(type_)[::-1]
        return tuple(type_.get_shape()[place] for place in order), element_dtype(type_.element_type), True
    if not isinstance(type_, llvm.LLVMPointerType):
        return (), element_dtype(type_), False
    size = argument_attributes(entry, number).get(BYTES)
    if not isinstance(size, builtin.IntegerAttr):
        message = f"the module does not say how many bytes argument {number} points to"
        hint = f"mark it by {{{BYTES} = N : index}}"
        raise OptionError(Diagnostic("unknown-size", message, kernel.name, hint=hint))
    dtype = element_dtype(use.elements[0]) if use.elements else np.dtype(np.uint8)
    return (size.value.data // dtype.itemsize,), dtype, True


def element_dtype(type_: Attribute) -> Any:
    """Return the dtype of arrays with elements of a type."""
    return np.dtype(np.int64) if isinstance(type_, builtin.IndexType) else numpy_dtype(str(type_))


def random_inputs(arguments: Sequence[ModuleArgument], seed: int) -> list[Any]:
    """Return an array for every argument; those of one buffer are the same array.

    Args:
        arguments: The arguments.
        seed: The seed; the same one gives the same arrays.
    """
    arrays: dict[int, Any] = {}
    for argument in arguments:
        random = np.random.default_rng((seed, argument.slice_))
        if argument.slice_ not in arrays:
            array = random_array(argument.dtype, argument.shape, random)
            arrays[argument.slice_] = array if argument.is_buffer else np.asarray(array)[()]
    return [arrays[argument.slice_] for argument in arguments]


def check_arrays(arguments: Sequence[ModuleArgument], arrays: Sequence[Any], name: str = "") -> None:
    """Check that arrays are those of a module's arguments.

    Raises:
        VerificationError: there are too many or too few, or shapes or dtypes differ.
    """
    forms = [(tuple(np.shape(array)), np.asarray(array).dtype) for array in arrays]
    expected = [(argument.shape, argument.dtype) for argument in arguments]
    if forms != expected:
        text = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in expected)
        message = f"the module takes {text or 'nothing'}, not " + ", ".join(f"{dtype}{list(s)}" for s, dtype in forms)
        raise VerificationError(Diagnostic("run-arguments", message, name))


def run_module(
    kernel: KernelModule,
    launch: Launch,
    arguments: Sequence[ModuleArgument],
    arrays: Sequence[Any],
    *,
    stage: str = "",
    warp: int = WARP,
    findings: dict[tuple[Operation, str], Diagnostic] | None = None,
) -> list[ModuleResult]:
    """Return what a module writes and returns, by running all threads of its grid.

    Args:
        kernel: The module, at any stage.
        launch: The grid.
        arguments: The arguments of the module before the first pass.
        arrays: An array for every one of them, in the order of memory.
        stage: The name of the stage, for errors.
        warp: The threads that run in lockstep.
        findings: Where faults are recorded; None to end with the first one.

    Raises:
        VerificationError: arrays that do not fit, or a fault that is not recorded.
        UnsupportedError: an op or type that the interpreter does not know.
    """
    check_arrays(arguments, arrays, kernel.name)
    loaded = evolve(loaded_kernel(kernel.module, stage), findings=findings)
    entry = kernel.entry
    slices = argument_slices(entry, [argument.slice_ for argument in arguments])
    types = {slice_: argument.type for slice_, argument in zip(slices, entry.body.blocks[0].args, strict=True)}
    accessed = _accessed_types(buffer_uses(entry, kernel.functions), slices)
    memories = {
        slice_: _memory(slice_, type_, accessed[slice_], arguments, arrays, block_size(launch))
        for slice_, type_ in types.items()
    }
    values = [
        _value(memories[slice_], argument.type, slice_, arguments, arrays)
        for slice_, argument in zip(slices, entry.body.blocks[0].args, strict=True)
    ]
    returned: list[list[Any]] = []
    step = max(1, threads_at_once(kernel.module) // block_size(launch))
    for first, last in spans(launch, step):
        threads = Threads.of_blocks(launch, first, last, warp)
        block_results = run_blocks(loaded, entry, values, threads)
        pairs = zip(block_results, _returned_types(entry), strict=True)
        returned.append([_per_thread(value, type_, threads.count) for value, type_ in pairs])
    columns = zip(*returned, strict=True)
    returned_columns = [(number, column) for number, column in enumerate(columns) if column[0] is not None]
    results = [ModuleResult(f"returned value {number}", np.concatenate(column)) for number, column in returned_columns]
    return [*_contents(arguments, memories), *results]


def _accessed_types(uses: Sequence[BufferUse], slices: Sequence[int]) -> dict[int, list[Attribute]]:
    """Return the types of the elements that accesses through pointers to each buffer move."""
    types: dict[int, list[Attribute]] = {slice_: [] for slice_ in slices}
    for slice_, use in zip(slices, uses, strict=True):
        types[slice_] += use.elements
    return types


def _memory(
    slice_: int,
    type_: Attribute,
    accessed: Sequence[Attribute],
    arguments: Sequence[ModuleArgument],
    arrays: Sequence[Any],
    threads: int,
) -> Memory | None:
    """Return the memory of a buffer; what is only written is undefined before."""
    pairs = [pair for pair in zip(arguments, arrays, strict=True) if pair[0].slice_ == slice_ and pair[0].is_buffer]
    if not pairs:
        return None
    is_read = any(argument.use.is_read for argument, _ in pairs)
    is_written = any(argument.use.is_written for argument, _ in pairs)
    argument, array = next((pair for pair in pairs if pair[0].use.is_read), pairs[0])
    words = _words(type_, accessed, np.ascontiguousarray(array).reshape(-1))
    if not is_read:
        integer = builtin.IntegerType(8 * words.dtype.itemsize)
        is_wide = words.dtype.itemsize > np.dtype(np.uint64).itemsize
        element = builtin.ComplexType(builtin.f64) if is_wide else integer
        memory = Memory.undefined(element, len(words), argument.name, threads, is_shared=False)
        if narrow_bits(argument.dtype) is None or isinstance(type_, builtin.TensorType):
            return memory
        # A thread that writes a part of a byte reads the others, which may be undefined.
        return Memory(memory.words, argument.name, threads, is_writable=True)
    return Memory(words.copy(), argument.name, threads, is_writable=is_written)


def _words(type_: Attribute, accessed: Sequence[Attribute], array: Any) -> Any:
    """Return the elements of an array as bits, as large as the smallest element that the module accesses."""
    if isinstance(type_, builtin.TensorType):
        return low_bits(array) if narrow_bits(array.dtype) else array.view(word_dtype(type_))
    array = packed_array(array)
    sizes = [np.dtype(word_dtype(item)).itemsize for item in accessed if not isinstance(item, llvm.LLVMPointerType)]
    size = min([array.dtype.itemsize, *sizes])
    return array if size > np.dtype(np.uint64).itemsize else array.view(f"u{size}")


def _value(
    memory: Memory | None, type_: Attribute, slice_: int, arguments: Sequence[ModuleArgument], arrays: Sequence[Any]
) -> Value:
    if memory is None:
        array = next(array for argument, array in zip(arguments, arrays, strict=True) if argument.slice_ == slice_)
        return np.asarray(array).astype(array_dtype(type_))[()]
    if isinstance(type_, builtin.TensorType):
        return Buffer(memory, type_.element_type, tuple(type_.get_shape()), layout_of_type(type_))
    word = builtin.IntegerType(8 * memory.words.dtype.itemsize)
    return Pointer(Buffer(memory, word, (len(memory.words),)), np.int64(0))


def _returned_types(entry: Any) -> list[Attribute]:
    last_ops = [block.last_op for block in entry.body.blocks if not block.last_op.successors]
    return [value.type for value in last_ops[0].operands] if last_ops else []


def _per_thread(value: Value, type_: Attribute, count: int) -> Any:
    """Return what each thread returns; None for memory."""
    if isinstance(value, Buffer | Pointer | tuple):
        return None
    array = np.asarray(value)
    return array if array.ndim > rank_of(type_) else np.broadcast_to(array, (count, *array.shape))


def _contents(arguments: Sequence[ModuleArgument], memories: dict[int, Memory | None]) -> list[ModuleResult]:
    """Return what the buffers hold that the module writes."""
    results: dict[int, ModuleResult] = {}
    for argument in arguments:
        memory = memories.get(argument.slice_)
        if memory is None or not argument.use.is_written or argument.slice_ in results:
            continue
        words, bits = memory.words, narrow_bits(argument.dtype)
        is_packed = bits is not None and len(words) != prod(argument.shape)
        if is_packed:
            shape, _ = buffer_form(argument.shape, argument.dtype)
            array = unpacked_array(words[: shape[0]], argument.shape, argument.dtype)
        else:
            array = words.view(argument.dtype).reshape(argument.shape)
        results[argument.slice_] = ModuleResult(argument.name, array)
    return list(results.values())

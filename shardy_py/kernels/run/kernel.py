"""Running a kernel: from arrays to arrays, over all threads of its grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import evolve
from xdsl.dialects import builtin, func, gpu, llvm
from xdsl.ir import Attribute, Operation

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.kernels.dialect.types import layout_of_type
from shardy_py.kernels.entry.arguments import ENTRY, SLICE
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.passes.buffer_facts import argument_attributes
from shardy_py.kernels.run import (
    atomics,
    blocks,
    casts,
    complex_numbers,
    control,
    floats,
    indices,
    integers,
    llvm_arithmetic,
    pointers,
    tensors,
    tiles,
    vectors,
)
from shardy_py.kernels.run.atomics import run_atomics
from shardy_py.kernels.run.control import run_branches
from shardy_py.kernels.run.frame import Access, Chunk, Frame, Handler, LoadedKernel
from shardy_py.kernels.run.memory import Buffer, Memory, Value
from shardy_py.kernels.run.threads import WARP, Threads, block_size
from shardy_py.kernels.run.values import buffer_form, low_bits, narrow_bits, packed_array, unpacked_array, word_dtype

# Threads that run at once, at most: as many as caches hold arrays of, and so few that all values fit 256 MiB.
MOST_THREADS = 1 << 16
_MOST_VALUES = 1 << 25
FUNCTIONS = (func.FuncOp, llvm.FuncOp, gpu.FuncOp)
_MARKS = (ENTRY, "nvvm.kernel", "gpu.kernel")

Output = tuple[Sequence[int], Any]
"""Shape and dtype of a result."""


def run_kernel(
    module: builtin.ModuleOp,
    launch: Launch,
    inputs: Sequence[Any],
    outputs: Sequence[Output],
    *,
    stage: str = "",
    chunk: int | None = None,
    slices: Sequence[int] | None = None,
    blocks: Sequence[int] | None = None,
    warp: int = WARP,
) -> list[Any]:
    """Return what a kernel writes, by running all threads of its grid, or of some blocks.

    Args:
        module: The module of any stage before the lowering to LLVM.
        launch: The grid.
        inputs: An array of numpy per parameter, in the order of memory. Booleans are ``bool``, ``bf16`` is that of
            ml_dtypes.
        outputs: Shape and dtype of every result.
        stage: The name of the stage, for errors.
        chunk: The most threads that run at once; the result does not depend on it.
        slices: The number of the buffer of every input and output; by default what the arguments of the entry
            function say. Equal numbers are the same memory.
        blocks: The numbers of the blocks that run; by default all. Elements that only others write are undefined.
        warp: The threads that run in lockstep.

    Raises:
        VerificationError: arrays that do not fit the entry function, an access outside of a tensor, a race, a barrier
            that not all threads of a block reach, an element of a result that no thread of the whole grid writes.
        UnsupportedError: an op or type that the interpreter does not know.
    """
    kernel = loaded_kernel(module, stage)
    entry = entry_of(kernel.functions, stage)
    if slices is None:
        slices = _slices(entry, len(inputs) + len(outputs))
    # Behind pointers are bytes, of which several elements may be in one; tensors have elements.
    has_bytes = not any(isinstance(argument.type, builtin.TensorType) for argument in entry.body.blocks[0].args)
    forms = [buffer_form(*output) for output in outputs] if has_bytes else list(outputs)
    inputs = list(map(packed_array, inputs)) if has_bytes else inputs
    buffers = _buffers(entry, launch, inputs, forms, slices, stage)
    size = block_size(launch)
    step = max(1, (chunk or threads_at_once(module)) // size)
    arguments = _arguments(entry, buffers, slices)
    for first, last in spans(launch, step) if blocks is None else [(block, block + 1) for block in blocks]:
        run_blocks(kernel, entry, arguments, Threads.of_blocks(launch, first, last, warp))
    if blocks is None:
        _check_written(buffers, slices[: len(inputs)], entry, stage)
    results = [_array(buffers[number], *form) for number, form in zip(slices[len(inputs) :], forms, strict=True)]
    return list(map(_unpacked, results, outputs)) if has_bytes else results


def _unpacked(array: Any, output: Output) -> Any:
    return unpacked_array(array, *output)


def trace_block(
    module: builtin.ModuleOp,
    launch: Launch,
    inputs: Sequence[Any],
    outputs: Sequence[Output],
    *,
    block: int,
    slices: Sequence[int],
) -> list[Access]:
    """Return what the threads of one block read and write, in order.

    Args:
        module: The module of a stage that has tensors.
        launch: The grid.
        inputs: An array of numpy per parameter.
        outputs: Shape and dtype of every result.
        block: The number of the block.
        slices: The number of the buffer of every input and output.

    Raises:
        VerificationError: as for `run_kernel`.
        UnsupportedError: an op or type that the interpreter does not know.
    """
    accesses: list[Access] = []
    kernel = evolve(loaded_kernel(module, ""), accesses=accesses)
    entry = entry_of(kernel.functions, "")
    buffers = _buffers(entry, launch, inputs, outputs, slices, "")
    arguments = _arguments(entry, buffers, slices)
    run_blocks(kernel, entry, arguments, Threads.of_blocks(launch, block, block + 1))
    return accesses


def functions_of(module: builtin.ModuleOp) -> dict[str, Any]:
    """Return the functions of a module by name, those inside of ``gpu.module`` too."""
    return {op.sym_name.data: op for op in _top_level_ops(module) if isinstance(op, FUNCTIONS)}


def _top_level_ops(module: builtin.ModuleOp) -> Iterator[Operation]:
    """Yield the ops of a module, and those of each ``gpu.module`` in it."""
    for op in module.body.block.ops:
        if isinstance(op, gpu.ModuleOp):
            yield from op.body.block.ops
        else:
            yield op


def loaded_kernel(module: builtin.ModuleOp, stage: str) -> LoadedKernel:
    """Return a module as it is run."""
    constants = {op.sym_name.data: op for op in _top_level_ops(module) if isinstance(op, llvm.GlobalOp)}
    return LoadedKernel(functions_of(module), HANDLERS, run_branches, stage, constants)


def spans(launch: Launch, step: int) -> list[tuple[int, int]]:
    """Return the first block of each span of blocks that run at once, and the one behind it."""
    count = int(np.prod(launch.blocks, dtype=np.int64))
    return [(first, min(count, first + step)) for first in range(0, count, step)]


def run_blocks(kernel: LoadedKernel, entry: Any, arguments: Sequence[Value], threads: Threads) -> list[Value]:
    """Run some blocks, and return what their threads return."""
    part = Chunk(kernel, len(threads.phases))
    with np.errstate(all="ignore"):
        returned = Frame(part, threads).run(entry.body, arguments)
        run_atomics(part, shared=True)
        run_atomics(part, shared=False)
    return returned


def run_function(kernel: LoadedKernel, name: str, arguments: Sequence[Value], count: int) -> list[Value]:
    """Return what a function of a module gives for numbers, one call per thread.

    Args:
        kernel: The module.
        name: The name of the function.
        arguments: Its arguments, each an array over the calls or one value.
        count: The number of calls.
    """
    launch = Launch((1, 1, 1), (count, 1, 1))
    threads = Threads.of_blocks(launch, 0, 1)
    with np.errstate(all="ignore"):
        return Frame(Chunk(kernel, 1), threads).run(kernel.functions[name].body, arguments)


def threads_at_once(module: builtin.ModuleOp) -> int:
    """Return how many threads run at once, so that their values fit into memory."""
    values = sum(len(op.results) for op in module.walk())
    return min(MOST_THREADS, max(1, _MOST_VALUES // max(1, values)))


def entry_of(functions: Mapping[str, Any], stage: str) -> Any:
    """Return the entry function: the one that is marked as kernel, else the only one that is not private.

    Raises:
        VerificationError: there are several, or there is none.
    """
    bodies = [function for function in functions.values() if function.body.blocks]
    marked = [item for item in bodies if "kernel" in item.properties or any(mark in item.attributes for mark in _MARKS)]
    public = [item for item in bodies if _visibility(item) != "private"]
    candidates = marked or public
    if len(candidates) != 1:
        message = f"a kernel has one entry function, the module has {len(candidates)}"
        hint = "mark the function by the attribute xla.entry, or the others as private"
        raise VerificationError(Diagnostic("run-entry", message, stage, hint=hint))
    return candidates[0]


def _visibility(function: Any) -> str:
    visibility = function.properties.get("sym_visibility") or function.attributes.get("sym_visibility")
    return visibility.data if isinstance(visibility, builtin.StringAttr) else ""


def argument_slice(entry: Any, number: int) -> int | None:
    """Return the number of the buffer that an argument is marked with."""
    slice_mark = argument_attributes(entry, number).get(SLICE)
    return slice_mark.value.data if isinstance(slice_mark, builtin.IntegerAttr) else None


def _slices(entry: func.FuncOp, count: int) -> list[int]:
    """Return the buffer of every array, as the arguments of the entry function say.

    Raises:
        VerificationError: there are not as many arrays as arguments.
    """
    arguments = len(entry.body.blocks[0].args)
    if arguments != count:
        message = f"the entry function takes {arguments} tensors, there are {count} inputs and outputs"
        hint = "give an input per parameter and an output per result; slices= where arguments were merged"
        raise VerificationError(Diagnostic("run-arguments", message, op=entry.sym_name.data, hint=hint))
    marked_slices = [argument_slice(entry, number) for number in range(count)]
    return [number if slice_ is None else slice_ for number, slice_ in enumerate(marked_slices)]


def argument_slices(entry: func.FuncOp, slices: Sequence[int]) -> list[int]:
    """Return the buffer of every argument."""
    count = len(entry.body.blocks[0].args)
    if count == len(slices):
        return list(slices)
    merged = list(dict.fromkeys(slices))
    marked_slices = [argument_slice(entry, number) for number in range(count)]
    return [merged[number] if slice_ is None else slice_ for number, slice_ in enumerate(marked_slices)]


def _arguments(entry: func.FuncOp, buffers: Mapping[int, Buffer], slices: Sequence[int]) -> list[Buffer]:
    """Return the buffer of every argument, viewed with its shape: a result may share an input's buffer."""
    argument_buffers = [buffers[number] for number in argument_slices(entry, slices)]
    pairs = zip(argument_buffers, entry.body.blocks[0].args, strict=True)
    return [
        buffer.viewed(argument.type) if isinstance(argument.type, builtin.TensorType) else buffer
        for buffer, argument in pairs
    ]


def _buffers(
    entry: func.FuncOp,
    launch: Launch,
    inputs: Sequence[Any],
    outputs: Sequence[Output],
    slices: Sequence[int],
    stage: str,
) -> dict[int, Buffer]:
    """Return the memory of every slice: that of inputs is copied where something writes to it."""
    types = {
        number: argument.type
        for number, argument in zip(argument_slices(entry, slices), entry.body.blocks[0].args, strict=True)
    }
    written = set(slices[len(inputs) :])
    threads = block_size(launch)
    buffers: dict[int, Buffer] = {}
    for position, number in enumerate(slices):
        is_input = position < len(inputs)
        array = inputs[position] if is_input else np.empty(0, outputs[position - len(inputs)][1])
        size = array.size if is_input else int(np.prod(outputs[position - len(inputs)][0], dtype=np.int64))
        layout = _layout(types[number], array.dtype, size)
        element, count = layout.type_, layout.size
        _check_fits(array, size, element, count, f"{'input' if is_input else 'output'} {position}", entry, stage)
        if number in buffers:
            continue
        name = f"argument {number}"
        if is_input:
            words = _words(np.ascontiguousarray(array).reshape(-1), element)
            is_written = number in written
            memory = Memory(words.copy() if is_written else words, name, threads, is_writable=is_written)
        else:
            memory = Memory.undefined(element, count, name, threads, is_shared=False)
        buffers[number] = evolve(layout, memory=memory)
    return buffers


def _words(array: Any, element: Attribute) -> Any:
    """Return the elements of an array as bits."""
    return array.view(word_dtype(element)) if narrow_bits(array.dtype) is None else low_bits(array)


def _layout(type_: Attribute, dtype: Any, size: int) -> Buffer:
    """Return a buffer without memory; a pointer does not say what it points to, so it is the array that does."""
    no_memory = Memory(np.empty(0, np.uint8), "", 1)
    if isinstance(type_, builtin.TensorType):
        return Buffer(no_memory, type_.element_type, tuple(type_.get_shape()), layout_of_type(type_))
    bits = builtin.IntegerType(8 * np.dtype(dtype).itemsize)
    # No integer of numpy has the bits of two doubles.
    is_wide_complex = np.dtype(dtype) == np.complex128
    return Buffer(no_memory, builtin.ComplexType(builtin.f64) if is_wide_complex else bits, (size,))


def _check_fits(
    array: Any, size: int, element: Attribute, count: int, name: str, entry: func.FuncOp, stage: str
) -> None:
    if size == count and array.dtype.itemsize == np.dtype(word_dtype(element)).itemsize:
        return
    message = f"{name} has {size} elements of {array.dtype}, the entry function takes {count} of {element}"
    raise VerificationError(Diagnostic("run-arguments", message, stage, entry.sym_name.data))


def _check_written(buffers: dict[int, Buffer], inputs: Sequence[int], entry: func.FuncOp, stage: str) -> None:
    """Check that every element of memory that is not an input was written."""
    for number, buffer in buffers.items():
        writers = buffer.memory.writers
        if number in inputs or writers is None or writers.all():
            continue
        place = int(np.argmin(writers != 0))
        message = f"no thread writes element {place} of {buffer.memory.name}"
        raise VerificationError(Diagnostic("unwritten-element", message, stage, entry.sym_name.data))


def _array(buffer: Buffer, shape: Sequence[int], dtype: Any) -> Any:
    return buffer.memory.words.view(dtype).reshape(tuple(shape))


FAMILIES = (
    *(atomics, blocks, casts, complex_numbers, control, floats),
    *(indices, integers, llvm_arithmetic, pointers, tensors, tiles, vectors),
)

HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {name: handler for family in FAMILIES for name, handler in family.HANDLERS.items()}
)

"""Machine code of the host: a kernel's grid as loops over blocks and threads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import count
from math import prod
from typing import Any, final

import numpy as np
from xdsl.dialects import builtin, func, llvm

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.kernels.device import H100
from shardy_py.kernels.entry.arguments import ENTRY, SLICE
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.host_grid import GRID, grid_text
from shardy_py.kernels.lower.host_loops import may_wrap
from shardy_py.kernels.lower.host_phases import Storage, write_phases
from shardy_py.kernels.lower.literals import HOST
from shardy_py.kernels.lower.llvm import METADATA, declare_function, function_text, global_text
from shardy_py.kernels.lower.machine import binding, has_many_branches, host_machine, optimize, parse
from shardy_py.kernels.lower.straight_tiles import straighten_tiles
from shardy_py.kernels.lower.writer import ModuleWriter
from shardy_py.kernels.passes.base import functions
from shardy_py.kernels.passes.integer_types import index_width
from shardy_py.kernels.run.memory import aligned
from shardy_py.kernels.run.values import buffer_form, packed_array, unpacked_array

_NUMBERS = count()
SMALL_BYTES = 1 << 18
"""The most bytes of all buffers for which a kernel begins with code that is compiled quickly.

Such a kernel runs within a fraction of a millisecond either way, which all passes of LLVM take tens of times.
"""
QUICK_RUNS = 50
"""The runs after which it is compiled with all passes all the same."""


@final
class HostKernel:
    """A kernel that this processor runs.

    Args:
        llvm: Its text for LLVM, with the loops.
        name: Its name.
        blocks: The number of blocks.
        sizes: The bytes of every buffer.
        slices: The number of every buffer; equal ones are the same memory.
        is_quick: Whether the first `QUICK_RUNS` runs are those of code that is compiled quickly.
    """

    def __init__(
        self,
        llvm: str,
        name: str,
        blocks: int,
        sizes: Sequence[int],
        slices: Sequence[int],
        *,
        is_quick: bool = False,
    ) -> None:
        self.llvm = llvm
        self.name = name
        self._blocks = blocks
        self._sizes = tuple(sizes)
        self._slices = tuple(slices)
        self._quick_runs = QUICK_RUNS if is_quick else 0
        # What runs is gone as soon as its compiler or library is; a thread may run the first one yet.
        self._libraries: list[tuple[Any, Any]] = []
        self._call = self._compiled(is_quick=is_quick)

    def _compiled(self, *, is_quick: bool) -> Any:
        """Compile and link the text; return the function that runs blocks."""
        compiler, library = _linked(self.llvm, self.name, is_quick=is_quick)
        self._libraries.append((compiler, library))
        return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(library[GRID])

    def run(self, inputs: Sequence[Any], outputs: Sequence[tuple[Sequence[int], Any]]) -> list[Any]:
        """Return what the kernel writes.

        Args:
            inputs: An array of numpy per parameter.
            outputs: Shape and dtype of every result.

        Raises:
            VerificationError: arrays that do not fit.
        """
        count = len(inputs)
        written = self._slices[count:]
        buffers = [
            aligned(np.array(array, order="C") if slice_ in written else np.ascontiguousarray(array))
            for array, slice_ in zip(map(packed_array, inputs), self._slices, strict=False)
        ]
        for output, slice_ in zip(outputs, written, strict=True):
            shape, dtype = buffer_form(*output)
            same = self._slices.index(slice_)
            is_new = same >= len(buffers)
            buffers.append(aligned(np.empty(shape, dtype)) if is_new else buffers[same].view(dtype).reshape(shape))
        self.run_into(buffers)
        return [unpacked_array(array, *output) for array, output in zip(buffers[count:], outputs, strict=True)]

    def run_into(self, buffers: Sequence[Any]) -> None:
        """Run all blocks over buffers: parameters, then results.

        Raises:
            VerificationError: there are too few or too many, one has another size, or not all threads of a block reach
                a barrier.
        """
        buffer_sizes = tuple(buffer.nbytes for buffer in buffers)
        if tuple(max(1, size) for size in buffer_sizes) != self._sizes:
            message = f"the kernel takes buffers of {_listed(self._sizes)} bytes, there are {_listed(buffer_sizes)}"
            raise VerificationError(Diagnostic("run-arguments", message, op=self.name))
        if self._quick_runs:
            self._quick_runs -= 1
            # Of a kernel with many branches all code is compiled quickly.
            if not self._quick_runs and not has_many_branches(parse(self.llvm)):
                self._call = self._compiled(is_quick=False)
        pointers = (ctypes.c_void_p * len(buffers))(*(buffer.ctypes.data for buffer in buffers))
        if self._call(ctypes.cast(pointers, ctypes.c_void_p), 0, self._blocks):
            message = "threads of a block wait at different barriers, or some of them at none"
            hint = "run the kernel in the interpreter, which names the thread and the barrier"
            raise VerificationError(Diagnostic("non-uniform-barrier", message, op=self.name, hint=hint))


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(str(size) for size in sizes)


def compile_host(module: builtin.ModuleOp, launch: Launch, *, warp: int = H100.threads_per_warp) -> HostKernel:
    """Return a kernel that this processor runs; where its buffers are small, it begins with quickly compiled code.

    Args:
        module: The module after the last pass; it is changed.
        launch: The grid.
        warp: The threads of a warp, whose lanes combine values.

    Raises:
        UnsupportedError: an op has no instructions.
        VerificationError: LLVM refuses the kernel.
    """
    (entry,) = [function for function in functions(module) if ENTRY in function.attributes]
    sizes, slices = (_facts(entry, name) for name in ("llvm.dereferenceable", SLICE))
    text, name = host_text(module, launch, warp=warp), entry.sym_name.data
    return HostKernel(text, name, prod(launch.blocks), sizes, slices, is_quick=sum(sizes) <= SMALL_BYTES)


def host_text(module: builtin.ModuleOp, launch: Launch, *, warp: int = H100.threads_per_warp) -> str:
    """Return a kernel for the host as text for LLVM: a function per phase, and one that runs blocks.

    Args:
        module: The module after the last pass; it is changed.
        launch: The grid.
        warp: The threads of a warp, whose lanes combine values.

    Raises:
        UnsupportedError: an op or a type has no text.
    """
    writer = ModuleWriter(HOST, index_width(module))
    tiles = []
    for op in module.body.block.ops:
        if isinstance(op, llvm.GlobalOp) and op.value is None:
            tiles.append(_tile(op, writer))
        elif isinstance(op, llvm.GlobalOp):
            writer.globals.append(global_text(op, writer))
        elif isinstance(op, func.FuncOp) and not op.body.blocks:
            declare_function(op, writer)
    phases = None
    for function in functions(module):
        if ENTRY in function.attributes:
            buffers = len(function.body.blocks[0].args)
            straighten_tiles(module, function, launch)
            phases = write_phases(function, writer, launch, tiles, warp=warp)
        else:
            writer.functions.append(function_text(function, writer))
    assert phases is not None
    return f"{writer.text}\n{grid_text(phases, buffers, launch)}\n{METADATA}\n"


def _tile(op: llvm.GlobalOp, writer: ModuleWriter) -> Storage:
    array = op.global_type
    assert isinstance(array, llvm.LLVMArrayType)
    return Storage(f"%{op.sym_name.data}", writer.type(array.type), array.size.data)


def _facts(entry: func.FuncOp, name: str) -> list[int]:
    """Return an integer attribute of every argument."""
    from shardy_py.kernels.passes.buffer_facts import argument_attributes

    numbers = []
    for number in range(len(entry.body.blocks[0].args)):
        fact = argument_attributes(entry, number)[name]
        assert isinstance(fact, builtin.IntegerAttr)
        numbers.append(fact.value.data)
    return numbers


def _linked(text: str, name: str, *, is_quick: bool) -> tuple[Any, Any]:
    """Compile a text and link it; return the compiler and the library, which live as long as the kernel."""
    llvm_binding = binding()
    module = parse(text)
    is_quick = is_quick or has_many_branches(module)
    machine = host_machine(is_quick=is_quick)
    # Loops of threads that wait for each other, or that have tiles of their own, are long enough as they are: longer
    # ones take LLVM twice the time.
    has_long_loops = "alloca" in text or any(function.name == f"{name}.1" for function in module.functions)
    vectorize = not is_quick and not may_wrap(text)
    optimize(module, machine, vectorize=vectorize, unroll=not has_long_loops, is_quick=is_quick)
    code = machine.emit_object(module)
    compiler = llvm_binding.create_lljit_compiler()
    builder = llvm_binding.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(GRID)
    try:
        library = builder.link(compiler, f"{name}_{next(_NUMBERS)}")
    except RuntimeError as error:
        message = f"the kernel calls what this process does not have: {str(error).strip()}"
        raise VerificationError(Diagnostic("host-link", message, op=name)) from None
    return compiler, library

"""Machine code of the host: a kernel's grid as loops over blocks and threads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import count
from math import prod
from typing import Any, final

import numpy as np
from xdsl.dialects import builtin, func

from shardy_py.emitters.entry.arguments import ENTRY, SLICE
from shardy_py.emitters.launch.grid import Launch
from shardy_py.emitters.lower.llvm import ID_ARGUMENTS, llvm_text
from shardy_py.emitters.lower.machine import binding, host_machine, optimize, parse
from shardy_py.emitters.lower.target import HOST
from shardy_py.emitters.passes.base import functions
from shardy_py.emitters.run.memory import aligned
from shardy_py.errors import Diagnostic, VerificationError

GRID = "run_grid"
_NUMBERS = count()


@final
class HostKernel:
    """A kernel that this processor runs.

    Args:
        llvm: Its text for LLVM, with the loops.
        name: Its name.
        blocks: The number of blocks.
        sizes: The bytes of every buffer.
        slices: The number of every buffer; equal ones are the same memory.
    """

    def __init__(self, llvm: str, name: str, blocks: int, sizes: Sequence[int], slices: Sequence[int]) -> None:
        self.llvm = llvm
        self.name = name
        self._blocks = blocks
        self._sizes = tuple(sizes)
        self._slices = tuple(slices)
        # What runs is gone as soon as the compiler or the library is.
        self._compiler, self._library = _linked(llvm, name)
        type_ = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self._call = type_(self._library[GRID])

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
            for array, slice_ in zip(inputs, self._slices, strict=False)
        ]
        for (shape, dtype), slice_ in zip(outputs, written, strict=True):
            same = self._slices.index(slice_)
            is_new = same >= len(buffers)
            buffers.append(aligned(np.empty(shape, dtype)) if is_new else buffers[same].view(dtype).reshape(shape))
        self.run_into(buffers)
        return buffers[count:]

    def run_into(self, buffers: Sequence[Any]) -> None:
        """Run all blocks over buffers: parameters, then results.

        Raises:
            VerificationError: there are too few or too many, or one has another size.
        """
        found = tuple(buffer.nbytes for buffer in buffers)
        if tuple(max(1, size) for size in found) != self._sizes:
            message = f"the kernel takes buffers of {_listed(self._sizes)} bytes, there are {_listed(found)}"
            raise VerificationError(Diagnostic("run-arguments", message, op=self.name))
        pointers = (ctypes.c_void_p * len(buffers))(*(buffer.ctypes.data for buffer in buffers))
        self._call(ctypes.cast(pointers, ctypes.c_void_p), 0, self._blocks)


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(str(size) for size in sizes)


def compile_host(module: builtin.ModuleOp, launch: Launch) -> HostKernel:
    """Return a kernel that this processor runs.

    Args:
        module: The module after the last pass.
        launch: The grid.

    Raises:
        UnsupportedError: an op has no instructions.
        VerificationError: LLVM refuses the kernel.
    """
    (entry,) = [function for function in functions(module) if ENTRY in function.attributes]
    sizes, slices = (_facts(entry, name) for name in ("llvm.dereferenceable", SLICE))
    name = entry.sym_name.data
    text = llvm_text(module, launch, HOST) + "\n" + grid_text(name, len(sizes), launch)
    return HostKernel(text, name, prod(launch.blocks), sizes, slices)


def _facts(entry: func.FuncOp, name: str) -> list[int]:
    """Return the number that an attribute says of every argument."""
    from shardy_py.emitters.passes.propagate_slice_indices import argument_attributes

    found = []
    for number in range(len(entry.body.blocks[0].args)):
        fact = argument_attributes(entry, number)[name]
        assert isinstance(fact, builtin.IntegerAttr)
        found.append(fact.value.data)
    return found


def grid_text(name: str, buffers: int, launch: Launch) -> str:
    """Return the function that runs some blocks of a kernel: a loop over blocks around loops over threads.

    Args:
        name: The kernel's name.
        buffers: The number of its buffers.
        launch: The grid.
    """
    lines = [f"define void @{GRID}(ptr %buffers, i64 %first, i64 %last) nounwind {{", "entry:"]
    for number in range(buffers):
        lines.append(f"  %place{number} = getelementptr ptr, ptr %buffers, i64 {number}")
        lines.append(f"  %buffer{number} = load ptr, ptr %place{number}")
    lines += ["  br label %blocks", "blocks:"]
    lines += ["  %block = phi i64 [ %first, %entry ], [ %block.next, %blocks.next ]"]
    lines += ["  %block.more = icmp slt i64 %block, %last", "  br i1 %block.more, label %threads.z, label %done"]
    x, y, _ = launch.blocks
    lines += ["threads.z:", f"  %block.row = udiv i64 %block, {x}"]
    for axis, text in (("x", f"urem i64 %block, {x}"), ("y", f"urem i64 %block.row, {y}")):
        lines.append(f"  %block.wide.{axis} = {text}")
    lines.append(f"  %block.wide.z = udiv i64 %block.row, {y}")
    lines += [f"  %block.{axis} = trunc nuw i64 %block.wide.{axis} to i32" for axis in "xyz"]
    lines.append("  br label %threads.z.head")
    lines += _thread_loops(name, buffers, launch)
    lines += ["blocks.next:", "  %block.next = add nsw i64 %block, 1", "  br label %blocks"]
    return "\n".join([*lines, "done:", "  ret void", "}"]) + "\n"


def _thread_loops(name: str, buffers: int, launch: Launch) -> list[str]:
    """Return the loops over the threads of a block, along x innermost."""
    arguments = [f"ptr %buffer{number}" for number in range(buffers)] + [f"i32 {item}" for item in ID_ARGUMENTS]
    outer = {"z": "threads.z", "y": "threads.z.head", "x": "threads.y.head"}
    after = {"z": "blocks.next", "y": "threads.z.next", "x": "threads.y.next"}
    inner = {"z": "threads.y.head", "y": "threads.x.head"}
    lines: list[str] = []
    for axis in "zyx":
        lines += [f"threads.{axis}.head:"]
        back = f"threads.{axis}.next" if axis != "x" else "threads.x.head"
        lines += [f"  %thread.{axis} = phi i32 [ 0, %{outer[axis]} ], [ %thread.{axis}.next, %{back} ]"]
        if axis in inner:
            lines += [f"  br label %{inner[axis]}"]
        else:
            lines += [f"  call void @{name}({', '.join(arguments)})", *_step(axis, launch, after[axis])]
    for axis in "yz":
        lines += [f"threads.{axis}.next:", *_step(axis, launch, after[axis])]
    return lines


def _step(axis: str, launch: Launch, after: str) -> list[str]:
    size = launch.threads["xyz".index(axis)]
    return [
        f"  %thread.{axis}.next = add nuw nsw i32 %thread.{axis}, 1",
        f"  %thread.{axis}.more = icmp ult i32 %thread.{axis}.next, {size}",
        f"  br i1 %thread.{axis}.more, label %threads.{axis}.head, label %{after}",
    ]


def _linked(text: str, name: str) -> tuple[Any, Any]:
    """Compile a text and link it; return the compiler and the library, which live as long as the kernel."""
    llvm = binding()
    machine = host_machine()
    module = parse(text)
    optimize(module, machine, vectorize=True)
    code = machine.emit_object(module)
    compiler = llvm.create_lljit_compiler()
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(GRID)
    try:
        library = builder.link(compiler, f"{name}_{next(_NUMBERS)}")
    except RuntimeError as error:
        message = f"the kernel calls what this process does not have: {str(error).strip()}"
        raise VerificationError(Diagnostic("host-link", message, op=name)) from None
    return compiler, library

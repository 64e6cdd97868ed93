"""Running PTX on a GPU of this machine, through NVIDIA's driver."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from shardy_py.errors import Diagnostic, OptionError, VerificationError, require_library
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.run.values import buffer_form, packed_array, unpacked_array
from shardy_py.values import frozen

_NO_GPU = "run it in the interpreter or on the host, which need none"
_WARM_UP = 3
_LAUNCHES = 20
_TABLE = -1
"""The number of the memory that holds the pointers to all buffers."""


@frozen
class Timing:
    """The time of a kernel on a GPU.

    Args:
        device: The name of the GPU.
        seconds: That of one launch, in the fastest of several rows of launches that wait for nothing but each other.
    """

    device: str
    seconds: float


def nvidia_driver() -> Any:
    """Return the interface to NVIDIA's driver.

    Raises:
        OptionError: cuda-bindings is missing.
    """
    require_library("cuda.bindings.driver", purpose="running a kernel on a GPU needs", extra="cuda")
    from cuda.bindings import driver

    return driver


def entry_name(ptx: str) -> str:
    """Return the name of the first kernel in a text.

    Raises:
        VerificationError: there is none.
    """
    match = re.search(r"\.entry\s+([\w$]+)", ptx)
    if match is None:
        hint = "give the text of a kernel, as 'shardy emit --target ptx' prints it"
        raise VerificationError(Diagnostic("no-ptx", "the text has no kernel of PTX", hint=hint))
    return match[1]


def _takes_table(ptx: str) -> bool:
    """Return whether a kernel has one parameter, which is the address of all pointers where it has several buffers."""
    signature = re.search(r"\.entry\s+[\w$]+\s*\(([^)]*)\)", ptx)
    return signature is not None and signature[1].count(".param") == 1


def entry_threads(ptx: str) -> tuple[int, int, int] | None:
    """Return the block size that a kernel requires, or None where it does not say."""
    match = re.search(r"\.reqntid\s+(\d+)(?:,\s*(\d+))?(?:,\s*(\d+))?", ptx)
    if match is None:
        return None
    x, y, z = (int(size or 1) for size in match.groups())
    return (x, y, z)


@final
class DeviceKernel:
    """A kernel that a GPU runs.

    Args:
        ptx: Its text.
        name: Its name.
        launch: Its grid.
        slices: The number of every buffer, of parameters, then of results; equal ones are the same memory.
        driver: The driver; by default that of this machine.
    """

    def __init__(self, ptx: str, name: str, launch: Launch, slices: Sequence[int], driver: Any = None) -> None:
        self._ptx = ptx
        self._name = name
        self._launch = launch
        self._slices = tuple(slices)
        self._has_table = len(self._slices) > 1 and _takes_table(ptx)
        self._driver = nvidia_driver() if driver is None else driver

    def run(self, inputs: Sequence[Any], outputs: Sequence[tuple[Sequence[int], Any]]) -> list[Any]:
        """Return what the kernel writes.

        Args:
            inputs: An array of numpy per parameter.
            outputs: Shape and dtype of every result.

        Raises:
            OptionError: there is no GPU.
            VerificationError: the driver refuses the kernel, or it fails.
        """
        with self._loaded(inputs, outputs) as (function, memory, _):
            self._start(function, memory)
            self._call("cuCtxSynchronize")
            results = []
            for output, slice_ in zip(outputs, self._slices[len(inputs) :], strict=True):
                buffer = np.empty(*buffer_form(*output))
                self._call("cuMemcpyDtoH", buffer.ctypes.data, memory[slice_], buffer.nbytes)
                results.append(unpacked_array(buffer, *output))
            return results

    def time(self, inputs: Sequence[Any], outputs: Sequence[tuple[Sequence[int], Any]], *, runs: int = 20) -> Timing:
        """Return how long the kernel takes.

        Args:
            inputs: An array of numpy per parameter.
            outputs: Shape and dtype of every result.
            runs: How often it is run.

        Raises:
            OptionError: there is no GPU.
            VerificationError: the driver refuses the kernel, or it fails.
        """
        with self._loaded(inputs, outputs) as (function, memory, device), self._row(function, memory) as (stream, row):
            first, last = (self._call("cuEventCreate", 0) for _ in range(2))
            seconds = []
            for number in range(_WARM_UP + runs):
                self._call("cuEventRecord", first, stream)
                self._call("cuGraphLaunch", row, stream)
                self._call("cuEventRecord", last, stream)
                self._call("cuEventSynchronize", last)
                if number >= _WARM_UP:
                    seconds.append(self._call("cuEventElapsedTime", first, last) / 1000)
            return Timing(device, min(seconds) / _LAUNCHES)

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call the driver and return its result."""
        error, *results = getattr(self._driver, name)(*arguments)
        if error != self._driver.CUresult.CUDA_SUCCESS:
            message = f"{name} of NVIDIA's driver fails: {getattr(error, 'name', error)}"
            raise VerificationError(Diagnostic("cuda-error", message, op=self._name))
        return results[0] if results else None

    def _device(self) -> Any:
        """Return the first GPU.

        Raises:
            OptionError: there is none.
        """
        try:
            error, *_ = self._driver.cuInit(0)
        except (RuntimeError, OSError) as missing:
            message = f"this machine has no driver of NVIDIA: {str(missing).splitlines()[0]}"
            raise OptionError(Diagnostic("no-gpu", message, op=self._name, hint=_NO_GPU)) from None
        if error != self._driver.CUresult.CUDA_SUCCESS:
            message = f"this machine has no GPU of NVIDIA: {getattr(error, 'name', error)}"
            raise OptionError(Diagnostic("no-gpu", message, op=self._name, hint=_NO_GPU))
        return self._call("cuDeviceGet", 0)

    @contextmanager
    def _loaded(
        self, inputs: Sequence[Any], outputs: Sequence[tuple[Sequence[int], Any]]
    ) -> Iterator[tuple[Any, dict[int, Any], str]]:
        """Load the kernel and fill its buffers; yield it, the memory of every slice and the name of the GPU."""
        device = self._device()
        self._call("cuCtxSetCurrent", self._call("cuDevicePrimaryCtxRetain", device))
        memory: dict[int, Any] = {}
        module = None
        try:
            module = self._call("cuModuleLoadData", self._ptx.encode() + b"\0")
            function = self._call("cuModuleGetFunction", module, self._name.encode())
            self._fill(memory, inputs, outputs)
            name = self._call("cuDeviceGetName", 256, device).split(b"\0")[0].decode()
            yield function, memory, name
        finally:
            for place in memory.values():
                self._call("cuMemFree", place)
            if module is not None:
                self._call("cuModuleUnload", module)
            self._call("cuDevicePrimaryCtxRelease", device)

    def _fill(
        self, memory: dict[int, Any], inputs: Sequence[Any], outputs: Sequence[tuple[Sequence[int], Any]]
    ) -> None:
        for array, slice_ in zip(map(packed_array, inputs), self._slices, strict=False):
            contiguous = np.ascontiguousarray(array)
            memory[slice_] = self._call("cuMemAlloc", max(1, contiguous.nbytes))
            self._call("cuMemcpyHtoD", memory[slice_], contiguous.ctypes.data, contiguous.nbytes)
        for output, slice_ in zip(outputs, self._slices[len(inputs) :], strict=True):
            shape, dtype = buffer_form(*output)
            if slice_ not in memory:
                size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
                memory[slice_] = self._call("cuMemAlloc", max(1, size))
        if self._has_table:
            table = np.array([int(memory[slice_]) for slice_ in self._slices], np.uint64)
            memory[_TABLE] = self._call("cuMemAlloc", table.nbytes)
            self._call("cuMemcpyHtoD", memory[_TABLE], table.ctypes.data, table.nbytes)

    @contextmanager
    def _row(self, function: Any, memory: dict[int, Any]) -> Iterator[tuple[Any, Any]]:
        """Record launches as a graph, which takes the host's time out of theirs; yield its stream and the graph."""
        stream = self._call("cuStreamCreate", 0)
        try:
            self._call("cuStreamBeginCapture", stream, self._driver.CUstreamCaptureMode(0))
            for _ in range(_LAUNCHES):
                self._start(function, memory, stream)
            graph = self._call("cuStreamEndCapture", stream)
            row = self._call("cuGraphInstantiate", graph, 0)
            yield stream, row
            self._call("cuGraphExecDestroy", row)
            self._call("cuGraphDestroy", graph)
        finally:
            self._call("cuStreamDestroy", stream)

    def _start(self, function: Any, memory: dict[int, Any], stream: Any = 0) -> None:
        pointers = tuple(memory[slice_] for slice_ in ([_TABLE] if self._has_table else self._slices))
        arguments = (tuple(int(pointer) for pointer in pointers), (ctypes.c_void_p,) * len(pointers))
        self._call("cuLaunchKernel", function, *self._launch.blocks, *self._launch.threads, 0, stream, arguments, 0)

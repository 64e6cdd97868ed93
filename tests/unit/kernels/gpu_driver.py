"""A stand-in for NVIDIA's driver."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

OK = 0


class Driver:
    """A driver whose device is this process: it runs kernels by a function over their buffers."""

    CUresult = SimpleNamespace(CUDA_SUCCESS=OK)
    CUstreamCaptureMode = int

    def __init__(self, run: Any, *, init: int = OK, launch: int = OK) -> None:
        self.calls: list[str] = []
        self.launches: list[tuple[int, ...]] = []
        self._run = run
        self._errors = {"cuInit": init, "cuLaunchKernel": launch}
        self._memory: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append(name)
            if self._errors.get(name, OK) != OK:
                return (self._errors[name],)
            method = getattr(type(self), f"_{name}", None)
            return (OK, *((1,) if method is None else method(self, *arguments)))

        return call

    def _cuDeviceGetName(self, *_: Any) -> tuple[bytes]:
        return (b"Stand-in\0\0",)

    def _cuMemAlloc(self, size: int) -> tuple[int]:
        held = ctypes.create_string_buffer(size)
        self._memory[ctypes.addressof(held)] = held
        return (ctypes.addressof(held),)

    def _cuMemFree(self, place: int) -> tuple[()]:
        del self._memory[place]
        return ()

    def _cuMemcpyHtoD(self, target: int, source: int, size: int) -> tuple[()]:
        ctypes.memmove(target, source, size)
        return ()

    _cuMemcpyDtoH = _cuMemcpyHtoD

    def _cuModuleLoadData(self, text: bytes) -> tuple[str]:
        assert text.endswith(b"\0")
        return ("module",)

    def _cuEventElapsedTime(self, *_: Any) -> tuple[float]:
        return (0.25,)

    def _cuLaunchKernel(self, _: Any, *rest: Any) -> tuple[()]:
        self.launches.append(rest[:6])
        values, types = rest[8]
        assert len(values) == len(types)
        self._run([self._memory[value] for value in values])
        return ()

    @property
    def is_clean(self) -> bool:
        """Whether all memory was given back."""
        return not self._memory

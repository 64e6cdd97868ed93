"""Targets of the text of LLVM: a device, or the host."""

from __future__ import annotations

from shardy_py.values import frozen

NVPTX_TRIPLE = "nvptx64-nvidia-cuda"
NVPTX_LAYOUT = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"


@frozen
class Target:
    """A processor that kernels are lowered for.

    Args:
        triple: LLVM's name of it; none for the host.
        layout: LLVM's layout of data; none for the host.
        has_bfloat: Whether ``bf16`` is a type of it; else these are integers of 16 bits that are rounded by integers.
        memory_space: The address space of buffers.
        has_libdevice: Whether functions are those of libdevice.
    """

    triple: str = ""
    layout: str = ""
    has_bfloat: bool = False
    memory_space: int = 0
    has_libdevice: bool = True

    @property
    def is_device(self) -> bool:
        """True if ids of threads come from registers; the host passes them."""
        return bool(self.triple)

    @property
    def pointer(self) -> str:
        """The type of pointers to buffers."""
        return f"ptr addrspace({self.memory_space})" if self.memory_space else "ptr"


HOST = Target()


def nvptx(*, has_libdevice: bool) -> Target:
    """Return the target of devices with ``sm_80`` or later.

    Args:
        has_libdevice: Whether the library of functions is there.
    """
    return Target(NVPTX_TRIPLE, NVPTX_LAYOUT, has_bfloat=True, memory_space=1, has_libdevice=has_libdevice)

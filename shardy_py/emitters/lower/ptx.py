"""PTX of a kernel, by LLVM's target NVPTX."""

from __future__ import annotations

from pathlib import Path

from shardy_py.emitters.device import DeviceSpec
from shardy_py.emitters.lower.machine import device_machine, link_functions, optimize, parse


def ptx_text(llvm: str, name: str, device: DeviceSpec, libdevice: Path | None) -> str:
    """Return a kernel as PTX.

    Args:
        llvm: The kernel as text for LLVM.
        name: Its name.
        device: The device.
        libdevice: The library of functions, if the text calls it.

    Raises:
        VerificationError: LLVM refuses the text.
    """
    module = parse(llvm)
    if libdevice is not None and "@__nv_" in llvm:
        link_functions(module, libdevice, keep=name)
    machine = device_machine(device.capability)
    optimize(module, machine, vectorize=False)
    return str(machine.emit_assembly(module))

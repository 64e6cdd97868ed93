"""Registers and spills of a kernel, by NVIDIA's assembler where there is one."""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from pathlib import Path

from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.requirements import find_libdevice
from shardy_py.support.processes.start import messages_of
from shardy_py.values import frozen

_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill (?:stores|loads)")
_SECONDS = 120
_REGISTERS_PER_CORE = 65536
_GRANULE = 256
"""The registers of a core, and those of a warp in one step of their allocation, on devices since Maxwell."""


@frozen
class MachineCode:
    """The registers and the memory that machine code of a kernel takes.

    Args:
        registers: The registers of a thread.
        spilled: The bytes that a thread writes and reads as it has not registers enough.
    """

    registers: int
    spilled: int

    def warps(self, device: DeviceSpec) -> int:
        """Return the warps for which a core has registers."""
        per_warp = -(-self.registers * device.threads_per_warp // _GRANULE) * _GRANULE
        return max(1, _REGISTERS_PER_CORE // max(_GRANULE, per_warp))


def machine_code(ptx: str, device: DeviceSpec) -> MachineCode | None:
    """Return registers and spills of a kernel; None without an assembler, or where it is older than the PTX.

    Args:
        ptx: The kernel.
        device: The device.
    """
    program = find_assembler()
    if program is None:
        return None
    arguments = ["-v", f"-arch=sm_{device.capability}", "-o", os.devnull, "-"]
    messages = messages_of(program, arguments, ptx, seconds=_SECONDS) or ""
    registers = _REGISTERS.search(messages)
    if registers is None:
        return None
    return MachineCode(int(registers[1]), sum(map(int, _SPILLS.findall(messages))))


@cache
def find_assembler() -> str | None:
    """Return the path of ``ptxas``: beside libdevice in NVIDIA's wheels or ``CUDA_HOME``, or on the search path."""
    library = find_libdevice()
    folders = [] if library is None else [parent / "bin" for parent in Path(library).parents[:3]]
    paths = (shutil.which("ptxas", path=str(folder)) for folder in folders)
    return next((path for path in paths if path is not None), shutil.which("ptxas"))

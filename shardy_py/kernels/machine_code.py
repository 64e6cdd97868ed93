"""Registers, spills and instructions of a kernel, by NVIDIA's assembler and disassembler where there are such."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path

from shardy_py.errors import Diagnostic, OptionError, VerificationError
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.requirements import find_libdevice
from shardy_py.support.processes.start import messages_of, output_of
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


def sass_text(ptx: str, device: DeviceSpec, *, with_lines: bool = False) -> str:
    """Return the instructions of a device that PTX becomes, as NVIDIA's disassembler prints them.

    Args:
        ptx: The kernel.
        device: The device.
        with_lines: Whether comments name the lines that PTX has for the instructions.

    Raises:
        OptionError: there is no assembler or no disassembler.
        VerificationError: the assembler refuses the kernel; it may be older than the PTX.
    """
    programs = [(name, find_program(name)) for name in ("ptxas", "nvdisasm")]
    missing = [name for name, path in programs if path is None]
    if missing:
        message = f"instructions of a device need programs that are not here: {', '.join(missing)}"
        hint = "they are part of NVIDIA's CUDA toolkit: set CUDA_HOME or PATH; PTX needs neither"
        raise OptionError(Diagnostic("no-disassembler", message, hint=hint))
    assembler, disassembler = (str(path) for _, path in programs)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "kernel.cubin")
        arguments = [f"-arch=sm_{device.capability}", "-o", file, "-", *(["-lineinfo"] if with_lines else [])]
        assembled = messages_of(assembler, arguments, ptx, seconds=_SECONDS)
        printed = ["-c", file, *(["-g"] if with_lines else [])]
        text = None if assembled is None else output_of(disassembler, printed, "", seconds=_SECONDS)
    if text is None:
        message = f"{'ptxas' if assembled is None else 'nvdisasm'} does not take the kernel"
        hint = f"it may be older than sm_{device.capability}; --target ptx prints what it was given"
        raise VerificationError(Diagnostic("machine-code", message, hint=hint))
    return text


def find_assembler() -> str | None:
    """Return the path of ``ptxas``, or None."""
    return find_program("ptxas")


@cache
def find_program(name: str) -> str | None:
    """Return the path of a program: beside libdevice in NVIDIA's wheels or ``CUDA_HOME``, or on the search path."""
    library = find_libdevice()
    folders = [] if library is None else [parent / "bin" for parent in Path(library).parents[:3]]
    paths = (shutil.which(name, path=str(folder)) for folder in folders)
    return next((path for path in paths if path is not None), shutil.which(name))

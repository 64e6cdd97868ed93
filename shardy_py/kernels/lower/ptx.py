"""PTX of a kernel, by LLVM's target NVPTX."""

from __future__ import annotations

import re
from pathlib import Path

from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.lower.machine import device_machine, link_functions, optimize, parse

_ADDRESS = re.compile(r"\tmov\.b64 \t(?P<register>%rd\d+), (?P<name>\w+_param_\d+);\n")
_CHOICE = re.compile(r"\tselp\.b64 \t(?P<register>%rd\d+), (?P<first>%rd\d+), (?P<second>%rd\d+), %p\d+;\n")
_REGISTER = re.compile(r"%rd\d+")
_READ = re.compile(r"\tld\.param\.b64 \t(?P<register>%rd\d+), \[(?P<address>%rd\d+)\];\n")


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
    return with_read_parameters(str(machine.emit_assembly(module)))


def with_read_parameters(ptx: str) -> str:
    """Return PTX that reads parameters where LLVM chooses between their addresses, and then reads the chosen one.

    Both give the same; a parameter whose address is taken is copied first. Other uses of addresses stay as they are.
    """
    addresses = {match["register"] for match in _ADDRESS.finditer(ptx)}
    choices = [(match["register"], {match["first"], match["second"]}) for match in _CHOICE.finditer(ptx)]
    # The choice among three is one between the third and what was chosen of two.
    for _ in choices:
        addresses |= {register for register, among in choices if among <= addresses}
    lines = []
    for line in ptx.splitlines(keepends=True) if addresses else ():
        named = addresses.intersection(_REGISTER.findall(line))
        address, choice, read = (pattern.fullmatch(line) for pattern in (_ADDRESS, _CHOICE, _READ))
        if address is not None:
            line = f"\tld.param.b64 \t{address['register']}, [{address['name']}];\n"
        elif read is not None and named == {read["address"]}:
            line = f"\tmov.b64 \t{read['register']}, {read['address']};\n"
        elif named and (choice is None or len(named) < len({*_REGISTER.findall(line)})):
            return ptx
        lines.append(line)
    return "".join(lines) or ptx

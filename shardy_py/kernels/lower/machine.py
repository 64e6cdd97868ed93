"""LLVM through llvmlite: parsing, optimizing, target machines, and PTX by the target NVPTX."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError, VerificationError, require_library
from shardy_py.kernels.device import DeviceSpec

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
    is_quick = has_many_branches(module)
    machine = device_machine(device.capability, is_quick=is_quick)
    optimize(module, machine, vectorize=False, is_quick=is_quick)
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


# Quotients and square roots of f32 as XLA:GPU has them: off by two units in the last place at most.
_DEVICE_OPTIONS = ("-nvptx-prec-divf32=1", "-nvptx-prec-sqrtf32=0")

_CAPABILITIES = (60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121)
"""The compute capabilities that LLVM 22 knows, of devices that add doubles atomically."""

_MOST_BRANCHES = 1_000
"""The most conditional branches of a function on which LLVM runs all its passes.

Some, as the elimination of constraints, look at all conditions on a value wherever the value is used, so that their
time grows with the square of the branches of a search among thousands of operands.
"""

_OPTIONS = (
    "-enable-interleaved-mem-accesses=true",
    "-enable-masked-interleaved-mem-accesses=true",
    "-loop-load-elimination-scev-check-threshold=0",
)
"""Options of LLVM for the whole process: vectors of every n-th element, no loads left out behind checks of places."""


@cache
def binding() -> Any:
    """Return llvmlite's interface to LLVM, with all targets known.

    Raises:
        OptionError: llvmlite is missing.
    """
    require_library("llvmlite", purpose="machine code of kernels needs", extra="codegen")
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    for option in _OPTIONS:
        llvm.set_option("shardy", option)
    return llvm


def parse(text: str) -> Any:
    """Return a module of LLVM.

    Raises:
        VerificationError: LLVM refuses the text.
    """
    try:
        module = binding().parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        message = f"LLVM refuses the kernel: {str(error).strip()}"
        raise VerificationError(Diagnostic("llvm-refused", message)) from None
    return module


def has_many_branches(module: Any) -> bool:
    """Return whether a function has so many branches that LLVM runs its linear passes only."""
    return any(str(function).count("  br i1 ") > _MOST_BRANCHES for function in module.functions)


@cache
def device_machine(capability: int, *, is_quick: bool = False) -> Any:
    """Return the machine of devices of a compute capability.

    Args:
        capability: The capability.
        is_quick: Whether instructions are chosen in linear time, not as well as LLVM can.

    Raises:
        UnsupportedError: LLVM does not know it; asked all the same, LLVM ends the process.
    """
    if capability not in _CAPABILITIES:
        message = f"{capability} is not a compute capability that LLVM writes kernels for"
        hint = f"the capability of the device spec may be {', '.join(map(str, _CAPABILITIES))}"
        raise UnsupportedError(Diagnostic("device-capability", message, hint=hint))
    # LLVM has these options for the whole process; other targets do not read them.
    for option in _DEVICE_OPTIONS:
        binding().set_option("shardy", option)
    target = binding().Target.from_triple("nvptx64-nvidia-cuda")
    # LLVM writes the first version of PTX that a device has; shuffles came with 6.0, vectors of atomics with 8.1.
    features = "+ptx60" if capability < 70 else "+ptx81" if capability == 90 else ""
    return target.create_target_machine(cpu=f"sm_{capability}", features=features, opt=0 if is_quick else 3)


@cache
def host_machine(*, is_quick: bool = False) -> Any:
    """Return the machine of this processor.

    Args:
        is_quick: Whether instructions are chosen in linear time, not as well as LLVM can.
    """
    llvm_binding = binding()
    features = llvm_binding.get_host_cpu_features().flatten()
    target = llvm_binding.Target.from_triple(llvm_binding.get_process_triple())
    return target.create_target_machine(
        cpu=llvm_binding.get_host_cpu_name(),
        features=features,
        opt=0 if is_quick else 3,
        reloc="pic",
        codemodel="jitdefault",
        jit=True,
    )


def optimize(
    module: Any,
    machine: Any,
    *,
    vectorize: bool,
    unroll: bool = True,
    is_quick: bool = False,
) -> None:
    """Run LLVM's passes, in place.

    Args:
        module: The module.
        machine: The machine that it is for.
        vectorize: Whether steps of loops are united in vectors; equal instructions beside each other always are. Must
            be False where places in memory begin again while a loop goes on: LLVM 22 takes a remainder by a power of
            two for a number that grows, and checks at most that the loop's own counter does not begin again.
        unroll: Whether bodies of loops are repeated beyond what vectors need.
        is_quick: Whether only those passes run whose time is linear in the branches of a function.
    """
    options = binding().create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = vectorize
    options.slp_vectorization = True
    options.loop_interleaving = vectorize
    options.loop_unrolling = unroll
    builder = binding().create_pass_builder(machine, options)
    if is_quick:
        _simplify(module, builder)
        return
    builder.getModulePassManager().run(module, builder)


def _simplify(module: Any, builder: Any) -> None:
    """Run those passes of LLVM whose time is linear in the branches of a function, in place."""
    passes = binding().create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_reassociate_pass()
    passes.add_aggressive_dce_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)


def link_functions(module: Any, library: Path, *, keep: str) -> None:
    """Add a library to a module; only one function stays visible, so that what is not used goes.

    Args:
        module: The module.
        library: A file of LLVM's bitcode.
        keep: The name of the function.
    """
    other = binding().parse_bitcode(library.read_bytes())
    other.triple, other.data_layout = module.triple, module.data_layout
    module.link_in(other)
    for function in module.functions:
        if not function.is_declaration and function.name != keep:
            function.linkage = "internal"

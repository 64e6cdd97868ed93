"""Kernels with more buffers than a device takes parameters."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from shardy_py.kernels import Kernel, emit
from shardy_py.kernels.lower.machine import device_machine, has_many_branches, optimize, parse
from shardy_py.kernels.run.device import DeviceKernel
from tests.unit.kernels.fusions import fusion_of
from tests.unit.kernels.gpu_driver import Driver

MOST = 20
"""The most parameters of a device in these tests; with the real number, kernels take seconds."""


@pytest.fixture(autouse=True, scope="module")
def most_parameters() -> Iterator[None]:
    """Devices take few parameters."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("lower.buffer_table", "passes.inline"):
            patch.setattr(f"shardy_py.kernels.{module}.MOST_PARAMETERS", MOST)
        yield


def concatenate(count: int, size: int = 2) -> Kernel:
    """The kernel that joins a number of vectors."""
    names = [f"%x{number}" for number in range(count)]
    arguments = ", ".join(f"{name}: tensor<{size}xf32>" for name in names)
    types, result = ", ".join([f"tensor<{size}xf32>"] * count), f"tensor<{size * count}xf32>"
    text = f"""func.func @main({arguments}) -> {result} {{
      %0 = stablehlo.concatenate {", ".join(names)}, dim = 0 : ({types}) -> {result}
      return %0 : {result}
    }}"""
    return emit(fusion_of(text))


@pytest.fixture(scope="module")
def many() -> Kernel:
    """A kernel with one buffer more than a device takes parameters."""
    return concatenate(MOST)


def parameters(ptx: str) -> int:
    """The number of parameters of the entry function; no other function has more than a device takes."""
    assert ".func" not in ptx
    signature = re.search(r"\.entry main\(([^)]*)\)", ptx)
    assert signature is not None
    return signature[1].count(".param")


def test_the_most_parameters_are_passed_one_by_one() -> None:
    """As many buffers as a device takes parameters are one parameter each."""
    assert parameters(concatenate(MOST - 1).ptx) == MOST


def test_more_buffers_are_passed_as_a_table(many: Kernel) -> None:
    """One buffer more, and the address of all pointers is the only parameter."""
    assert parameters(many.ptx) == 1


def test_the_host_reads_the_table(many: Kernel) -> None:
    """Machine code of the host takes every buffer from the table."""
    arrays = [np.array([number, -number], np.float32) for number in range(MOST)]
    (joined,) = many.run(*arrays, on="host")
    np.testing.assert_array_equal(joined, np.concatenate(arrays))


def test_a_device_is_passed_the_table(many: Kernel) -> None:
    """The driver is given the memory that holds the pointers to all buffers, in their order, and takes it back."""
    arrays = [np.full(2, number, np.float32) for number in range(MOST)]
    driver: Any = None

    def join(passed: list[Any]) -> None:
        (table,) = passed
        *inputs, output = (driver._memory[int(pointer)] for pointer in np.frombuffer(table, np.uint64))
        joined = np.concatenate([np.frombuffer(item, np.float32, 2) for item in inputs])
        np.frombuffer(output, np.float32)[:] = joined

    driver = Driver(join)
    on_device = DeviceKernel(many.ptx, many.name, many.launch, range(MOST + 1), driver)
    (joined,) = on_device.run(arrays, [((2 * MOST,), np.float32)])
    np.testing.assert_array_equal(joined, np.concatenate(arrays))
    assert driver.is_clean


def test_pointers_that_blocks_pass_on_are_loaded_before(many: Kernel) -> None:
    """Every pointer is loaded from the table by a block that uses it, none at the begin of the kernel."""
    first, *others = many.llvm.split("\n  br ")
    assert "load ptr" not in first
    assert sum(text.count("load ptr") for text in others) == MOST + 1


def branches(count: int) -> str:
    """A function for devices with a chain of branches, each behind a condition on the same value."""
    lines = [f"b{n}:\n  %c{n} = icmp eq i32 %x, {n}\n  br i1 %c{n}, label %end, label %b{n + 1}" for n in range(count)]
    return "\n".join(
        [
            'target triple = "nvptx64-nvidia-cuda"',
            "define ptx_kernel void @main(i32 %x, ptr addrspace(1) %p) {",
            *lines,
            f"b{count}:\n  store i32 1, ptr addrspace(1) %p\n  br label %end\nend:\n  ret void\n}}",
        ]
    )


def test_many_branches_take_the_passes_that_are_linear() -> None:
    """Beyond a number of branches LLVM runs passes in linear time; what the function does stays."""
    few, many = (parse(branches(count)) for count in (4, 1_001))
    assert (has_many_branches(few), has_many_branches(many)) == (False, True)
    machine = device_machine(90, is_quick=True)
    optimize(many, machine, vectorize=False, is_quick=True)
    assert "st.global" in machine.emit_assembly(many)

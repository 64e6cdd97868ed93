"""Kernels on a GPU, with a stand-in for its driver."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("llvmlite", reason="PTX needs the extra 'codegen'")

import numpy as np

from shardy_py.errors import OptionError, VerificationError
from shardy_py.kernels import Kernel, emit
from shardy_py.kernels.run.device import DeviceKernel
from tests.unit.kernels.fusions import NEGATE, fusion_of
from tests.unit.kernels.gpu_driver import Driver

FAILED = 700


def negate(buffers: list[Any]) -> None:
    """Negate the elements of the first buffer into the second one."""
    x = np.frombuffer(buffers[0], np.float32)
    np.frombuffer(buffers[1], np.float32)[:] = -x


def kernel_on(driver: Driver) -> tuple[Kernel, DeviceKernel]:
    """A kernel, and the same for a driver."""
    kernel = emit(fusion_of(NEGATE.format(shape="300")))
    return kernel, DeviceKernel(kernel.ptx, kernel.name, kernel.launch, [0, 1], driver)


def test_a_kernel_is_loaded_and_run() -> None:
    """Arrays are copied to the device and back; its memory, the kernel and the context are given back."""
    driver = Driver(negate)
    kernel, on_device = kernel_on(driver)
    x = np.arange(300, dtype=np.float32)
    (actual,) = on_device.run([x], [((300,), np.float32)])
    np.testing.assert_array_equal(actual, -x)
    assert driver.launches == [(*kernel.launch.blocks, *kernel.launch.threads)]
    assert driver.is_clean
    assert driver.calls[-2:] == ["cuModuleUnload", "cuDevicePrimaryCtxRelease"]


def test_one_buffer_for_parameter_and_result() -> None:
    """A result that shares the memory of a parameter is read from there."""
    driver = Driver(lambda buffers: np.frombuffer(buffers[0], np.float32).__iadd__(1))
    kernel, _ = kernel_on(driver)
    on_device = DeviceKernel(kernel.ptx, kernel.name, kernel.launch, [0, 0], driver)
    (actual,) = on_device.run([np.zeros(300, np.float32)], [((300,), np.float32)])
    assert (actual == 1).all()
    assert driver.calls.count("cuMemAlloc") == 1


def test_the_time_of_a_kernel() -> None:
    """The shortest of several rows of launches is taken, by the device's own clock, in seconds of one launch."""
    driver = Driver(negate)
    actual = kernel_on(driver)[1].time([np.zeros(300, np.float32)], [((300,), np.float32)], runs=5)
    assert (actual.device, actual.seconds) == ("Stand-in", 0.25 / 1000 / len(driver.launches))
    assert driver.calls.count("cuGraphLaunch") > 5
    assert driver.is_clean
    for creator, given_back in (("cuStreamCreate", "cuStreamDestroy"), ("cuGraphInstantiate", "cuGraphExecDestroy")):
        assert driver.calls.count(creator) == driver.calls.count(given_back) == 1


def test_without_a_gpu() -> None:
    """A machine without a GPU, or without its driver, is an error that says what else runs kernels."""
    with pytest.raises(OptionError, match="no GPU of NVIDIA") as caught:
        kernel_on(Driver(negate, init=100))[1].run([np.zeros(300, np.float32)], [((300,), np.float32)])
    assert "interpreter" in caught.value.diagnostics[0].hint

    def missing(*_: Any) -> None:
        raise RuntimeError("libcuda.so.1 is not there")

    driver = Driver(negate)
    driver.cuInit = missing  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match="no driver of NVIDIA: libcuda"):
        kernel_on(driver)[1].run([np.zeros(300, np.float32)], [((300,), np.float32)])


def test_a_kernel_that_fails() -> None:
    """An error of the driver names the call; memory is given back all the same."""
    driver = Driver(negate, launch=FAILED)
    with pytest.raises(VerificationError, match="cuLaunchKernel of NVIDIA's driver fails: 700"):
        kernel_on(driver)[1].run([np.zeros(300, np.float32)], [((300,), np.float32)])
    assert driver.is_clean


def test_the_kernel_runs_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Kernel.run` takes the GPU as it takes the host, and `Kernel.time` times its own PTX or another one."""
    driver = Driver(negate)
    monkeypatch.setattr("shardy_py.kernels.run.device.nvidia_driver", lambda: driver)
    kernel = emit(fusion_of(NEGATE.format(shape="300")))
    x = np.arange(300, dtype=np.float32)
    (actual,) = kernel.run(x, on="gpu")
    np.testing.assert_array_equal(actual, -x)
    assert kernel.time(x).seconds == kernel.time(x, ptx=kernel.ptx).seconds == 0.25 / 1000 / 20

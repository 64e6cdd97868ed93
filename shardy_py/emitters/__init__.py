"""Kernels for pieces of programs, as XLA:GPU makes them: one description of an op, from its elements to PTX."""

from shardy_py.emitters.device import DeviceSpec, device_names, get_device, parse_device
from shardy_py.emitters.fusion.fusion import Fusion
from shardy_py.emitters.kernel import Kernel, emit
from shardy_py.emitters.launch.grid import Launch
from shardy_py.emitters.pieces.coverage import KernelCoverage, UncoveredOps, kernel_coverage
from shardy_py.emitters.pieces.greedy import piece_of
from shardy_py.emitters.pieces.read import read_fusion, read_fusions

__all__ = [
    "DeviceSpec",
    "Fusion",
    "Kernel",
    "KernelCoverage",
    "Launch",
    "UncoveredOps",
    "device_names",
    "emit",
    "get_device",
    "kernel_coverage",
    "parse_device",
    "piece_of",
    "read_fusion",
    "read_fusions",
]

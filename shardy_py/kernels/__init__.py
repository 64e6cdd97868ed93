"""Kernels for pieces of programs, as XLA:GPU makes them: one description of an op, from its elements to PTX."""

from shardy_py.kernels.device import DeviceSpec, device_names, get_device, parse_device
from shardy_py.kernels.fusion.fusion import Fusion
from shardy_py.kernels.kernel import Kernel, emit
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.pieces.coverage import KernelCoverage, UncoveredOps, kernel_coverage
from shardy_py.kernels.pieces.greedy import piece_of
from shardy_py.kernels.pieces.read import read_fusion, read_fusions
from shardy_py.kernels.tiles.kernel import TileKernel, emit_tiles

__all__ = [
    "DeviceSpec",
    "Fusion",
    "Kernel",
    "KernelCoverage",
    "Launch",
    "TileKernel",
    "UncoveredOps",
    "device_names",
    "emit",
    "emit_tiles",
    "get_device",
    "kernel_coverage",
    "parse_device",
    "piece_of",
    "read_fusion",
    "read_fusions",
]

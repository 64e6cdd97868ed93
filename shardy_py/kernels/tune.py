"""Other grids of a loop kernel, ranked by what an emulated warp moves and computes, without a device.

The model: a core moves a sector of 32 bytes in some cycles, and issues some instructions of warps in one. To keep
memory busy, enough bytes have to be on their way: cycles of latency times bytes per cycle. What a kernel needs most of
decides. The numbers are those of an H100, for all devices: they rank grids, and are not times.
"""

from __future__ import annotations

from math import prod

from attrs import evolve

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.draw.accesses import SECTOR, warp_accesses
from shardy_py.kernels.fusion.choose import EmitterKind
from shardy_py.kernels.fusion.fusion import bits_of, element_type_of
from shardy_py.kernels.kernel import Kernel
from shardy_py.kernels.launch.grid import spread
from shardy_py.values import frozen

UNROLLS = (1, 2, 4, 8, 16)
THREADS = (64, 128, 256, 512, 1024)
_CYCLES_PER_SECTOR = 2.2
_ISSUED_PER_CYCLE = 4
_LATENCY = 600


@frozen(eq=False)
class TunedLaunch:
    """A grid for a kernel, with what the model says of it.

    Args:
        kernel: The kernel with this grid.
        sectors: The sectors that a warp moves, for 1000 elements.
        instructions: The instructions that a warp runs, for 1000 elements.
        in_flight: The part of the bytes on their way that keeps memory busy, at most 1.
        cycles: The cycles of a core for 1000 elements.
        reason: What these cycles are for.
    """

    kernel: Kernel
    sectors: float
    instructions: float
    in_flight: float
    cycles: float
    reason: str


def tuned_launches(kernel: Kernel) -> tuple[TunedLaunch, ...]:
    """Return the grids that a loop kernel may have, the best ones by the model first.

    Grids vary by the elements of a thread, which divide all elements, and by the threads of a block. Of equal ones the
    kernel's own comes first.

    Args:
        kernel: The kernel.

    Raises:
        UnsupportedError: the kernel is not a loop: tiles and lanes of other emitters follow from their shapes; or as
            for `Kernel.ptx`.
    """
    if kernel.choice.kind is not EmitterKind.LOOP:
        message = f"the grid of the emitter {kernel.choice.name} follows from its tiles or rows; loops are tuned"
        raise UnsupportedError(Diagnostic("tune-emitter", message, op=kernel.name))
    fusion, device = kernel.fusion, kernel.device
    root = fusion.roots[0]
    elements = fusion.elements(root)
    least = max(1, 8 // bits_of(element_type_of(root)))
    tuned = []
    for unroll in (item for item in UNROLLS if item >= least and elements % item == 0):
        sectors, instructions, read = _warp(evolve(kernel, launch=spread(elements // unroll, device, unroll=unroll)))
        for threads in (item for item in THREADS if item <= device.threads_per_block):
            launch = spread(elements // unroll, device, unroll=unroll, threads=threads)
            candidate = evolve(kernel, launch=launch)
            tuned.append(_modelled(candidate, elements, sectors, instructions, read))
    return tuple(sorted(tuned, key=lambda item: (item.cycles, item.kernel.launch != kernel.launch)))


def _warp(kernel: Kernel) -> tuple[float, float, int]:
    """Return sectors and instructions of the first warp for 1000 elements, and the bytes that it reads."""
    accesses = [access for access in warp_accesses(kernel) if not access.is_shared]
    lanes = min(kernel.device.threads_per_warp, prod(kernel.launch.threads))
    elements = lanes * kernel.launch.unroll
    instructions = sum(
        line.endswith(";") and not line.startswith((".", "//")) for line in map(str.strip, kernel.ptx.splitlines())
    )
    read = sum(access.bytes for access in accesses if not access.is_write)
    thousand = 1000 / elements
    return sum(access.sectors for access in accesses) * thousand, instructions * thousand, read


def _modelled(kernel: Kernel, elements: int, sectors: float, instructions: float, read: int) -> TunedLaunch:
    device, launch = kernel.device, kernel.launch
    per_block = -(-prod(launch.threads) // device.threads_per_warp)
    resident = device.threads_per_core // max(1, prod(launch.threads)) * per_block
    warps = min(resident, -(-prod(launch.blocks) * per_block // device.cores))
    needed = SECTOR / _CYCLES_PER_SECTOR * _LATENCY
    in_flight = min(1.0, warps * max(read, SECTOR) / needed)
    busy = min(1.0, prod(launch.blocks) / device.cores)
    memory = sectors * _CYCLES_PER_SECTOR / in_flight
    issue = instructions / _ISSUED_PER_CYCLE / min(1.0, warps / _ISSUED_PER_CYCLE)
    cycles = max(memory, issue) / busy
    reason = f"{sectors:.0f} sectors"
    if issue >= memory:
        reason = f"{instructions:.0f} instructions"
    elif in_flight < 1:
        reason += f"; {warps} warps a core have {in_flight:.0%} of the bytes on their way that hide latency"
    if busy < 1:
        reason += f"; {prod(launch.blocks)} blocks for {device.cores} cores"
    return TunedLaunch(kernel, sectors, instructions, in_flight, cycles, reason)


def format_tuned(kernel: Kernel, tuned: tuple[TunedLaunch, ...], most: int = 8) -> str:
    """Return a table of grids, the best ones first; the kernel's own is marked."""
    lines = ["cycles of a core for 1000 elements, by a model:"]
    current = next((number for number, item in enumerate(tuned) if item.kernel.launch == kernel.launch), None)
    shown = [*range(min(most, len(tuned))), *([current] if current is not None and current >= most else [])]
    for number in shown:
        item = tuned[number]
        launch = item.kernel.launch
        mark = " (as XLA)" if number == current else ""
        grid = f"{prod(launch.blocks)} x {prod(launch.threads)}, unroll {launch.unroll}{mark}"
        lines.append(f"{number + 1:3} {item.cycles:8.1f}  {grid}: {item.reason}")
    return "\n".join(lines)

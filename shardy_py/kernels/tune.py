"""Other grids of a kernel, ranked by what an emulated warp moves and computes, without a device.

The model is that of the roofline, with what a warp really moves and computes. To keep memory busy, enough bytes have to
be on their way: cycles of latency times bytes per cycle. What a kernel needs most of decides. The numbers are those of
an H100, for all devices: they rank grids, and are not times.
"""

from __future__ import annotations

import re
from math import prod

from attrs import evolve

from shardy_py.kernels.draw.accesses import WarpAccess, warp_accesses
from shardy_py.kernels.fusion.choose import EmitterKind
from shardy_py.kernels.kernel import Kernel
from shardy_py.kernels.launch.candidates import launches_for
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.machine_code import MachineCode, machine_code
from shardy_py.kernels.recompute import least_bytes
from shardy_py.kernels.roofline import CYCLES_PER_SECTOR, ISSUED_PER_CYCLE, SECTOR
from shardy_py.values import frozen

_LATENCY = 600
_MOVES = re.compile(r"\b(?:ld|st|atom|red)\.[\w.]*global")


@frozen(eq=False)
class TunedLaunch:
    """A grid for a kernel, with what the model says of it.

    Args:
        kernel: The kernel with this grid.
        sectors: The sectors that a warp moves, for 1000 elements.
        passes: The steps of the banks of shared memory, for 1000 elements.
        instructions: The instructions that a warp runs, for 1000 elements.
        in_flight: The part of the bytes on their way that keeps memory busy, at most 1.
        occupancy: The part of the warps that a core can keep.
        code: Registers and spills; None without NVIDIA's assembler.
        cycles: The cycles of a core for 1000 elements.
        reason: What these cycles are for.
    """

    kernel: Kernel
    sectors: float
    passes: float
    instructions: float
    in_flight: float
    occupancy: float
    code: MachineCode | None
    cycles: float
    reason: str


@frozen(eq=False)
class _Warp:
    """Work of the first warp: sectors, passes and instructions for 1000 elements, and the bytes that it reads."""

    sectors: float
    passes: float
    instructions: float
    read: int
    code: MachineCode | None


def tuned_launches(kernel: Kernel) -> tuple[TunedLaunch, ...]:
    """Return the grids that a kernel may have, the best ones by the model first.

    Grids vary by the elements of a thread, the threads of a block or of a row, and by the width of tiles and vectors,
    as the emitter allows. Of equal ones the kernel's own comes first.

    Args:
        kernel: The kernel.

    Raises:
        UnsupportedError: as for `Kernel.ptx`.
    """
    launches = dict.fromkeys([kernel.launch, *launches_for(kernel.choice, kernel.launch, kernel.device)])
    elements = _elements(kernel)
    by_work: dict[tuple[int, Launch | None], _Warp] = {}
    tuned = []
    for launch in launches:
        candidate = evolve(kernel, launch=launch)
        # A thread of a loop has the same work in blocks of any size.
        work = (launch.unroll, None if kernel.choice.kind is EmitterKind.LOOP else launch)
        if work not in by_work:
            by_work[work] = _warp(candidate, elements)
        tuned.append(_modelled(candidate, by_work[work]))
    return tuple(
        sorted(
            tuned, key=lambda item: (item.cycles, item.kernel.launch != kernel.launch, -prod(item.kernel.launch.blocks))
        )
    )


def _elements(kernel: Kernel) -> int:
    """Return the elements of the largest tensor that a kernel reads or writes."""
    return max(map(kernel.fusion.elements, (*kernel.fusion.parameters, *kernel.fusion.roots)))


def _warps_per_block(kernel: Kernel) -> int:
    return -(-prod(kernel.launch.threads) // kernel.device.threads_per_warp)


def _working_warps(kernel: Kernel) -> float:
    """Return the warps of all blocks; of a loop those with elements."""
    warps = prod(kernel.launch.blocks) * _warps_per_block(kernel)
    if kernel.choice.kind is not EmitterKind.LOOP:
        return warps
    elements = kernel.fusion.elements(kernel.fusion.roots[0])
    return min(warps, elements / (kernel.launch.unroll * kernel.device.threads_per_warp))


def _warp(kernel: Kernel, elements: int) -> _Warp:
    """Return what the first warp of a kernel does."""
    accesses = warp_accesses(kernel)
    moved = [access for access in accesses if not access.is_shared]
    if kernel.choice.kind is EmitterKind.LOOP:
        share: float = min(kernel.device.threads_per_warp, prod(kernel.launch.threads)) * kernel.launch.unroll
    else:
        share = elements / (prod(kernel.launch.blocks) * _warps_per_block(kernel))
    thousand = 1000 / share
    return _Warp(
        sectors=sum(access.sectors for access in moved) * thousand,
        passes=sum(access.passes for access in accesses if access.is_shared) * thousand,
        instructions=_instructions(kernel.ptx, moved) * thousand,
        read=sum(access.bytes for access in moved if not access.is_write),
        code=machine_code(kernel.ptx, kernel.device),
    )


def _instructions(ptx: str, moved: list[WarpAccess]) -> float:
    """Return the instructions that a warp runs: those of the text, as often as the accesses to memory among them."""
    lines = [line for line in map(str.strip, ptx.splitlines()) if line.endswith(";")]
    instructions = [line for line in lines if not line.startswith((".", "//"))]
    written = sum(_MOVES.search(line) is not None for line in instructions)
    return len(instructions) * max(1.0, len(moved) / max(1, written))


def _modelled(kernel: Kernel, warp: _Warp) -> TunedLaunch:
    device, launch, code = kernel.device, kernel.launch, warp.code
    per_block, most = _warps_per_block(kernel), device.threads_per_core // device.threads_per_warp
    by_registers = most if code is None else code.warps(device)
    resident = min(most, by_registers) // per_block * per_block
    blocks = prod(launch.blocks)
    warps = min(max(resident, per_block), _working_warps(kernel) / min(blocks, device.cores))
    needed = SECTOR / CYCLES_PER_SECTOR * _LATENCY
    in_flight = min(1.0, warps * max(warp.read, SECTOR) / needed)
    busy = min(1.0, blocks / device.cores)
    memory = warp.sectors * CYCLES_PER_SECTOR / in_flight
    issue = warp.instructions / ISSUED_PER_CYCLE / min(1.0, warps / ISSUED_PER_CYCLE)
    needed_cycles = max(memory, issue, warp.passes)
    reason = f"{warp.sectors:.0f} sectors"
    if needed_cycles == warp.passes:
        reason = f"{warp.passes:.0f} passes of shared memory"
    elif issue >= memory:
        reason = f"{warp.instructions:.0f} instructions"
    elif in_flight < 1:
        reason += f"; {warps:.0f} warps a core have {in_flight:.0%} of the bytes on their way that hide latency"
    if code is not None and by_registers < most:
        reason += f"; {code.registers} registers leave room for {by_registers} of {most} warps"
    if code is not None and code.spilled:
        reason += f"; {code.spilled} bytes are spilled"
    if busy < 1:
        reason += f"; {blocks} blocks for {device.cores} cores"
    return TunedLaunch(
        kernel,
        warp.sectors,
        warp.passes,
        warp.instructions,
        in_flight,
        resident / most,
        code,
        # Few digits, so that equal grids are equal.
        float(f"{needed_cycles / busy:.6g}"),
        reason,
    )


def format_tuned(kernel: Kernel, tuned: tuple[TunedLaunch, ...], most: int = 8) -> str:
    """Return a table of grids, the best ones first; the kernel's own is marked."""
    floor = sum(least_bytes(kernel)) / SECTOR / _elements(kernel) * 1000
    lines = [f"cycles of a core for 1000 elements, by a model; memory moves at least {floor:.3g} sectors for them:"]
    current = next((number for number, item in enumerate(tuned) if item.kernel.launch == kernel.launch), None)
    shown = [*range(min(most, len(tuned))), *([current] if current is not None and current >= most else [])]
    for number in shown:
        item = tuned[number]
        launch = item.kernel.launch
        mark = " (as XLA)" if number == current else ""
        grid = f"{prod(launch.blocks)} x {prod(launch.threads)}, unroll {launch.unroll}{mark}"
        lines.append(f"{number + 1:3} {item.cycles:8.1f}  {grid}: {item.reason}")
        code = "" if item.code is None else f"{item.code.registers} registers, {item.code.spilled} bytes spilled, "
        counts = f"{item.sectors:.0f} sectors, {item.passes:.0f} passes, {item.instructions:.0f} instructions"
        lines.append(f"             {counts}; {code}occupancy {item.occupancy:.0%}")
    return "\n".join(lines)

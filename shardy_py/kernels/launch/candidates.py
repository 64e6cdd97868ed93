"""Other grids of a kernel: the elements of a thread, the threads of a block, and the width of tiles and vectors."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.choose import Choice
from shardy_py.kernels.fusion.fusion import IterationSpace
from shardy_py.kernels.fusion.reductions import RootReductions
from shardy_py.kernels.fusion.scatters import RootScatter
from shardy_py.kernels.fusion.transposes import RootTransposes
from shardy_py.kernels.launch.grid import Launch, spread
from shardy_py.kernels.launch.reductions import other_plans, plan_reduction
from shardy_py.kernels.launch.scatters import sorted_rows
from shardy_py.kernels.launch.transposes import TiledTranspose

_UNROLLS = (1, 2, 4, 8, 16)
_THREADS = (64, 128, 256, 512, 1024)
_VECTORS = (1, 2, 4)


def launches_for(choice: Choice, launch: Launch, device: DeviceSpec) -> Iterator[Launch]:
    """Yield the grids that a kernel may have; each computes the same.

    Args:
        choice: The emitter.
        launch: The grid of the emitter.
        device: The device.
    """
    match choice.form:
        case RootTransposes() as transposes:
            yield from _tiled(transposes, launch, device)
        case RootReductions() as reductions:
            others = other_plans(plan_reduction(reductions, device), reductions.bits, device)
            yield from (other.launch(launch.blocks[2]) for other in others)
        case RootScatter() as scatter if sorted_rows(scatter, device) is None:
            for other in _spread(scatter.space, device):
                if other.threads[0] % device.threads_per_warp == 0:
                    yield other
        case IterationSpace() as space:
            yield from _spread(space, device)
        case _:
            yield launch


def _spread(space: IterationSpace, device: DeviceSpec) -> Iterator[Launch]:
    """Yield grids in which the elements of a thread divide the space, and fill whole bytes."""
    divisible = gcd(space.elements, space.divisible)
    for unroll in (item for item in _UNROLLS if item * space.bits >= 8 and divisible % item == 0):
        for threads in (item for item in _THREADS if item <= device.threads_per_block):
            yield spread(-(-space.elements // unroll), device, unroll=unroll, threads=threads)


def _tiled(transposes: RootTransposes, launch: Launch, device: DeviceSpec) -> Iterator[Launch]:
    """Yield grids with tiles of several widths, which divide both dimensions and which shared memory holds."""
    form = transposes.form
    if transposes.packed is not None or not form.moves_minor:
        yield launch
        return
    for vector in _VECTORS:
        if transposes.tile_bytes(vector) <= device.shared_bytes and gcd(*form.swapped) % vector == 0:
            yield TiledTranspose(form, vector).launch

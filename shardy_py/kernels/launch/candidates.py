"""Other grids of a kernel: the elements of a thread, the threads of a block, and the width of tiles and vectors."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, prod

from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.bodies import joined_dimension
from shardy_py.kernels.fusion.choose import Choice, EmitterKind
from shardy_py.kernels.fusion.fusion import Fusion, bits_of, element_type_of, shape_of
from shardy_py.kernels.fusion.in_place import form_of, in_place_updates
from shardy_py.kernels.launch.grid import Launch, spread
from shardy_py.kernels.launch.launches import longest_operand
from shardy_py.kernels.launch.reductions import element_bits, other_plans, plan_reduction
from shardy_py.kernels.launch.scatters import sorted_rows
from shardy_py.kernels.launch.transposes import TiledTranspose, transpose_bytes, transpose_tiles

_UNROLLS = (1, 2, 4, 8, 16)
_THREADS = (64, 128, 256, 512, 1024)
_VECTORS = (1, 2, 4)


def launches_for(fusion: Fusion, choice: Choice, launch: Launch, device: DeviceSpec) -> Iterator[Launch]:
    """Yield the grids that a kernel may have; each computes the same.

    Args:
        fusion: The fusion.
        choice: Its emitter.
        launch: The grid of the emitter.
        device: The device.
    """
    # The fewest elements of a thread whose bytes no other one writes.
    least = max(8 // bits_of(element_type_of(value)) for value in fusion.roots)
    match choice.kind:
        case EmitterKind.LOOP:
            elements = fusion.elements(fusion.roots[0])
            yield from _spread(elements, elements, device, least=least)
        case EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE:
            elements = fusion.elements(in_place_updates(fusion)[0].operands[1])
            yield from _spread(elements, elements, device, least=least)
        case EmitterKind.CONCATENATE:
            (hero,) = choice.heroes
            assert hero is not None
            sizes = [shape_of(value)[joined_dimension(hero)] for value in hero.operands]
            yield from _spread(fusion.elements(longest_operand(hero)), gcd(*sizes), device, least=least)
        case EmitterKind.SCATTER if sorted_rows(fusion, device) is None:
            updates = form_of(fusion).updates_shape
            for other in _spread(prod(updates), prod(updates[1:]), device, least=least):
                if other.threads[0] % device.threads_per_warp == 0:
                    yield other
        case EmitterKind.TRANSPOSE:
            yield from _tiled(fusion, choice, launch, device)
        case EmitterKind.REDUCTION:
            plan = plan_reduction(fusion, choice, device)
            others = other_plans(plan, element_bits(fusion, choice), device)
            yield from (other.launch(launch.blocks[2]) for other in others)
        case _:
            yield launch


def _spread(elements: int, divisible: int, device: DeviceSpec, *, least: int) -> Iterator[Launch]:
    """Yield grids over elements in which those of a thread divide a number."""
    for unroll in (item for item in _UNROLLS if item >= least and divisible % item == 0):
        for threads in (item for item in _THREADS if item <= device.threads_per_block):
            yield spread(-(-elements // unroll), device, unroll=unroll, threads=threads)


def _tiled(fusion: Fusion, choice: Choice, launch: Launch, device: DeviceSpec) -> Iterator[Launch]:
    """Yield grids with tiles of several widths, which divide both dimensions and which shared memory holds."""
    tiles = transpose_tiles(choice, launch)
    if not isinstance(tiles, TiledTranspose) or not tiles.transpose.moves_minor:
        yield launch
        return
    for vector in _VECTORS:
        other = TiledTranspose(tiles.transpose, vector).launch
        fits = transpose_bytes(fusion, choice, other) <= device.shared_bytes
        if fits and gcd(*tiles.transpose.swapped) % vector == 0:
            yield other

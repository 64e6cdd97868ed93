"""Accesses of the warps of a block, from a run of the block in the interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.kernels.draw.warps import WarpAccess
from shardy_py.kernels.fusion.aliases import slices_of
from shardy_py.kernels.kernel import Kernel
from shardy_py.kernels.run.arrays import memory_inputs, memory_outputs, random_arrays
from shardy_py.kernels.run.frame import Access
from shardy_py.kernels.run.kernel import trace_block

STAGE = "convert-pure-calls"
"""The last stage at which accesses are to tensors: loops are unrolled, vectors are made."""


def warp_accesses(kernel: Kernel, *, block: int = 0, warp: int = 0, seed: int = 0) -> list[WarpAccess]:
    """Return what a warp reads and writes, in order.

    Args:
        kernel: The kernel.
        block: The number of its block.
        warp: The number of the warp in its block.
        seed: The seed of the parameters: accesses may depend on them.

    Raises:
        UnsupportedError: as for `Kernel.module`.
        OptionError: there is no such block or warp.
    """
    size = kernel.device.threads_per_warp
    blocks, warps = prod(kernel.launch.blocks), -(-prod(kernel.launch.threads) // size)
    for kind, number, count in (("block", block, blocks), ("warp", warp, warps)):
        if not 0 <= number < count:
            raise OptionError(
                Diagnostic(f"unknown-{kind}", f"there is no {kind} {number}; there are {count}, numbered from 0")
            )
    inputs, outputs = memory_inputs(kernel.fusion, random_arrays(kernel.fusion, seed)), memory_outputs(kernel.fusion)
    slices = slices_of(kernel.fusion, kernel.choice)
    names = [f"parameter {number}" for number in range(len(inputs))]
    names += [f"result {number}" for number in range(len(outputs))]
    by_argument = {f"argument {slice_}": name for slice_, name in reversed(list(zip(slices, names, strict=True)))}
    found = trace_block(kernel.parsed(STAGE), kernel.launch, inputs, outputs, block=block, slices=slices)
    return list(_of_warp(found, by_argument, warp, size))


def _of_warp(accesses: Sequence[Access], names: Mapping[str, str], warp: int, size: int) -> Iterator[WarpAccess]:
    tiles: dict[str, str] = {}
    for access in accesses:
        lanes = access.threads - warp * size
        is_own = (lanes >= 0) & (lanes < size)
        if not is_own.any():
            continue
        places: list[int | None] = [None] * size
        for lane, place in zip(lanes[is_own].tolist(), access.places[is_own].tolist(), strict=True):
            places[lane] = place
        name = names.get(access.memory, access.memory)
        if access.is_shared:
            name = tiles.setdefault(access.memory, f"tile {len(tiles)}")
        yield WarpAccess(access.op, name, access.is_write, access.is_shared, tuple(places), access.width)

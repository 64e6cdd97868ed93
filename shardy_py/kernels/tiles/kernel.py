"""Kernels at the level of tiles: their text, and running them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import field

from shardy_py.kernels.device import DeviceLike
from shardy_py.kernels.fusion.fusion import Fusion
from shardy_py.kernels.kernel import Kernel, Spelling, emit
from shardy_py.kernels.requirements import require_xdsl
from shardy_py.values import frozen

if TYPE_CHECKING:
    from xdsl.dialects import builtin

    from shardy_py.kernels.tiles.tiling import TensorTile


@frozen(eq=False, slots=False)
class TileKernel:
    """A kernel for one fusion that computes a tile of the results at a time.

    Args:
        kernel: The kernel of the fusion at the level of elements: its emitter, and the names of the dialect in texts.
        tiles: The tile of every root.
    """

    kernel: Kernel
    tiles: tuple[TensorTile, ...] = field(repr=False)

    @property
    def tile_count(self) -> int:
        """The number of tiles: the program runs once for each."""
        return self.tiles[0].count

    @property
    def tile_sizes(self) -> tuple[tuple[int, ...], ...]:
        """The sizes of the tile of every root."""
        return tuple(tile.sizes for tile in self.tiles)

    @cached_property
    def module(self) -> builtin.ModuleOp:
        """The module; it is not to be changed."""
        from shardy_py.kernels.tiles.emission import tile_module

        return tile_module(self.kernel.fusion, self.tiles)

    @cached_property
    def text(self) -> str:
        """The module as text, which `shardy_py.kernels.tiles.text.parse_tile_module` reads back."""
        from shardy_py.kernels.dialect.text import print_kernel_module

        return print_kernel_module(self.module, spelling=self.kernel.spelling)

    def run(self, *arrays: Any) -> list[Any]:
        """Return what the kernel computes, by running all its tiles on this machine.

        Args:
            arrays: An array of numpy for every parameter.

        Raises:
            VerificationError: arrays that do not fit, or elements of a result that not exactly one tile writes.
        """
        from shardy_py.kernels.fusion.fusion import element_type_of, shape_of
        from shardy_py.kernels.run.arrays import checked_arrays, memory_guard
        from shardy_py.kernels.tiles.interpreter import run_tiles
        from shardy_py.layout.numpy_arrays import numpy_dtype

        fusion = self.kernel.fusion
        outputs = [(shape_of(root), numpy_dtype(element_type_of(root))) for root in fusion.roots]
        with memory_guard(fusion):
            return run_tiles(self.module, checked_arrays(fusion, arrays), outputs)


def emit_tiles(
    fusion: Fusion,
    *,
    tile_sizes: Sequence[int] | None = None,
    device: DeviceLike = "h100",
    spelling: Spelling = "xla_gpu",
) -> TileKernel:
    """Return the kernel of a fusion at the level of tiles, in XLA's dialect ``xtile``.

    Args:
        fusion: The fusion; its emitter is the one for loops, transposes or reductions.
        tile_sizes: A power of two for every dimension of the first root, of a reduction the first one that is reduced;
            tiles may overhang.
        device: The device for which the emitter is chosen.
        spelling: The names of the dialect in texts.

    Raises:
        UnsupportedError: an op of the fusion reads or computes what is no tile; it names the op and its location.
        OptionError: the sizes do not fit the root, or the libraries of the extra ``codegen`` are missing.
    """
    require_xdsl()
    from shardy_py.kernels.tiles.sizes import root_tiles

    kernel = emit(fusion, device=device, spelling=spelling)
    tiles = TileKernel(kernel, root_tiles(kernel.fusion, kernel.choice, tile_sizes))
    # What is no tile is refused here, not when the text is asked for.
    _ = tiles.module
    return tiles

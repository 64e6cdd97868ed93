"""Linalg's convolutions and poolings: their loops follow from the layouts in their names.

In ``conv_2d_nhwc_hwcf`` the letters are the dimensions of input and kernel: n batch, d h w space, c channels, f
filters, g groups, m channel multiplier. The result is laid out as the input, with filters for channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve

from shardy_dialects.linalg.structured import Loops, LoopsOf, described_by
from shardy_py import indexing
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.derivation import PARALLEL, REDUCTION

if TYPE_CHECKING:
    from shardy_py.indexing import AffineMap, Expression

SPACE = "dhw"
CONVOLUTIONS = (
    *("conv_1d_w_w", "conv_2d_hw_hw", "conv_3d_dhw_dhw"),
    *("conv_1d_nwc_wcf", "conv_1d_ncw_fcw", "conv_2d_nhwc_hwcf", "conv_2d_nhwc_fhwc", "conv_2d_nchw_fchw"),
    *("conv_2d_nhwc_hwcf_q", "conv_2d_nhwc_fhwc_q", "conv_2d_nchw_fchw_q"),
    *("conv_2d_ngchw_fgchw", "conv_2d_ngchw_gfchw", "conv_2d_ngchw_gfchw_q", "conv_2d_nhwgc_gfhwc"),
    *("conv_2d_nhwgc_gfhwc_q", "conv_3d_ndhwc_dhwcf", "conv_3d_ndhwc_dhwcf_q", "conv_3d_ncdhw_fcdhw"),
    *("depthwise_conv_1d_nwc_wc", "depthwise_conv_1d_ncw_cw", "depthwise_conv_1d_nwc_wcm"),
    *("depthwise_conv_2d_nhwc_hwc", "depthwise_conv_2d_nchw_chw", "depthwise_conv_2d_nhwc_hwcm"),
    *("depthwise_conv_2d_nhwc_hwc_q", "depthwise_conv_2d_nhwc_hwcm_q"),
    *("depthwise_conv_3d_ndhwc_dhwc", "depthwise_conv_3d_ncdhw_cdhw", "depthwise_conv_3d_ndhwc_dhwcm"),
)
POOLING_LAYOUTS = ("nwc", "ncw", "nhwc", "nchw", "ndhwc")
_POOLINGS = {
    "sum": Combiner.ADD,
    "max": Combiner.MAX,
    "max_unsigned": None,
    "min": Combiner.MIN,
    "min_unsigned": None,
}
"""Combiners of poolings; unsigned comparisons of signless integers have none."""
POOLING_KINDS = tuple(_POOLINGS)


def convolution_loops(source: str, kernel: str, op: Op) -> Loops:
    """Return one loop per dimension of the result, of the window, and over the channels that are summed.

    Args:
        source: The letters of the input.
        kernel: The letters of the kernel.
        op: The op; its zero points, if it has any, are scalars between the inputs and the output.
    """
    from shardy_py.indexing.canonical import add, product

    has_filters = "f" in kernel
    result = source.replace("c", "f") if has_filters else source + "m" * ("m" in kernel)
    window = [letter for letter in source if letter in SPACE]
    loops = [*result, *(f"k{letter}" for letter in window), *("c" if has_filters else "")]
    number = {name: index for index, name in enumerate(loops)}
    steps = dict(zip(window, zip(_steps(op, "strides"), _steps(op, "dilations"), strict=False), strict=False))

    def moved(letter: str) -> Expression:
        stride, dilation = steps.get(letter, (1, 1))
        place, offset = indexing.dim(number[letter]), indexing.dim(number[f"k{letter}"])
        return add((product(place, indexing.constant(stride)), product(offset, indexing.constant(dilation))))

    def of(letters: Iterable[str], space: Callable[[str], Expression]) -> AffineMap:
        places = (space(item) if item in SPACE else indexing.dim(number[item]) for item in letters)
        return indexing.AffineMap(len(loops), tuple(places))

    scalars = [indexing.AffineMap(len(loops), ())] * (len(op.operands) - 3)
    kernel_map = of(kernel, lambda letter: indexing.dim(number[f"k{letter}"]))
    maps = (of(source, moved), kernel_map, *scalars, of(result, lambda letter: indexing.dim(number[letter])))
    return Loops(maps, (PARALLEL,) * len(result) + (REDUCTION,) * (len(loops) - len(result)))


def pooling_loops(layout: str, combiner: Combiner | None, op: Op) -> Loops:
    """Return the loops of a pooling: a convolution whose kernel has only a shape.

    Args:
        layout: The letters of the input.
        combiner: The combiner of the elements of a window.
        op: The op.
    """
    loops = convolution_loops(layout, "".join(letter for letter in layout if letter in SPACE), op)
    return evolve(loops, combiner=combiner)


def _steps(op: Op, name: str) -> Sequence[int]:
    """Return an attribute with a number per dimension of space; 1 for each where it is left out."""
    steps = op.attributes.get(name)
    values = getattr(steps, "values", steps)
    if not isinstance(values, (tuple, list)) or not values:
        return (1,) * len(SPACE)
    # A splat may come with its one value only.
    return tuple(values) if len(values) > 1 else tuple(values) * len(SPACE)


def register(dialect: Dialect) -> None:
    """Define the convolutions and poolings."""
    for name in CONVOLUTIONS:
        dims, source, kernel = name.removesuffix("_q").rsplit("_", 2)
        full = dims if source == kernel else name
        _define(dialect, full, partial(convolution_loops, source, kernel))
    for layout in POOLING_LAYOUTS:
        for kind in POOLING_KINDS:
            _define(dialect, f"pooling_{layout}_{kind}", partial(pooling_loops, layout, _POOLINGS[kind]))


def _define(dialect: Dialect, name: str, loops_of: LoopsOf) -> None:
    dialect.op(f"linalg.{name}", traits=[Pure], **described_by(loops_of))

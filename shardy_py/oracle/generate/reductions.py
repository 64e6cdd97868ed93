"""Features ``reduce``, ``window``, ``sort``: ops with a scalar computation."""

from __future__ import annotations

from shardy_py.oracle.generate.program import FLOATS, BlockBuilder, GeneratedValue, array, region_text, scalar_region
from shardy_py.oracle.generate.windows import random_window, window_attributes

_REDUCERS = ("stablehlo.add", "stablehlo.maximum", "stablehlo.minimum", "stablehlo.multiply")


def same_shape(block: BlockBuilder, value: GeneratedValue, percent: int) -> list[GeneratedValue]:
    """Return the value, now and then with a second one of the same shape."""
    if not block.choices.chance(percent):
        return [value]
    return [value, block.tensor(value.dims, block.choices.pick(("i32", "f32", value.dtype)))]


def reduce(block: BlockBuilder) -> None:
    """A reduction of one or two tensors over some dimensions."""
    value = block.value(lambda item: item.dtype in FLOATS, low=1)
    values = same_shape(block, value, 20)
    dims = block.choices.some(range(value.rank), low=1 if block.choices.chance(95) else 0)
    rest = tuple(size for dim, size in enumerate(value.dims) if dim not in dims)
    starts = [block.tensor((), item.dtype) for item in values]
    region = scalar_region(block, [item.dtype for item in values], [block.choices.pick(_REDUCERS) for _ in values])
    results = [(rest, item.dtype) for item in values]
    block.op("stablehlo.reduce", [*values, *starts], results, {"dimensions": array(dims)}, regions=[region])


def reduce_window(block: BlockBuilder) -> None:
    """A reduction over sliding windows."""
    choices = block.choices
    value = block.value(lambda item: item.dtype in FLOATS and min(item.dims) > 0, low=1)
    values = same_shape(block, value, 15)
    windows = [random_window(choices, size, (1, 2, 3)) for size in value.dims]
    attributes = {"window_dimensions": array(window.size for window in windows)}
    attributes |= window_attributes(windows, "base_dilations", "window_dilations")
    if choices.chance(50) and not any(window.low or window.high for window in windows):
        del attributes["padding"]
    shape = [window.count(size) for window, size in zip(windows, value.dims, strict=True)]
    starts = [block.tensor((), item.dtype) for item in values]
    region = scalar_region(block, [item.dtype for item in values], [choices.pick(_REDUCERS) for _ in values])
    results = [(tuple(shape), item.dtype) for item in values]
    block.op("stablehlo.reduce_window", [*values, *starts], results, attributes, regions=[region])


def select_and_scatter(block: BlockBuilder) -> None:
    """The gradient of a windowed maximum."""
    value = block.value(lambda item: item.dtype == "f32" and min(item.dims) > 0, low=1)
    value = value if value.dtype == "f32" else block.tensor(block.module.shape(low=1), "f32")
    windows = [random_window(block.choices, size, (1, 2, 3), dilated=False) for size in value.dims]
    source = block.tensor(tuple(window.count(size) for window, size in zip(windows, value.dims, strict=True)))
    attributes = {"window_dimensions": array(window.size for window in windows)}
    attributes |= window_attributes(windows, "", "")
    chooser, values = block.child([((), "f32"), ((), "f32")], isolated=True)
    direction = {"comparison_direction": "#stablehlo<comparison_direction GE>"}
    chosen = chooser.op("stablehlo.compare", values, [((), "i1")], direction, sharded=False)
    regions = [
        region_text(chooser, values, "stablehlo.return", chosen),
        scalar_region(block, ["f32"], ["stablehlo.add"]),
    ]
    block.op(
        "stablehlo.select_and_scatter",
        [value, source, block.tensor(())],
        [(value.shape, "f32")],
        attributes,
        regions=regions,
    )


def sort(block: BlockBuilder) -> None:
    """A sort of one or two tensors along one dimension."""
    value = block.value(lambda item: item.dtype in FLOATS, low=1)
    values = same_shape(block, value, 40)
    comparator, scalars = block.child([((), item.dtype) for item in values for _ in range(2)], isolated=True)
    direction = {"comparison_direction": "#stablehlo<comparison_direction LT>"}
    smaller = comparator.op("stablehlo.compare", scalars[:2], [((), "i1")], direction, sharded=False)
    block.op(
        "stablehlo.sort",
        values,
        [(item.shape, item.dtype) for item in values],
        {"dimension": f"{block.choices.integer(-value.rank, value.rank - 1)} : i64", "is_stable": "true"},
        regions=[region_text(comparator, scalars, "stablehlo.return", smaller)],
    )


EMITTERS = {"reduce": ((5, reduce),), "window": ((1, reduce_window), (1, select_and_scatter)), "sort": ((1, sort),)}

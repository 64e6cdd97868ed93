"""Features ``reduce``, ``window``, ``sort``: ops with a scalar computation."""

from __future__ import annotations

from shardy_py.oracle.generate.program import FLOATS, Block, Tensor, array, region_text, scalar_region

_REDUCERS = ("stablehlo.add", "stablehlo.maximum", "stablehlo.minimum", "stablehlo.multiply")


def same_shape(block: Block, value: Tensor, percent: int) -> list[Tensor]:
    """Return the value, now and then with a second one of the same shape."""
    if not block.choices.chance(percent):
        return [value]
    return [value, block.tensor(value.dims, block.choices.pick(("i32", "f32", value.dtype)))]


def reduce(block: Block) -> None:
    """A reduction of one or two tensors over some dimensions."""
    value = block.value(lambda item: item.dtype in FLOATS, low=1)
    values = same_shape(block, value, 20)
    dims = block.choices.some(range(value.rank), low=1 if block.choices.chance(95) else 0)
    rest = tuple(size for dim, size in enumerate(value.dims) if dim not in dims)
    starts = [block.tensor((), item.dtype) for item in values]
    region = scalar_region(block, [item.dtype for item in values], [block.choices.pick(_REDUCERS) for _ in values])
    results = [(rest, item.dtype) for item in values]
    block.op("stablehlo.reduce", [*values, *starts], results, {"dimensions": array(dims)}, regions=[region])


def reduce_window(block: Block) -> None:
    """A reduction over sliding windows."""
    choices = block.choices
    value = block.value(lambda item: item.dtype in FLOATS and min(item.dims) > 0, low=1)
    values = same_shape(block, value, 15)
    window, stride, pads, shape = [], [], [], []
    for size in value.dims:
        width = choices.pick((1, 2, 3)) if choices.chance(50) else 1
        step = choices.pick((1, 2)) if choices.chance(40) else 1
        pad = [choices.integer(0, 1), choices.integer(0, 1)] if choices.chance(40) else [0, 0]
        if size + sum(pad) < width:
            width, step, pad = 1, 1, [0, 0]
        window.append(width)
        stride.append(step)
        pads.append(pad)
        shape.append((size + sum(pad) - width) // step + 1)
    attributes = {
        "window_dimensions": array(window),
        "window_strides": array(stride),
        "padding": f"dense<{pads}> : tensor<{value.rank}x2xi64>",
    }
    if all(pad == [0, 0] for pad in pads) and choices.chance(50):
        del attributes["padding"]
    starts = [block.tensor((), item.dtype) for item in values]
    region = scalar_region(block, [item.dtype for item in values], [choices.pick(_REDUCERS) for _ in values])
    results = [(tuple(shape), item.dtype) for item in values]
    block.op("stablehlo.reduce_window", [*values, *starts], results, attributes, regions=[region])


def select_and_scatter(block: Block) -> None:
    """The gradient of a windowed maximum."""
    value = block.value(lambda item: item.dtype == "f32" and min(item.dims) > 0, low=1)
    value = value if value.dtype == "f32" else block.tensor(block.module.shape(low=1), "f32")
    window = [block.choices.pick((1, 2)) if size % 2 == 0 else 1 for size in value.dims]
    source = block.tensor(tuple(size // width for size, width in zip(value.dims, window, strict=True)))
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
        {"window_dimensions": array(window), "window_strides": array(window)},
        regions=regions,
    )


def sort(block: Block) -> None:
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
        {"dimension": f"{block.choices.integer(0, value.rank - 1)} : i64", "is_stable": "true"},
        regions=[region_text(comparator, scalars, "stablehlo.return", smaller)],
    )


EMITTERS = {"reduce": ((5, reduce),), "window": ((1, reduce_window), (1, select_and_scatter)), "sort": ((1, sort),)}

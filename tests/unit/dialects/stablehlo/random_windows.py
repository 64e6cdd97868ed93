"""Random ops whose windows slide over tensors, with every attribute of them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from shardy_py.oracle.generate.windows import GeneratedWindows
from tests.unit.dialects.stablehlo.random_ops import array, computation, function_of, shape, tensor

POSITIVE = (1, 1, 2, 3, 4, 7, 8, 16)
GREATER = (
    "({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
    "%z = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    "stablehlo.return %z : tensor<i1>\n}"
)


def window(random: Random, *, dilated: bool) -> GeneratedWindows:
    """Random windows; elements are apart, or left out by negative padding, where that is allowed."""
    edges = [0, 0, 0, 1, 2] + [-1] * dilated
    apart = [1, 1, 2, 3] if dilated else [1]
    return GeneratedWindows(
        random.choice([1, 1, 2, 3, 5]),
        random.choice([1, 1, 2, 3]),
        random.choice(edges),
        random.choice(edges),
        random.choice(apart),
        random.choice(apart),
    )


def attributes_of(random: Random, windows: Sequence[GeneratedWindows], base: str, dilation: str) -> str:
    """The attributes besides the sizes; those that say nothing are absent now and then."""
    numbers = {"window_strides": [window.stride for window in windows]}
    numbers |= {base: [window.base for window in windows], dilation: [window.dilation for window in windows]}
    texts = [
        f"{name} = {array(window)}"
        for name, window in numbers.items()
        if name and not (set(window) <= {1} and random.random() < 0.5)
    ]
    pads = [[window.low, window.high] for window in windows]
    if any(map(any, pads)) or (pads and random.random() < 0.5):
        texts.append(f"padding = dense<{pads}> : tensor<{len(pads)}x2xi64>")
    return ", ".join(texts)


def reduce_window(random):
    """Of one or several tensors."""
    sizes = shape(random, 0, 4, POSITIVE)
    windows = [window(random, dilated=True) for _ in sizes]
    windows = [GeneratedWindows() if item.is_only_dilated else item for item in windows]
    out = [item.count(size) for item, size in zip(windows, sizes, strict=True)]
    dtypes = [random.choice(["f32", "i32"]) for _ in range(random.randint(1, 3))]
    rest = attributes_of(random, windows, "base_dilations", "window_dilations")
    attributes = f"window_dimensions = {array([item.size for item in windows])}{', ' if rest else ''}{rest}"
    operands = [tensor(sizes, dtype) for dtype in dtypes] + [tensor([], dtype) for dtype in dtypes]
    region = computation(random, dtypes, ["maximum", "add"])
    return function_of("reduce_window", operands, [tensor(out, dtype) for dtype in dtypes], attributes, region)


def select_and_scatter(random):
    """With windows that overlap, or leave elements out."""
    sizes = shape(random, 1, 4, POSITIVE)
    windows = [window(random, dilated=False) for _ in sizes]
    source = [item.count(size) for item, size in zip(windows, sizes, strict=True)]
    rest = attributes_of(random, windows, "", "")
    attributes = f"window_dimensions = {array([item.size for item in windows])}{', ' if rest else ''}{rest}"
    region = f"{GREATER}, {computation(random, ['f32'], ['add'])[1:]}"
    operands = [tensor(sizes), tensor(source), tensor([])]
    return function_of("select_and_scatter", operands, [tensor(sizes)], attributes, region)


def convolution(random):
    """With any layout, groups, and windows in up to three dimensions."""
    image = shape(random, 0, 3, POSITIVE)
    windows = [window(random, dilated=True) for _ in image]
    batch_groups, feature_groups = random.choice([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2), (1, 4)])
    batch, features = batch_groups * random.choice([1, 2, 3]), random.choice([1, 2, 8])
    out_features = batch_groups * feature_groups * random.choice([1, 1, 2, 5])
    out = [item.count(size) for item, size in zip(windows, image, strict=True)]
    layouts, types = [], []
    for named, space in (
        ({"b": batch, "f": features * feature_groups}, image),
        ({"i": features, "o": out_features}, [item.size for item in windows]),
        ({"b": batch // batch_groups, "f": out_features}, out),
    ):
        sizes = named | {str(number): size for number, size in enumerate(space)}
        labels = random.sample(list(sizes), len(sizes))
        layouts.append(f"[{', '.join(labels)}]")
        types.append(tensor([sizes[label] for label in labels]))
    attributes = [
        f"dimension_numbers = #stablehlo.conv<{layouts[0]}x{layouts[1]}->{layouts[2]}>",
        f"batch_group_count = {batch_groups} : i64, feature_group_count = {feature_groups} : i64",
        attributes_of(random, windows, "lhs_dilation", "rhs_dilation"),
    ]
    if image and random.random() < 0.3:
        flips = ", ".join(random.choice(["true", "false"]) for _ in image)
        attributes.append(f"window_reversal = array<i1: {flips}>")
    return function_of("convolution", types[:2], types[2:], ", ".join(filter(None, attributes)))


GENERATORS = (reduce_window, select_and_scatter, convolution)

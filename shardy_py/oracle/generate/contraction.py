"""Features ``dot`` and ``convolution``: products with contracted dimensions."""

from __future__ import annotations

from shardy_py.oracle.generate.program import FLOATS, BlockBuilder, GeneratedValue
from shardy_py.oracle.generate.windows import random_window, window_attributes


def dot_general(block: BlockBuilder) -> None:
    """A product with batching and contracting dimensions in any place."""
    choices = block.choices
    lhs = block.value(lambda item: item.dtype in FLOATS, low=1, high=4)
    dims = choices.shuffled(range(lhs.rank))
    contracting = choices.integer(0 if lhs.rank < 3 else 1, min(2, lhs.rank))
    batching = choices.integer(0, min(2, lhs.rank - contracting))
    shared = dims[: contracting + batching]
    rhs = _partner(block, lhs, shared)
    if rhs is None:
        free = [choices.pick(block.module.sizes) for _ in range(choices.integer(0, 2))]
        sizes = choices.shuffled([*(lhs.dims[dim] for dim in shared), *free])
        rhs = block.tensor(tuple(sizes), lhs.dtype)
    matched = _match(lhs, rhs, shared)
    lhs_batch, rhs_batch = shared[contracting:], matched[contracting:]
    lhs_contract, rhs_contract = shared[:contracting], matched[:contracting]
    result = (
        *(lhs.dims[dim] for dim in lhs_batch),
        *(size for dim, size in enumerate(lhs.dims) if dim not in shared),
        *(size for dim, size in enumerate(rhs.dims) if dim not in matched),
    )
    if len(result) > 5:
        return
    numbers = (
        f"#stablehlo.dot<lhs_batching_dimensions = {lhs_batch}, rhs_batching_dimensions = {rhs_batch}, "
        f"lhs_contracting_dimensions = {lhs_contract}, rhs_contracting_dimensions = {rhs_contract}>"
    )
    block.op("stablehlo.dot_general", [lhs, rhs], [(result, lhs.dtype)], {"dot_dimension_numbers": numbers})


def _partner(block: BlockBuilder, lhs: GeneratedValue, shared: list[int]) -> GeneratedValue | None:
    """Return a visible tensor that has all the shared sizes, or None."""
    return block.find(
        lambda item: item.dtype == lhs.dtype and 1 <= item.rank <= 4 and len(_match(lhs, item, shared)) == len(shared)
    )


def _match(lhs: GeneratedValue, rhs: GeneratedValue, shared: list[int]) -> list[int]:
    """Return the dimension of ``rhs`` for each shared one of ``lhs``, as far as sizes allow."""
    matched: list[int] = []
    for dim in shared:
        same = [other for other, size in enumerate(rhs.dims) if size == lhs.dims[dim] and other not in matched]
        if not same:
            break
        matched.append(same[0])
    return matched


def dot(block: BlockBuilder) -> None:
    """The plain product of vectors and matrices."""
    choices = block.choices
    lhs = block.value(lambda item: item.dtype in FLOATS, low=1, high=2)
    rhs = block.find(lambda item: item.dtype == lhs.dtype and item.rank in (1, 2) and item.dims[0] == lhs.dims[-1])
    if rhs is None:
        free = [choices.pick(block.module.sizes)] if choices.chance(60) else []
        rhs = block.tensor((lhs.dims[-1], *free), lhs.dtype)
    block.op("stablehlo.dot", [lhs, rhs], [((*lhs.dims[:-1], *rhs.dims[1:]), lhs.dtype)])


def convolution(block: BlockBuilder) -> None:
    """A convolution with up to three spatial dimensions, groups, strides, padding and dilations."""
    choices = block.choices
    spatial = choices.weighted(((4, 1), (4, 2), (1, 0), (1, 3)))
    groups = choices.pick((1, 1, 2, 4))
    feature_groups, batch_groups = (groups, 1) if choices.chance(60) else (1, groups)
    batch = choices.pick((1, 2, 4)) * batch_groups
    inputs = choices.pick((1, 2, 4, 8))
    outputs = choices.pick((1, 2, 4)) * groups
    image = [choices.pick((8, 9, 12, 16)) for _ in range(spatial)]
    windows = [random_window(choices, size, (1, 2, 3, 8)) for size in image]
    out = [window.count(size) for window, size in zip(windows, image, strict=True)]
    layouts = [_layout(choices.shuffled(["b", "f", *range(spatial)]), ("b", "f"))]
    layouts.append(_layout(choices.shuffled(["i", "o", *range(spatial)]), ("i", "o")))
    layouts.append(_layout(choices.shuffled(["b", "f", *range(spatial)]), ("b", "f")))
    sizes: list[dict[str | int, int]] = [
        {"b": batch, "f": inputs * feature_groups, **dict(enumerate(image))},
        {"i": inputs, "o": outputs, **dict(enumerate(window.size for window in windows))},
        {"b": batch // batch_groups, "f": outputs, **dict(enumerate(out))},
    ]
    shapes = [tuple(table[mark] for mark in layout) for table, layout in zip(sizes, layouts, strict=True)]
    marks = ["[" + ", ".join(map(str, layout)) + "]" for layout in layouts]
    attributes = {
        "batch_group_count": f"{batch_groups} : i64",
        "feature_group_count": f"{feature_groups} : i64",
        "dimension_numbers": f"#stablehlo.conv<{marks[0]}x{marks[1]}->{marks[2]}>",
        **window_attributes(windows, "lhs_dilation", "rhs_dilation"),
    }
    if windows and choices.chance(20):
        flips = ", ".join(str(choices.chance(50)).lower() for _ in windows)
        attributes["window_reversal"] = f"array<i1: {flips}>"
    operands = [block.tensor(shapes[0]), block.tensor(shapes[1])]
    block.op("stablehlo.convolution", operands, [(shapes[2], "f32")], attributes)


def _layout(order: list[str | int], special: tuple[str, str]) -> list[str | int]:
    """Return the order with its spatial dimensions counted upwards, as the notation wants them."""
    spatial = iter(range(len(order)))
    return [mark if mark in special else next(spatial) for mark in order]


EMITTERS = {"dot": ((8, dot_general), (2, dot)), "convolution": ((1, convolution),)}

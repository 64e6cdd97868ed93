"""Features ``slice``, ``concatenate``, ``pad``, ``dynamic_slice``, ``gather``, ``scatter``: parts of tensors."""

from __future__ import annotations

from shardy_py.oracle.generate.choices import Choices
from shardy_py.oracle.generate.program import FLOATS, INTEGERS, BlockBuilder, GeneratedValue, array, scalar_region


def slice_of(block: BlockBuilder, value: GeneratedValue) -> GeneratedValue:
    """A static slice, of one or more dimensions."""
    start, limit, stride = [], [], []
    for size in value.dims:
        first, last, step = 0, size, 1
        if size > 1 and block.choices.chance(45):
            first = block.choices.integer(0, size - 1)
            last = block.choices.integer(first + 1, size)
            step = block.choices.pick((1, 1, 2))
        start.append(first)
        limit.append(last)
        stride.append(step)
    shape = tuple(-(-(last - first) // step) for first, last, step in zip(start, limit, stride, strict=True))
    attributes = {"start_indices": array(start), "limit_indices": array(limit), "strides": array(stride)}
    return block.op("stablehlo.slice", [value], [(shape, value.dtype)], attributes)[0]


def slice_(block: BlockBuilder) -> None:
    """A static slice of some value."""
    slice_of(block, block.value(low=1))


def concatenate(block: BlockBuilder) -> None:
    """A concatenation: of different values, of the same value, or of slices."""
    choices = block.choices
    value = block.value(low=1)
    dim = choices.integer(0, value.rank - 1)
    rest = [size for index, size in enumerate(value.dims) if index != dim]
    kind = choices.pick(("values", "same", "slices"))
    operands = [value]
    for _ in range(choices.integer(1, 3)):
        other = block.find(
            lambda item: (
                item.dtype == value.dtype
                and item.rank == value.rank
                and [size for index, size in enumerate(item.dims) if index != dim] == rest
            )
        )
        operands.append(value if other is None or kind == "same" else other)
    if kind == "slices":
        mask = [choices.chance(70) for _ in operands]
        operands = [_halved(block, item, dim) if cut else item for item, cut in zip(operands, mask, strict=True)]
    shape = list(value.dims)
    shape[dim] = sum(item.dims[dim] for item in operands)
    block.op("stablehlo.concatenate", operands, [(tuple(shape), value.dtype)], {"dimension": f"{dim} : i64"})


def _halved(block: BlockBuilder, value: GeneratedValue, dim: int) -> GeneratedValue:
    limit = [max(size // 2, min(size, 1)) if index == dim else size for index, size in enumerate(value.dims)]
    attributes = {
        "start_indices": array(0 for _ in limit),
        "limit_indices": array(limit),
        "strides": array(1 for _ in limit),
    }
    return block.op("stablehlo.slice", [value], [(tuple(limit), value.dtype)], attributes)[0]


def pad(block: BlockBuilder) -> None:
    """Padding at both ends and in between; negative padding, too."""
    value = block.value(low=1)
    low, high, interior, shape = [], [], [], []
    for size in value.dims:
        before, after, inside = 0, 0, 0
        if size > 2 and block.choices.chance(40):
            before, after = block.choices.integer(-1, 2), block.choices.integer(0, 2)
            inside = int(block.choices.chance(15))
        low.append(before)
        high.append(after)
        interior.append(inside)
        shape.append(size + before + after + inside * max(size - 1, 0))
    attributes = {
        "edge_padding_low": array(low),
        "edge_padding_high": array(high),
        "interior_padding": array(interior),
    }
    block.op("stablehlo.pad", [value, block.tensor((), value.dtype)], [(tuple(shape), value.dtype)], attributes)


def _smaller(choices: Choices, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(choices.integer(1, size) if size > 1 and choices.chance(45) else size for size in shape)


def _indices(block: BlockBuilder, rank: int) -> list[GeneratedValue]:
    """Return scalar indices, all constants in one case of three."""
    if block.choices.chance(33):
        return [block.filler((), "i32")] * rank
    return [block.tensor((), "i32") for _ in range(rank)]


def dynamic_slice(block: BlockBuilder) -> None:
    """A slice at an offset known at run time."""
    value = block.value(low=1)
    shape = _smaller(block.choices, value.dims)
    operands = [value, *_indices(block, value.rank)]
    block.op("stablehlo.dynamic_slice", operands, [(shape, value.dtype)], {"slice_sizes": array(shape)})


def dynamic_update_slice(block: BlockBuilder) -> None:
    """A part of a tensor overwritten."""
    value = block.value(low=1)
    update = block.find(
        lambda item: (
            item.dtype == value.dtype
            and item.rank == value.rank
            and all(size <= full for size, full in zip(item.dims, value.dims, strict=True))
        )
    )
    if update is None or block.choices.chance(50):
        update = block.tensor(_smaller(block.choices, value.dims), value.dtype)
    operands = [value, update, *_indices(block, value.rank)]
    block.op("stablehlo.dynamic_update_slice", operands, [(value.shape, value.dtype)])


class _Plan:
    """The dimension numbers that a gather and a scatter share.

    The dimensions of the operand are batching, collapsed or offset ones; those of the result (or of the updates) are
    batch dimensions (from the indices) and offset dimensions (from the operand).
    """

    def __init__(self, block: BlockBuilder, value: GeneratedValue) -> None:
        choices = block.choices
        kinds = [choices.weighted(((5, "offset"), (3, "collapsed"), (2, "batching"))) for _ in value.dims]
        self.batching = [dim for dim, kind in enumerate(kinds) if kind == "batching"]
        self.collapsed = [dim for dim, kind in enumerate(kinds) if kind == "collapsed"]
        self.offset = [dim for dim, kind in enumerate(kinds) if kind == "offset"]
        batch = [value.dims[dim] for dim in self.batching]
        batch += [choices.pick(block.module.sizes) for _ in range(choices.integer(0 if batch else 1, 2))]
        order = choices.shuffled(range(len(batch)))
        batch_shape = [batch[index] for index in order]
        indexed = [*self.collapsed, *(dim for dim in self.offset if choices.chance(30))]
        self.index_map = choices.shuffled(indexed or self.offset[:1])
        implicit = len(self.index_map) == 1 and choices.chance(40)
        self.vector_dim = len(batch_shape) if implicit else choices.integer(0, len(batch_shape))
        self.index_shape = list(batch_shape)
        if not implicit:
            self.index_shape.insert(self.vector_dim, len(self.index_map))
        shift = [position + (not implicit and position >= self.vector_dim) for position in range(len(batch_shape))]
        self.index_batching = [shift[order.index(index)] for index in range(len(self.batching))]
        self.slice_sizes = [
            choices.integer(1, size)
            if dim in self.offset and size > 1 and choices.chance(35)
            else (size if dim in self.offset else min(size, 1))
            for dim, size in enumerate(value.dims)
        ]
        rank = len(batch_shape) + len(self.offset)
        self.offset_dims = choices.some(range(rank), low=len(self.offset), high=len(self.offset))
        windows, batches = iter(self.offset), iter(batch_shape)
        self.shape = tuple(
            self.slice_sizes[next(windows)] if dim in self.offset_dims else next(batches) for dim in range(rank)
        )


def _operand(block: BlockBuilder) -> GeneratedValue:
    return block.value(lambda item: item.dtype in FLOATS and min(item.dims) > 0, low=1, high=4)


def gather(block: BlockBuilder) -> None:
    """Slices collected at indices."""
    value = _operand(block)
    plan = _Plan(block, value)
    if not plan.index_map or len(plan.shape) > 5:
        return
    numbers = (
        f"#stablehlo.gather<offset_dims = {plan.offset_dims}, collapsed_slice_dims = {plan.collapsed}, "
        f"operand_batching_dims = {plan.batching}, start_indices_batching_dims = {plan.index_batching}, "
        f"start_index_map = {plan.index_map}, index_vector_dim = {plan.vector_dim}>"
    )
    attributes = {
        "dimension_numbers": numbers,
        "slice_sizes": array(plan.slice_sizes),
        "indices_are_sorted": "false",
    }
    operands = [value, _index_tensor(block, tuple(plan.index_shape))]
    block.op("stablehlo.gather", operands, [(plan.shape, value.dtype)], attributes)


def _index_tensor(block: BlockBuilder, shape: tuple[int, ...]) -> GeneratedValue:
    tensor = block.find(lambda item: item.dtype in INTEGERS - {"ui64"} and item.shape == shape)
    return tensor or block.tensor(shape, "i32")


def scatter(block: BlockBuilder) -> None:
    """Updates combined into a tensor at indices."""
    value = _operand(block)
    plan = _Plan(block, value)
    if not plan.index_map or len(plan.shape) > 5:
        return
    numbers = (
        f"#stablehlo.scatter<update_window_dims = {plan.offset_dims}, inserted_window_dims = {plan.collapsed}, "
        f"input_batching_dims = {plan.batching}, scatter_indices_batching_dims = {plan.index_batching}, "
        f"scatter_dims_to_operand_dims = {plan.index_map}, index_vector_dim = {plan.vector_dim}>"
    )
    values = [value]
    if block.choices.chance(20):
        values.append(block.tensor(value.dims, block.choices.pick(("f32", "i32"))))
    updates = [block.tensor(plan.shape, item.dtype) for item in values]
    reducers = ("stablehlo.add", "stablehlo.maximum", "stablehlo.minimum", "stablehlo.multiply", "stablehlo.subtract")
    region = scalar_region(block, [item.dtype for item in values], [block.choices.pick(reducers) for _ in values])
    block.op(
        "stablehlo.scatter",
        [*values, _index_tensor(block, tuple(plan.index_shape)), *updates],
        [(item.shape, item.dtype) for item in values],
        {"scatter_dimension_numbers": numbers, "indices_are_sorted": "false", "unique_indices": "false"},
        regions=[region],
    )


EMITTERS = {
    "slice": ((2, slice_),),
    "concatenate": ((3, concatenate),),
    "pad": ((2, pad),),
    "dynamic_slice": ((2, dynamic_slice), (2, dynamic_update_slice)),
    "gather": ((2, gather),),
    "scatter": ((2, scatter),),
}

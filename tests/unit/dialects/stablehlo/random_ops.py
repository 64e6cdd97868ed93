"""Random single ops as functions in MLIR's generic form, one generator per op."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

SIZES = (0, 1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 12, 16)
GENERATORS = []


def generator(function):
    """Enter a generator into `GENERATORS`."""
    GENERATORS.append(function)
    return function


def tensor(shape: Sequence[int], dtype: str = "f32") -> str:
    """A tensor type."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{dtype}>"


def array(values: Sequence[int]) -> str:
    """A dense array of integers."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def function_of(op, operands, results, attributes="", region="", prelude="", values=None) -> str:
    """A function around one op; ``@NAME`` is to be replaced."""
    arguments = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(operands))
    used = values or [f"%a{number}" for number in range(len(operands))]
    types = operands if values is None else [type_ for _, type_ in values]
    names = used if values is None else [name for name, _ in values]
    count = f":{len(results)}" if len(results) > 1 else ""
    return (
        f"func.func @NAME({arguments}) {{\n{prelude}"
        f'  %r{count} = "stablehlo.{op}"({", ".join(names)}) {region} {{{attributes}}}'
        f" : ({', '.join(types)}) -> ({', '.join(results)})\n  return\n}}\n"
    )


def computation(random: Random, dtypes: Sequence[str], names: Sequence[str]) -> str:
    """A region that combines N old values with N new ones; ``keep`` returns the new one."""
    count, lines, returned = len(dtypes), [], []
    for number, dtype in enumerate(dtypes):
        name, pair = random.choice(names), [f"%x{number}", f"%x{number + count}"]
        if random.random() < 0.3:
            pair.reverse()
        if name == "keep":
            returned.append(f"%x{number + count}")
            continue
        lines.append(f"%y{number} = stablehlo.{name} {', '.join(pair)} : tensor<{dtype}>")
        returned.append(f"%y{number}")
    types = [f"tensor<{dtype}>" for dtype in dtypes]
    arguments = ", ".join(f"%x{number}: {type_}" for number, type_ in enumerate(types * 2))
    lines.append(f"stablehlo.return {', '.join(returned)} : {', '.join(types)}")
    return f"({{\n^bb0({arguments}):\n" + "\n".join(lines) + "\n})"


def shape(random: Random, low=0, high=4, sizes=SIZES) -> list[int]:
    """A random shape."""
    return [random.choice(sizes) for _ in range(random.randint(low, high))]


@generator
def reshape(random):
    """Between two groupings of one number."""

    def grouping(number):
        sizes = []
        while number > 1:
            size = random.choice([d for d in range(2, number + 1) if number % d == 0])
            sizes.append(size)
            number //= size
        for _ in range(random.randint(0, 2)):
            sizes.insert(random.randint(0, len(sizes)), 1)
        random.shuffle(sizes)
        return sizes

    number = random.choice([1, 4, 6, 12, 24, 36, 60, 64, 72, 120, 210])
    return function_of("reshape", [tensor(grouping(number))], [tensor(grouping(number))])


@generator
def broadcast_in_dim(random):
    """To some dimensions of the result, some of them expanded."""
    out = shape(random)
    dims = random.sample(range(len(out)), random.randint(0, len(out)))
    operand = [out[dim] if random.random() < 0.6 else 1 for dim in dims]
    return function_of("broadcast_in_dim", [tensor(operand)], [tensor(out)], f"broadcast_dimensions = {array(dims)}")


@generator
def dot_general(random):
    """With batching, contracting and free dimensions in any order."""
    sizes = {kind: shape(random, 0, 2) for kind in "bclr"}
    lhs = [(kind, number) for kind in "bcl" for number in range(len(sizes[kind]))]
    rhs = [(kind, number) for kind in "bcr" for number in range(len(sizes[kind]))]
    random.shuffle(lhs)
    random.shuffle(rhs)
    lists, out = [], []
    for name, kind in (("batching", "b"), ("contracting", "c")):
        order = random.sample(range(len(sizes[kind])), len(sizes[kind]))
        for side, labels in (("lhs", lhs), ("rhs", rhs)):
            lists.append(f"{side}_{name}_dimensions = {[labels.index((kind, number)) for number in order]}")
        if kind == "b":
            out = [sizes[kind][number] for number in order]
    out += [sizes[kind][number] for kind, number in lhs if kind == "l"]
    out += [sizes[kind][number] for kind, number in rhs if kind == "r"]
    operands = [tensor([sizes[kind][number] for kind, number in labels]) for labels in (lhs, rhs)]
    attributes = f"dot_dimension_numbers = #stablehlo.dot<{', '.join(sorted(lists, key=_dot_order))}>"
    return function_of("dot_general", operands, [tensor(out)], attributes)


def _dot_order(item: str) -> tuple[bool, bool]:
    return "contracting" in item, item.startswith("rhs")


@generator
def reduce(random):
    """Several inputs over some dimensions."""
    sizes, dtypes = shape(random), [random.choice(["f32", "i32"]) for _ in range(random.randint(1, 3))]
    reduced = [dim for dim in range(len(sizes)) if random.random() < 0.5]
    out = [size for dim, size in enumerate(sizes) if dim not in reduced]
    operands = [tensor(sizes, dtype) for dtype in dtypes] + [tensor([], dtype) for dtype in dtypes]
    results = [tensor(out, dtype) for dtype in dtypes]
    region = computation(random, dtypes, ["add", "maximum"])
    return function_of("reduce", operands, results, f"dimensions = {array(reduced)}", region)


@generator
def slice_(random):
    """Some dimensions whole, some strided."""
    sizes = shape(random)
    starts = [random.choice([0, random.randint(0, size)]) for size in sizes]
    limits = [random.choice([size, random.randint(start, size)]) for start, size in zip(starts, sizes, strict=True)]
    strides = [random.choice([1, 1, 2]) for _ in sizes]
    out = [-(-(b - a) // c) for a, b, c in zip(starts, limits, strides, strict=True)]
    attributes = f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array(strides)}"
    return function_of("slice", [tensor(sizes)], [tensor(out)], attributes)


@generator
def dynamic_update_slice(random):
    """With constant and other indices."""
    sizes = shape(random)
    update = [random.choice([size, random.randint(0, size)]) for size in sizes]
    prelude, values = "", [("%a0", tensor(sizes)), ("%a1", tensor(update))]
    always = random.random() < 0.5
    for dim in range(len(sizes)):
        if always or random.random() < 0.5:
            name = random.choice(["stablehlo.constant", "sdy.constant"])
            prelude += f"  %i{dim} = {name} dense<0> : tensor<i32>\n"
            values.append((f"%i{dim}", "tensor<i32>"))
        else:
            values.append(("%a2", "tensor<i32>"))
    operands = [tensor(sizes), tensor(update), "tensor<i32>"]
    return function_of("dynamic_update_slice", operands, [tensor(sizes)], prelude=prelude, values=values)


@generator
def concatenate(random):
    """Of slices, other tensors, and one tensor several times."""
    sizes = shape(random, 1, 3)
    dim = random.randrange(len(sizes))
    operand_type, prelude, values, total = tensor(sizes), "", [], 0
    for number in range(random.randint(1, 4)):
        if random.random() < 0.4:
            part = [*sizes[:dim], random.randint(0, sizes[dim]), *sizes[dim + 1 :]]
            bounds = f"start_indices = {array([0] * len(sizes))}, limit_indices = {array(part)}"
            source = random.choice(["%a0", "%a0", "%a1"])
            prelude += f'  %s{number} = "stablehlo.slice"({source})'
            prelude += f" {{{bounds}, strides = {array([1] * len(sizes))}}} : ({operand_type}) -> {tensor(part)}\n"
            values.append((f"%s{number}", tensor(part)))
            total += part[dim]
        else:
            values.append((random.choice(["%a0", "%a0", "%a1"]), operand_type))
            total += sizes[dim]
    out = tensor([*sizes[:dim], total, *sizes[dim + 1 :]])
    return function_of(
        "concatenate", [operand_type] * 2, [out], f"dimension = {dim} : i64", prelude=prelude, values=values
    )


@generator
def sort(random):
    """Along any dimension, also counted from the end."""
    sizes = shape(random, 1)
    dim = random.choice([random.randrange(len(sizes)), -random.randint(1, len(sizes))])
    region = (
        "({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
        "%z = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "stablehlo.return %z : tensor<i1>\n})"
    )
    return function_of("sort", [tensor(sizes)], [tensor(sizes)], f"dimension = {dim} : i64", region)


def _window_numbers(random):
    """The shapes and dimension numbers that a gather and a scatter have in common."""
    sizes = shape(random, 0, 4, (1, 2, 3, 4, 5, 8))
    dims = list(range(len(sizes)))
    batching = sorted(random.sample(dims, random.randint(0, min(2, len(dims))))) if random.random() < 0.4 else []
    rest = [dim for dim in dims if dim not in batching]
    collapsed = [dim for dim in rest if random.random() < 0.4]
    window = {dim: random.choice([sizes[dim], sizes[dim], 1, random.randint(1, sizes[dim])]) for dim in rest}
    window |= dict.fromkeys(collapsed + batching, 1)
    indexed = random.sample(rest, random.randint(0, len(rest)))
    batch = [(None, random.choice([1, 2, 3, 6])) for _ in range(random.randint(0, 2))]
    batch += [(dim, sizes[dim]) for dim in batching]
    random.shuffle(batch)
    batch_shape = [size for _, size in batch]
    vector_dim = random.randint(0, len(batch))
    indices = [*batch_shape[:vector_dim], len(indexed), *batch_shape[vector_dim:]]
    if len(indexed) == 1 and random.random() < 0.5:
        vector_dim, indices = len(batch), batch_shape
    positions = [[dim for dim, _ in batch].index(dim) for dim in batching]
    indices_batching = [position if position < vector_dim else position + 1 for position in positions]
    windows = [window[dim] for dim in rest if dim not in collapsed]
    rank = len(batch) + len(windows)
    offsets = sorted(random.sample(range(rank), len(windows)))
    remaining_windows, remaining_batch = iter(windows), iter(batch_shape)
    slices = [next(remaining_windows) if dim in offsets else next(remaining_batch) for dim in range(rank)]
    slice_sizes = [window[dim] for dim in dims]
    return sizes, indices, slices, offsets, collapsed, batching, indices_batching, indexed, vector_dim, slice_sizes


@generator
def gather(random):
    """With any kind of dimension numbers."""
    sizes, indices, slices, offsets, collapsed, batching, indices_batching, indexed, vector_dim, slice_sizes = (
        _window_numbers(random)
    )
    attributes = (
        f"dimension_numbers = #stablehlo.gather<offset_dims = {offsets}, collapsed_slice_dims = {collapsed},"
        f" operand_batching_dims = {batching}, start_indices_batching_dims = {indices_batching},"
        f" start_index_map = {indexed}, index_vector_dim = {vector_dim}>, slice_sizes = {array(slice_sizes)}"
    )
    return function_of("gather", [tensor(sizes), tensor(indices, "i32")], [tensor(slices)], attributes)


@generator
def scatter(random):
    """With any kind of dimension numbers, several inputs and reductions."""
    sizes, indices, slices, offsets, collapsed, batching, indices_batching, indexed, vector_dim, _ = _window_numbers(
        random
    )
    attributes = (
        f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {offsets},"
        f" inserted_window_dims = {collapsed}, input_batching_dims = {batching},"
        f" scatter_indices_batching_dims = {indices_batching}, scatter_dims_to_operand_dims = {indexed},"
        f" index_vector_dim = {vector_dim}>"
    )
    names = random.choice([["add"], ["multiply"], ["maximum"], ["and"], ["or"], ["xor"], ["keep"], ["add", "and"]])
    dtypes = [random.choice(["i32", "i1"]) for _ in range(random.randint(1, 3))]
    operands = [tensor(sizes, dtype) for dtype in dtypes]
    updates = [tensor(slices, dtype) for dtype in dtypes]
    region = computation(random, dtypes, names)
    return function_of("scatter", [*operands, tensor(indices, "i32"), *updates], operands, attributes, region)

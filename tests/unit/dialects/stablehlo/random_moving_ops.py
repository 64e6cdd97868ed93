"""Random ops that put elements elsewhere, and calls with a known target."""

from __future__ import annotations

from shardy_dialects.stablehlo.custom_call import POINTWISE_TARGETS
from tests.unit.dialects.stablehlo.random_ops import SIZES, array, function_of, shape, tensor

WIDTHS = {"i8": 8, "f16": 16, "i32": 32, "f32": 32, "f64": 64, "i4": 4, "f8E5M2": 8}


def pad(random):
    """At the edges, in between, and less than none."""
    sizes, low, high, interior, out = shape(random), [], [], [], []
    for size in sizes:
        edges = [random.choice([0, 0, 1, 3, -1, -2]) for _ in range(2)]
        inside = random.choice([0, 0, 1, 2])
        dilated = size + max(size - 1, 0) * inside
        edges = edges if dilated + sum(edges) >= 0 else [0, 0]
        low.append(edges[0])
        high.append(edges[1])
        interior.append(inside)
        out.append(dilated + sum(edges))
    attributes = f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}"
    attributes += f", interior_padding = {array(interior)}"
    return function_of("pad", [tensor(sizes), tensor([])], [tensor(out)], attributes)


def dynamic_slice(random):
    """Some dimensions whole."""
    sizes = shape(random)
    out = [random.choice([size, random.randint(0, size)]) for size in sizes]
    operands = [tensor(sizes), *["tensor<i32>"] * len(sizes)]
    return function_of("dynamic_slice", operands, [tensor(out)], f"slice_sizes = {array(out)}")


def transpose(random):
    """In any order."""
    sizes = shape(random, 0, 5)
    order = random.sample(range(len(sizes)), len(sizes))
    results = [tensor([sizes[dim] for dim in order])]
    return function_of("transpose", [tensor(sizes)], results, f"permutation = {array(order)}")


def reverse(random):
    """Of some dimensions."""
    sizes = shape(random)
    dims = random.sample(range(len(sizes)), random.randint(0, len(sizes)))
    return function_of("reverse", [tensor(sizes)], [tensor(sizes)], f"dimensions = {array(dims)}")


def bitcast_convert(random):
    """Between any two widths."""
    sizes, (before, after) = shape(random, 0, 3), random.choices(list(WIDTHS), k=2)
    parts, words_per_part = WIDTHS[before] // WIDTHS[after], WIDTHS[after] // WIDTHS[before]
    operand = tensor([*sizes, *[words_per_part] * (words_per_part > 1)], before)
    return function_of("bitcast_convert", [operand], [tensor([*sizes, *[parts] * (parts > 1)], after)])


def pointwise_call(random):
    """Calls of one and two tensors that keep the shape."""
    type_ = tensor(shape(random))
    attributes = f'call_target_name = "{random.choice(POINTWISE_TARGETS)}"'
    operands, results = ([type_] * random.choice([1, 1, 2]) for _ in range(2))
    return function_of("custom_call", operands, results, attributes)


def top_k_call(random):
    """Approximate ones along any dimension."""
    sizes = shape(random, 1)
    dim = random.randrange(len(sizes))
    out = [*sizes[:dim], random.randint(0, sizes[dim]), *sizes[dim + 1 :]]
    attributes = f'call_target_name = "{random.choice(["ApproxTopK", "PartialReduce"])}"'
    operands = [tensor(sizes), tensor(sizes, "i32"), tensor([]), tensor([], "i32")]
    return function_of("custom_call", operands, [tensor(out), tensor(out, "i32")], attributes)


def decomposition_call(random):
    """Of matrices in batches."""
    batch, rows, columns = shape(random, 0, 2), random.choice(SIZES), random.choice(SIZES)
    matrix, vector = tensor([*batch, rows, columns]), tensor([*batch, min(rows, columns)])
    target = random.choice(["Qr", "QrDecompositionBlock", "ProductOfElementaryHouseholderReflectors"])
    operands, results = ([matrix, vector], [matrix]) if target.startswith("Product") else ([matrix], [matrix, vector])
    return function_of("custom_call", operands, results, f'call_target_name = "{target}"')


GENERATORS = (
    pad,
    dynamic_slice,
    transpose,
    reverse,
    bitcast_convert,
    pointwise_call,
    top_k_call,
    decomposition_call,
)

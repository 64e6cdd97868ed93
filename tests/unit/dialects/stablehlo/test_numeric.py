"""The rules against arithmetic: an op on the shards of its operands gives the shards of its result."""

from __future__ import annotations

import pytest

from shardy_py.sharding.rule import FactorKind
from tests.unit.dialects.stablehlo.ops import REGISTRY, make_op

np = pytest.importorskip("numpy")

DOT = (
    "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2],"
    " rhs_contracting_dimensions = [0]>"
)
GATHER = "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
CONV = "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>"


def broadcast(x, shape):
    """Repeat along a new dimension in the middle."""
    return np.broadcast_to(x[:, None, :], shape)


def take(table, rows, shape):
    """Look rows up; those out of range count as zero, as they belong to another shard."""
    inside = rows[:, 0] < table.shape[0]
    return np.where(inside[:, None], table[np.minimum(rows[:, 0], table.shape[0] - 1)], 0)


def pointwise_convolution(x, kernel, shape):
    """A convolution with a window of one element."""
    return np.einsum("bsi,io->bso", x, kernel[0])


CASES = [
    ("add", [(4, 6), (4, 6)], [(4, 6)], {}, lambda x, y, shape: x + y),
    ("select", [(), (4, 6), (4, 6)], [(4, 6)], {}, lambda p, x, y, shape: np.where(p > 2, x, y)),
    ("transpose", [(4, 6, 2)], [(2, 4, 6)], {"permutation": (2, 0, 1)}, lambda x, shape: x.transpose(2, 0, 1)),
    ("broadcast_in_dim", [(4, 6)], [(4, 2, 6)], {"broadcast_dimensions": (0, 2)}, broadcast),
    ("reshape", [(8, 6)], [(48,)], {}, np.reshape),
    ("reshape", [(8, 4, 6)], [(2, 16, 6)], {}, np.reshape),
    ("reshape", [(4, 6, 2)], [(4, 2, 3, 1, 2)], {}, np.reshape),
    ("reduce", [(4, 6, 2), ()], [(4, 2)], {"dimensions": (1,)}, lambda x, _, shape: x.sum(1)),
    (
        "dot_general",
        [(4, 6, 8), (8, 4, 2)],
        [(4, 6, 2)],
        {"dot_dimension_numbers": DOT},
        lambda x, y, shape: np.einsum("bmk,kbn->bmn", x, y),
    ),
    ("dot", [(4, 8), (8, 6)], [(4, 6)], {}, lambda x, y, shape: x @ y),
    ("convolution", [(2, 8, 4), (1, 4, 6)], [(2, 8, 6)], {"dimension_numbers": CONV}, pointwise_convolution),
    ("concatenate", [(4, 2), (4, 6)], [(4, 8)], {"dimension": 1}, lambda x, y, shape: np.concatenate([x, y], 1)),
    ("sort", [(4, 6)], [(4, 6)], {"dimension": 1}, lambda x, shape: np.sort(x, 1)),
    ("slice", [(4, 6)], [(4, 2)], {}, lambda x, shape: x[:, :2]),
    ("gather", [(6, 4), (8, 1)], [(8, 4)], {"dimension_numbers": GATHER}, take),
    ("fft", [(4, 8)], [(4, 8)], {"fft_length": (8,)}, lambda x, shape: np.fft.fft(x)),
    (
        "triangular_solve",
        [(4, 3, 3), (4, 3, 2)],
        [(4, 3, 2)],
        {"left_side": True},
        lambda a, b, shape: np.linalg.solve(a, b),
    ),
]


def split(value, mapping, sizes, factor):
    """The two shards of an array along a factor; the array twice where it lacks the factor."""
    for dim, factors in enumerate(mapping):
        if factor in factors:
            # A lone factor may be of another size than its dimension, as the other tensors of a concatenation.
            inner = [sizes[item] for item in factors] if len(factors) > 1 else [value.shape[dim]]
            axis = dim + factors.index(factor)
            halves = np.split(value.reshape(*value.shape[:dim], *inner, *value.shape[dim + 1 :]), 2, axis=axis)
            return [half.reshape(local_shape(value.shape, mapping, factor)) for half in halves]
    return [value, value]


def local_shape(shape, mapping, factor):
    """The shape of a shard."""
    return tuple(size // 2 if factor in factors else size for size, factors in zip(shape, mapping, strict=True))


def random_operand(shape, position, name):
    """Whole numbers, so that sums are exact; row numbers for the indices of a gather."""
    generator = np.random.default_rng(position)
    if name == "gather" and position == 1:
        return generator.integers(0, 3, shape)
    values = generator.integers(-8, 9, shape).astype(float)
    return values + 20 * np.eye(shape[-1]) if name == "triangular_solve" and position == 0 else values


@pytest.mark.parametrize(("name", "operands", "results", "attributes", "function"), CASES)
def test_sharded_ops_give_the_shards_of_the_result(name, operands, results, attributes, function):
    """Along a pass-through factor shards are computed from shards; along a reduction factor they add up."""
    op = make_op(name, operands, results, **attributes)
    rule = REGISTRY.get_sharding_rule(op)
    inputs = [random_operand(shape, position, name) for position, shape in enumerate(operands)]
    whole = function(*inputs, results[0])
    (result_mapping,) = rule.result_mappings
    checked = 0
    for factor, size in enumerate(rule.factor_sizes):
        kind = rule.kind(factor)
        is_gathered = name == "gather" and kind is FactorKind.REDUCTION
        if size % 2 or kind not in (FactorKind.PASS_THROUGH, FactorKind.REDUCTION) or is_gathered:
            continue
        shards = [
            split(value, mapping, rule.factor_sizes, factor)
            for value, mapping in zip(inputs, rule.operand_mappings, strict=True)
        ]
        shape = local_shape(results[0], result_mapping, factor)
        parts = [function(*(pair[half] for pair in shards), shape) for half in (0, 1)]
        if kind is FactorKind.REDUCTION:
            np.testing.assert_allclose(parts[0] + parts[1], whole)
        else:
            expected = split(whole, result_mapping, rule.factor_sizes, factor)
            np.testing.assert_allclose(parts[0], expected[0])
            np.testing.assert_allclose(parts[1], expected[1])
        checked += 1
    assert checked > 0

"""Rules that the reference does not have, given on demand."""

from __future__ import annotations

import pytest

from tests.unit.dialects.stablehlo.ops import make_op, rule_of

RAGGED = (
    "#chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1],"
    " rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>"
)
CONV = "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>"
GATHER = "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"

CASES = [
    ("chlo.erf", [(4, 8)], [(4, 8)], {}, "<([i, j])->([i, j]) {i=4, j=8}>"),
    ("chlo.next_after", [(4,), (4,)], [(4,)], {}, "<([i], [i])->([i]) {i=4}>"),
    ("chlo.broadcast_add", [(4, 8), (4, 8)], [(4, 8)], {}, "<([i, j], [i, j])->([i, j]) {i=4, j=8}>"),
    ("chlo.broadcast_add", [(4, 8), (8,)], [(4, 8)], {}, "<([i, j], [j])->([i, j]) {i=4, j=8}>"),
    ("chlo.broadcast_add", [(4, 8), (1, 8)], [(4, 8)], {}, "<([i, j], [k, j])->([i, j]) {i=4, j=8, k=1}>"),
    (
        "chlo.broadcast_add",
        [(4, 8), (4,)],
        [(4, 8)],
        {"broadcast_dimensions": (0,)},
        "<([i, j], [i])->([i, j]) {i=4, j=8}>",
    ),
    ("chlo.broadcast_select", [(), (4,), (4,)], [(4,)], {}, "<([], [i], [i])->([i]) {i=4}>"),
    (
        "chlo.top_k",
        [(16, 8)],
        [(16, 2), (16, 2)],
        {},
        "<([i, j])->([i, j], [i, j]) {i=16, j=8} need_replication={j} blocked_propagation={j}>",
    ),
    (
        "chlo.ragged_dot",
        [(8, 4), (2, 4, 6), (2,)],
        [(8, 6)],
        {"ragged_dot_dimension_numbers": RAGGED},
        "<([i, k], [l, k, j], [l])->([i, j]) {i=8, j=6, k=4, l=2} reduction={k} need_replication={i, l}>",
    ),
    (
        "batch_norm_training",
        [(4, 8), (8,), (8,)],
        [(4, 8), (8,), (8,)],
        {"feature_index": 1},
        "<([i, j], [j], [j])->([i, j], [j], [j]) {i=4, j=8}>",
    ),
    (
        "batch_norm_grad",
        [(4, 8), (8,), (8,), (8,), (4, 8)],
        [(4, 8), (8,), (8,)],
        {"feature_index": 1},
        "<([i, j], [j], [j], [j], [i, j])->([i, j], [j], [j]) {i=4, j=8}>",
    ),
    ("broadcast", [(4,)], [(2, 4)], {}, "<([j])->([i, j]) {i=2, j=4}>"),
    ("map", [(4,), (4,)], [(4,)], {}, "<([i], [i])->([i]) {i=4}>"),
    (
        "einsum",
        [(2, 4, 8), (8, 6)],
        [(2, 4, 6)],
        {"einsum_config": "abk,kn->abn"},
        "<([i, j, k], [k, l])->([i, j, l]) {i=2, j=4, k=8, l=6} reduction={k}>",
    ),
    ("unary_einsum", [(4, 8)], [(8,)], {"einsum_config": "ab->b"}, "<([i, j])->([j]) {i=4, j=8} reduction={i}>"),
    ("einsum", [(4, 4), (4,)], [(4,)], {"einsum_config": "aa,a->a"}, None),
    ("rng", [(), (), (2,)], [(4, 8)], {}, "<([], [], [k])->([i, j]) {i=4, j=8, k=1}>"),
    (
        "dynamic_broadcast_in_dim",
        [(4,), (2,)],
        [(4, 8)],
        {"broadcast_dimensions": (0,)},
        "<([i], [k])->([i, j]) {i=4, j=8, k=1}>",
    ),
    ("dynamic_reshape", [(2, 4), (1,)], [(8,)], {}, "<([i, j], [k])->([ij]) {i=2, j=4, k=1}>"),
    (
        "dynamic_pad",
        [(4, 8), (), (2,), (2,), (2,)],
        [(6, 8)],
        {},
        "<([i, j], [], [k], [l], [m])->([i, j]) {i=4, j=8, k=1, l=1, m=1} permutation={i}>",
    ),
    (
        "real_dynamic_slice",
        [(4, 8), (2,), (2,), (2,)],
        [(2, 8)],
        {},
        "<([i, j], [k], [l], [m])->([i, j]) {i=4, j=8, k=1, l=1, m=1} need_replication={i} blocked_propagation={i}>",
    ),
    (
        "dynamic_gather",
        [(4, 8), (3, 1), (2,)],
        [(3, 8)],
        {"dimension_numbers": GATHER},
        "<([k, j], [i, l], [m])->([i, j]) {i=3, j=8, k=4, l=1, m=1} reduction={k} need_replication={l}>",
    ),
    (
        "dynamic_conv",
        [(2, 8, 3), (1, 3, 5), (1, 2)],
        [(2, 8, 5)],
        {"dimension_numbers": CONV, "batch_group_count": 1, "feature_group_count": 1},
        "<([i, j, k], [m, k, l], [n, o])->([i, j, l]) {i=2, j=8, k=3, l=5, m=1, n=1, o=1} reduction={k}"
        " permutation={j}>",
    ),
    (
        "torch_index_select",
        [(2, 4, 8), (2, 3)],
        [(2, 3, 8)],
        {"dim": 1, "batch_dims": 1},
        "<([i, j, l], [i, k])->([i, k, l]) {i=2, j=4, k=3, l=8} reduction={j}>",
    ),
    (
        "set_dimension_size",
        [(4, 8), ()],
        [(4, 8)],
        {"dimension": 1},
        "<([i, j], [])->([i, j]) {i=4, j=8} need_replication={i, j}>",
    ),
    ("get_dimension_size", [(4, 8)], [()], {"dimension": 1}, "<([i, j])->([]) {i=4, j=8}>"),
    ("uniform_quantize", [(4, 8)], [(4, 8)], {}, "<([i, j])->([i, j]) {i=4, j=8}>"),
]


@pytest.mark.parametrize(("name", "operands", "results", "attributes", "expected"), CASES)
def test_the_extended_rule_of_an_op(name, operands, results, attributes, expected):
    """Ops without a rule in the reference have none by default, and the obvious one as an extended rule."""
    op = make_op(name, operands, results, **attributes)
    assert rule_of(op) is None
    assert rule_of(op, extended=True) == expected


def test_extended_rules_change_nothing_else():
    """An op that has a rule anyway keeps it."""
    op = make_op("transpose", [(2, 4)], [(4, 2)], permutation=(1, 0))
    assert rule_of(op, extended=True) == rule_of(op) == "<([j, i])->([i, j]) {i=4, j=2}>"

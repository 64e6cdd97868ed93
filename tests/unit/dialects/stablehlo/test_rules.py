"""The rules of ops that need no more than their types and attributes, one table per family."""

from __future__ import annotations

import pytest

from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.types import tensor
from tests.unit.dialects.stablehlo.ops import TOKEN, make_op, rule_of

ELEMENTWISE = [
    ("add", [(2, 1, 4)] * 2, [(2, 1, 4)], {}, "<([i, j, k], [i, j, k])->([i, j, k]) {i=2, j=1, k=4}>"),
    ("add", [(2, 0)] * 2, [(2, 0)], {}, "<([i, j], [i, j])->([i, j]) {i=2, j=0}>"),
    ("add", [()] * 2, [()], {}, "<([], [])->([])>"),
    ("clamp", [(), (4, 8), ()], [(4, 8)], {}, "<([], [i, j], [])->([i, j]) {i=4, j=8}>"),
    ("select", [(), (4,), (4,)], [(4,)], {}, "<([], [i], [i])->([i]) {i=4}>"),
    ("select", [(4,), (4,), (4,)], [(4,)], {}, "<([i], [i], [i])->([i]) {i=4}>"),
    ("bitcast_convert", [(4, 2)], [(4, 2)], {}, "<([i, j])->([i, j]) {i=4, j=2}>"),
    ("bitcast_convert", [(4, 2, 2)], [(4, 2)], {}, "<([i, j, k])->([i, j]) {i=4, j=2, k=2} need_replication={k}>"),
    ("bitcast_convert", [(4, 2)], [(4, 2, 2)], {}, "<([i, j])->([i, j, k]) {i=4, j=2, k=2} need_replication={k}>"),
    (
        "batch_norm_inference",
        [(4, 8, 16), (8,), (8,), (8,), (8,)],
        [(4, 8, 16)],
        {"feature_index": 1},
        "<([i, j, k], [j], [j], [j], [j])->([i, j, k]) {i=4, j=8, k=16}>",
    ),
]

MOVEMENT = [
    ("broadcast_in_dim", [()], [(2, 3)], {"broadcast_dimensions": ()}, "<([])->([i, j]) {i=2, j=3}>"),
    (
        "broadcast_in_dim",
        [(2, 3, 5, 1, 7)],
        [(2, 5, 3, 11, 7, 13)],
        {"broadcast_dimensions": (0, 2, 1, 3, 4)},
        "<([i, k, j, l, n])->([i, j, k, m, n, o]) {i=2, j=5, k=3, l=1, m=11, n=7, o=13}>",
    ),
    ("transpose", [(8, 2, 4)], [(4, 8, 2)], {"permutation": (2, 0, 1)}, "<([j, k, i])->([i, j, k]) {i=4, j=8, k=2}>"),
    ("reverse", [(4, 2)], [(4, 2)], {"dimensions": (1,)}, "<([i, j])->([i, j]) {i=4, j=2} permutation={j}>"),
    ("reshape", [(1, 1)], [()], {}, "<([i, j])->([]) {i=1, j=1}>"),
    ("reshape", [(4, 0)], [(0, 8)], {}, None),
    ("reshape", [(2, 4)], [(8,)], {}, "<([i, j])->([ij]) {i=2, j=4}>"),
    ("reshape", [(8, 4, 5)], [(2, 16, 5)], {}, "<([ij, k, l])->([i, jk, l]) {i=2, j=4, k=4, l=5}>"),
    ("reshape", [(6, 4)], [(4, 6)], {}, "<([ij, mn])->([ik, ln]) {i=2, j=3, k=2, l=3, m=2, n=2}>"),
    ("reshape", [(32,)], [(8, 1, 4)], {}, "<([ik])->([i, j, k]) {i=8, j=1, k=4}>"),
]

DOT = [
    ("dot", [(32,), (32,)], [()], {}, "<([i], [i])->([]) {i=32} reduction={i}>"),
    ("dot", [(8, 32), (32,)], [(8,)], {}, "<([i, j], [j])->([i]) {i=8, j=32} reduction={j}>"),
    ("dot", [(32,), (32, 16)], [(16,)], {}, "<([j], [j, i])->([i]) {i=16, j=32} reduction={j}>"),
    ("dot", [(8, 32), (32, 16)], [(8, 16)], {}, "<([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}>"),
    (
        "dot_general",
        [(4, 8, 32), (32, 4, 16)],
        [(4, 8, 16)],
        {
            "dot_dimension_numbers": "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1],"
            " lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>"
        },
        "<([i, j, l], [l, i, k])->([i, j, k]) {i=4, j=8, k=16, l=32} reduction={l}>",
    ),
]

NHWC = "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>"

CONVOLUTION = [
    (
        "convolution",
        [(2, 224, 224, 192), (3, 3, 192, 64)],
        [(2, 112, 112, 64)],
        {"dimension_numbers": NHWC, "batch_group_count": 1, "feature_group_count": 1},
        "<([i, jk, lm, n], [k, m, n, o])->([i, j, l, o]) {i=2, j=112, k=2, l=112, m=2, n=192, o=64}"
        " reduction={k, m, n} permutation={j, l}>",
    ),
    (
        "convolution",
        [(8, 224, 224, 192), (3, 3, 12, 256)],
        [(8, 112, 112, 256)],
        {"dimension_numbers": NHWC, "batch_group_count": 1, "feature_group_count": 16},
        "<([i, jk, lm, no], [k, m, o, np])->([i, j, l, np])"
        " {i=8, j=112, k=2, l=112, m=2, n=16, o=12, p=16} reduction={k, m, o} permutation={j, l}>",
    ),
    (
        "convolution",
        [(4, 224, 224, 192), (3, 3, 192, 256)],
        [(1, 112, 112, 256)],
        {"dimension_numbers": NHWC, "batch_group_count": 4, "feature_group_count": 1},
        "<([i, kl, mn, o], [l, n, o, ip])->([j, k, m, ip])"
        " {i=4, j=1, k=112, l=2, m=112, n=2, o=192, p=64} reduction={l, n, o} permutation={k, m}>",
    ),
]

GATHER = [
    (
        "gather",
        [(3, 4, 2, 5), tensor(2, 3, 3, dtype="i64")],
        [(2, 3, 2, 2, 1)],
        {
            "dimension_numbers": "#stablehlo.gather<offset_dims = [2, 3, 4], collapsed_slice_dims = [0],"
            " start_index_map = [1, 0, 3], index_vector_dim = 2>"
        },
        "<([o, k, l, m], [i, j, p])->([i, j, k, l, n]) {i=2, j=3, k=4, l=2, m=5, n=1, o=3, p=3}"
        " reduction={m, o} need_replication={k, n, p} blocked_propagation={k}>",
    ),
    (
        "gather",
        [(5, 3, 7, 4), tensor(7, 2, 5, 3, dtype="i64")],
        [(7, 5, 3, 2)],
        {
            "dimension_numbers": "#stablehlo.gather<offset_dims = [3], collapsed_slice_dims = [1],"
            " operand_batching_dims = [0, 2], start_indices_batching_dims = [2, 0], start_index_map = [1, 3],"
            " index_vector_dim = 1>"
        },
        "<([j, m, i, l], [i, n, j, k])->([i, j, k, l]) {i=7, j=5, k=3, l=4, m=3, n=2}"
        " reduction={m} need_replication={l, n} blocked_propagation={l}>",
    ),
]

PERMUTED = "<([i, j, k], [])->([i, j, k]) {i=16, j=48, k=3} permutation={i, j}>"

REDUCTION = [
    (
        "reduce",
        [(2, 64, 13), ()],
        [(2, 13)],
        {"dimensions": (1,)},
        "<([i, j, k], [])->([i, k]) {i=2, j=64, k=13} reduction={j}>",
    ),
    (
        "reduce",
        [(2, 64), (2, 64), (), ()],
        [(64,), (64,)],
        {"dimensions": (0,)},
        "<([i, j], [i, j], [], [])->([j], [j]) {i=2, j=64} reduction={i}>",
    ),
    (
        "reduce_window",
        [(48, 48, 3), ()],
        [(16, 48, 3)],
        {
            "window_dimensions": (3, 1, 1),
            "window_strides": (3, 1, 1),
            "padding": DenseElements((3, 2), (0, 0, 2, -2, 0, 0)),
        },
        PERMUTED,
    ),
    ("reduce_window", [(8, 16), ()], [(8, 16)], {"window_dimensions": (1, 1)}, "<([i, j], [])->([i, j]) {i=8, j=16}>"),
    (
        "reduce_window",
        [(8,), ()],
        [(8,)],
        {"window_dimensions": (1,), "padding": DenseElements((1, 2), (0,))},
        "<([i], [])->([i]) {i=8}>",
    ),
    (
        "reduce_window",
        [(8, 16), ()],
        [(22, 16)],
        {"window_dimensions": (1, 1), "base_dilations": (3, 1)},
        "<([i, j], [])->([i, j]) {i=22, j=16} permutation={i}>",
    ),
    (
        "select_and_scatter",
        [(10, 24, 64), (9, 12, 64), ()],
        [(10, 24, 64)],
        {
            "window_dimensions": (1, 2, 1),
            "window_strides": (1, 2, 1),
            "padding": DenseElements((3, 2), (-1, 0, 0, 0, 0, 0)),
        },
        "<([j, l, m], [i, k, m], [])->([j, l, m]) {i=9, j=10, k=12, l=24, m=64}"
        " need_replication={i, k} permutation={j, l}>",
    ),
]

SLICING = [
    ("slice", [(32, 4, 8)], [(32, 1, 2)], {}, "<([i, j, k])->([i, j, k]) {i=32, j=4, k=8} permutation={j, k}>"),
    ("pad", [(28, 16), ()], [(30, 16)], {}, "<([i, j], [])->([i, j]) {i=28, j=16} permutation={i}>"),
    (
        "dynamic_slice",
        [(32, 4), (), ()],
        [(32, 1)],
        {},
        "<([i, j], [], [])->([i, j]) {i=32, j=4} need_replication={j} blocked_propagation={j}>",
    ),
]

LINALG = [
    ("cholesky", [(2, 8, 8)], [(2, 8, 8)], {}, "<([i, j, k])->([i, j, k]) {i=2, j=8, k=8} need_replication={j, k}>"),
    (
        "fft",
        [(8, 32, 64)],
        [(8, 32, 33)],
        {"fft_length": (32, 64)},
        "<([i, j, k])->([i, j, k]) {i=8, j=32, k=64} need_replication={j, k} blocked_propagation={k}>",
    ),
    (
        "triangular_solve",
        [(8, 3, 3), (8, 3, 5)],
        [(8, 3, 5)],
        {"left_side": True, "transpose_a": "#stablehlo<transpose NO_TRANSPOSE>"},
        "<([i, j, l], [i, j, k])->([i, l, k]) {i=8, j=3, k=5, l=3} need_replication={j, k, l}>",
    ),
    (
        "triangular_solve",
        [(8, 3, 3), (8, 3, 5)],
        [(8, 3, 5)],
        {"left_side": True, "transpose_a": "#stablehlo<transpose TRANSPOSE>"},
        "<([i, l, j], [i, j, k])->([i, l, k]) {i=8, j=3, k=5, l=3} need_replication={j, k, l}>",
    ),
    (
        "triangular_solve",
        [(8, 3, 3), (8, 5, 3)],
        [(8, 5, 3)],
        {"left_side": False, "transpose_a": "#stablehlo<transpose NO_TRANSPOSE>"},
        "<([i, l, k], [i, j, k])->([i, j, l]) {i=8, j=5, k=3, l=3} need_replication={j, k, l}>",
    ),
]

SORT_AND_RANDOM = [
    (
        "sort",
        [(4, 8)] * 2,
        [(4, 8)] * 2,
        {"dimension": 0},
        "<([i, j], [i, j])->([i, j], [i, j]) {i=4, j=8} need_replication={i}>",
    ),
    (
        "sort",
        [(1, 4)],
        [(1, 4)],
        {"dimension": 1},
        "<([i, j])->([i, j]) {i=1, j=4} need_replication={j} blocked_propagation={j}>",
    ),
    (
        "rng_bit_generator",
        [(2,)],
        [(2,), (4, 1000)],
        {},
        "<([i])->([i], [j, k]) {i=2, j=4, k=1000} need_replication={i} blocked_propagation={i}>",
    ),
]

COLLECTIVES = [
    ("all_reduce", [(4, 8)], [(4, 8)], {}, "<([i, j])->([i, j]) {i=4, j=8}>"),
    (
        "all_gather",
        [(2, 2), (2, 2)],
        [(2, 4), (2, 4)],
        {"all_gather_dim": 1},
        "<([i, j], [i, j])->([i, k], [i, k]) {i=2, j=2, k=4} need_replication={j, k}>",
    ),
    (
        "reduce_scatter",
        [(2, 64)],
        [(2, 32)],
        {"scatter_dimension": 1},
        "<([i, j])->([i, k]) {i=2, j=64, k=32} need_replication={j, k}>",
    ),
    (
        "all_to_all",
        [(2, 4)],
        [(4, 2)],
        {"split_dimension": 1, "concat_dimension": 0},
        "<([k, i])->([l, j]) {i=4, j=2, k=2, l=4} need_replication={i, j, k, l}>",
    ),
    (
        "all_to_all",
        [(2, 4)],
        [(2, 4)],
        {"split_dimension": 0, "concat_dimension": 0},
        "<([j, i])->([k, i]) {i=4, j=2, k=2} need_replication={j, k}>",
    ),
]


def call(target, operands, results, expected):
    """A row for a custom call."""
    return "custom_call", operands, results, {"call_target_name": target}, expected


CUSTOM_CALLS = [
    call("MoveToHost", [(8, 4)], [(8, 4)], "<([i, j])->([i, j]) {i=8, j=4}>"),
    call("InspectSharding", [(8,)], [], None),
    call("_SPMDInternalOp_MultiPad", [(8, 4)], [(10, 4)], "<([i, j])->([i, j]) {i=10, j=4} permutation={i}>"),
    call(
        "_SPMDInternalOp_MultiSlice",
        [(8, 4)],
        [(8, 3), (8, 3)],
        "<([i, j])->([i, j], [i, j]) {i=8, j=3} permutation={j}>",
    ),
    call("LayoutConstraint", [(8, 4), (8,), ()], [(8, 4)], "<([i, j], [i], [])->([i, j]) {i=8, j=4}>"),
    call("annotate_device_placement", [TOKEN], [TOKEN], None),
    call("Eigh", [(8, 4, 4)], [(8, 4, 4), (8, 4)], "<([i, j, k])->([i, j, k], [i, k]) {i=8, j=4, k=4}>"),
    call(
        "Qr",
        [(8, 5, 3)],
        [(8, 5, 3), (8, 3)],
        "<([i, j, k])->([i, j, k], [i, l]) {i=8, j=5, k=3, l=3} need_replication={j, k, l}>",
    ),
    call(
        "ProductOfElementaryHouseholderReflectors",
        [(8, 12, 16), (8, 5)],
        [(8, 12, 16)],
        "<([i, j, k], [i, l])->([i, j, k]) {i=8, j=12, k=16, l=5} need_replication={j, k, l}>",
    ),
    call(
        "mhlo.topk",
        [(16, 8)],
        [(16, 2), (16, 2)],
        "<([i, j])->([i, j], [i, j]) {i=16, j=8} need_replication={j} blocked_propagation={j}>",
    ),
    call(
        "ApproxTopK",
        [(16, 4), (16, 4), (), ()],
        [(16, 2), (16, 2)],
        "<([i, j], [i, j], [], [])->([i, k], [i, k]) {i=16, j=4, k=2} need_replication={k} blocked_propagation={k}>",
    ),
    call("mhlo.topk", [(16, 8), (16,)], [(16, 2)], None),
    call("tpu_custom_call", [(8,)], [(8,)], None),
    call("unknown", [(8,)], [(8,)], None),
]

WITHOUT_RULE = [
    ("constant", [], [(8,)], {}, None),
    ("iota", [], [(8,)], {"iota_dimension": 0}, None),
    ("unknown_op", [(8,)], [(8,)], {}, None),
]

TABLES = [
    ELEMENTWISE,
    MOVEMENT,
    DOT,
    CONVOLUTION,
    GATHER,
    REDUCTION,
    SLICING,
    LINALG,
    SORT_AND_RANDOM,
    COLLECTIVES,
    CUSTOM_CALLS,
    WITHOUT_RULE,
]


@pytest.mark.parametrize(("name", "operands", "results", "attributes", "expected"), [row for t in TABLES for row in t])
def test_the_rule_of_an_op(name, operands, results, attributes, expected):
    """Every op has the rule that the reference gives it, and none where the reference gives none."""
    assert rule_of(make_op(name, operands, results, **attributes)) == expected


CONSERVATIVE = [
    (
        "concatenate",
        [(4, 3, 256), (4, 5, 256)],
        [(4, 8, 256)],
        {"dimension": 1},
        "<([i, k, j], [i, l, j])->([i, m, j]) {i=4, j=256, k=1, l=1, m=1}>",
    ),
    (
        "convolution",
        [(2, 224, 224, 192), (3, 3, 192, 64)],
        [(2, 112, 112, 64)],
        {"dimension_numbers": NHWC, "batch_group_count": 1, "feature_group_count": 1},
        "<([i, l, m, j], [n, o, j, k])->([i, p, q, k]) {i=2, j=192, k=64, l=1, m=1, n=1, o=1, p=1, q=1} reduction={j}>",
    ),
    (
        "pad",
        [(28, 16), ()],
        [(30, 16)],
        {},
        "<([i, j], [])->([i, j]) {i=28, j=16} permutation={i} blocked_propagation={i}>",
    ),
    ("slice", [(32, 4)], [(32, 1)], {}, "<([i, j])->([i, j]) {i=32, j=4} permutation={j} blocked_propagation={j}>"),
    (
        "reduce_window",
        [(8, 16), ()],
        [(4, 16)],
        {"window_dimensions": (2, 1), "window_strides": (2, 1)},
        "<([i, j], [])->([i, j]) {i=4, j=16} permutation={i} blocked_propagation={i}>",
    ),
    (
        "select_and_scatter",
        [(8,), (4,), ()],
        [(8,)],
        {"window_dimensions": (2,), "window_strides": (2,)},
        "<([j], [i], [])->([j]) {i=4, j=8} need_replication={i} permutation={j} blocked_propagation={i, j}>",
    ),
]


@pytest.mark.parametrize(("name", "operands", "results", "attributes", "expected"), CONSERVATIVE)
def test_conservative_rules_keep_from_uneven_shards(name, operands, results, attributes, expected):
    """In conservative mode factors that need a permutation are left out or blocked."""
    op = make_op(name, operands, results, **attributes)
    assert rule_of(op, conservative=True) == expected
    assert rule_of(op) != expected

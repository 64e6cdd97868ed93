"""Sharding rules that follow from the indexing maps of an op's operands."""

from __future__ import annotations

import pytest

from shardy_py.indexing import IndexingMap, op_maps
from shardy_py.sharding.derivation import rule_from_op_maps


def test_a_dot_product_sums_over_its_symbols() -> None:
    """Range variables are reduction factors where the op adds up, otherwise they need replication."""
    numbers = op_maps.DotDimensions(lhs_batch=(), rhs_batch=(), lhs_contracting=(1,), rhs_contracting=(0,))
    maps = op_maps.dot((8, 16), (8, 4), (4, 16), numbers)
    shapes = [(8, 4), (4, 16)]
    assert str(rule_from_op_maps(maps, shapes, [(8, 16)], sums=True)) == (
        "<([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k}>"
    )
    assert str(rule_from_op_maps(maps, shapes, [(8, 16)])).endswith("need_replication={k}>")


def test_a_reshape_shares_digits() -> None:
    """Dimensions that are split have a factor per digit."""
    maps = [op_maps.reshape((2, 4, 4), (8, 4))]
    assert str(rule_from_op_maps(maps, [(8, 4)], [(2, 4, 4)])) == "<([ij, k])->([i, j, k]) {i=2, j=4, k=4}>"


def test_what_moves_needs_a_permutation() -> None:
    """A slice with an offset, a pad and a reversed dimension need a permutation."""
    moved = "<([i])->([i]) {i=4} permutation={i}>"
    assert str(rule_from_op_maps([op_maps.slice_((4,), (2,), (1,))], [(8,)], [(4,)])) == moved
    assert str(rule_from_op_maps([op_maps.pad((4,), (1,), (1,), (0,))], [(2,)], [(4,)])) == moved
    assert str(rule_from_op_maps([op_maps.reverse((4,), [0])], [(4,)], [(4,)])) == moved


def test_what_is_read_at_run_time_needs_replication() -> None:
    """A dimension indexed by a value that is read at run time is no loop's own."""
    rule = rule_from_op_maps([op_maps.dynamic_slice((4, 8), (10, 8)), op_maps.scalar((4, 8))], [(10, 8), ()], [(4, 8)])
    assert str(rule) == "<([k, l], [])->([i, j]) {i=4, j=8, k=1, l=1} need_replication={i, j}>"


def test_no_rule() -> None:
    """There is no rule without operands, for undefined maps, or for results of different shapes."""
    assert rule_from_op_maps([], [], [(4,)]) is None
    assert rule_from_op_maps([IndexingMap.undefined()], [(4,)], [(4,)]) is None
    assert rule_from_op_maps([op_maps.identity((4,))], [(4,)], [(4,), (2,)]) is None


@pytest.mark.parametrize(
    ("maps", "operand", "result", "kinds"),
    [
        ("(i, j) -> (i, j), domain: i in [2, 8], j in [0, 6]", (9, 7), (9, 7), "need_replication={i}"),
        ("(i, j) -> (i, j), domain: i in [0, 8], j in [0, 9]", (9, 7), (9, 7), ""),
        (
            "(i, j) -> (i, j), domain: i in [0, 8], j in [0, 6], i mod 3 in [0, 0]",
            (9, 7),
            (9, 7),
            "need_replication={i}",
        ),
        (
            "(i, j) -> (i, j), domain: i in [0, 8], j in [0, 6], i - j in [-1, 1]",
            (9, 7),
            (9, 7),
            "need_replication={i, j}",
        ),
        ("(i, j) -> (i, j), domain: i in [0, 8], j in [0, 6], i + j in [0, 14]", (9, 7), (9, 7), ""),
        ("(i, j)[k] -> (i, k), domain: i in [0, 8], j in [0, 6], k in [0, 2]", (9, 7), (9, 7), "need_replication={k}"),
        (
            "(i, j) -> (i floordiv 2, j), domain: i in [0, 7], j in [0, 4], i mod 2 in [1, 1]",
            (4, 5),
            (8, 5),
            "need_replication={j}",
        ),
        ("(i, j) -> (i - 2, j), domain: i in [2, 8], j in [0, 6]", (7, 7), (9, 7), "permutation={i}"),
    ],
)
def test_domains_that_leave_out_a_part(maps, operand, result, kinds) -> None:
    """A loop of which a domain takes a part needs replication, unless it is permuted; of a digit, only that digit."""
    found = str(rule_from_op_maps([IndexingMap.parse(maps)], [operand], [result], sums=True))
    assert found.partition("}")[2].strip(" >") == kinds


@pytest.mark.parametrize(
    ("maps", "operands", "expected"),
    [
        (["(i)[p] -> (p, p), domain: i in [0, 3], p in [0, 6]"], [(8, 7)], "<([j, k])->([i]) {i=4, j=1, k=1}>"),
        (
            [
                "(i)[p] -> (p + 1), domain: i in [0, 4], p in [0, 2]",
                "(i)[p] -> (p floordiv 3), domain: i in [0, 4], p in [0, 2]",
            ],
            [(4,), (1,)],
            "<([k], [j])->([i]) {i=5, j=1, k=1}>",
        ),
        (
            [
                "(i)[p] -> (i, p + 1), domain: i in [0, 4], p in [0, 2]",
                "(i)[p] -> (p), domain: i in [0, 4], p in [0, 2]",
            ],
            [(5, 4), (3,)],
            "<([i, j], [j])->([i]) {i=5, j=3} need_replication={j}>",
        ),
    ],
)
def test_symbols_that_index_no_dimension_as_a_whole(maps, operands, expected) -> None:
    """A symbol whose sizes are not those of the dimensions has no factor, and one that some dimension has keeps it."""
    results = [(4,)] if "i in [0, 3]" in maps[0] else [(5,)]
    found = rule_from_op_maps([IndexingMap.parse(text) for text in maps], operands, results, sums=True)
    assert str(found) == expected

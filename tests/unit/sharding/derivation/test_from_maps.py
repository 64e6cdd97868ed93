"""Sharding rules from indexing maps, over loops and from the index of the result."""

from __future__ import annotations

import pytest

from shardy_py.errors import RuleError
from shardy_py.indexing import AffineMap, IndexingMap, op_maps
from shardy_py.sharding.derivation import rule_from_indexing_maps, rule_from_op_maps


def rule(loops, operands, result, kinds=()):
    """Return the rule of an op from (map, shape) of its operands and its result, as text."""
    pairs = [*operands, result]
    maps = [AffineMap.parse(f"({loops}) -> ({text})") for text, _ in pairs]
    return str(rule_from_indexing_maps(maps, [shape for _, shape in pairs], num_results=1, iterator_types=kinds))


def test_hand_written_rules_are_found() -> None:
    """Transpose, broadcast, dot, reduce, reshape, slice and reverse have the rules that StableHLO's ops have."""
    kinds = ["parallel", "reduction"]
    assert rule("a, b", [("a, b", (8, 4))], ("b, a", (4, 8))) == "<([i, j])->([j, i]) {i=8, j=4}>"
    assert rule("a, b", [("b", (4,))], ("a, b", (8, 4))) == "<([j])->([i, j]) {i=8, j=4}>"
    assert rule("a, b", [("a, b", (8, 4))], ("a", (8,)), kinds) == "<([i, j])->([i]) {i=8, j=4} reduction={j}>"
    assert rule("a, b", [("a * 4 + b", (32,))], ("a, b", (8, 4))) == "<([ij])->([i, j]) {i=8, j=4}>"
    assert rule("a", [("a floordiv 4, a mod 4", (8, 4))], ("a", (32,))) == "<([i, j])->([ij]) {i=8, j=4}>"
    assert rule("a", [("a + 2", (8,))], ("a", (4,))) == "<([i])->([i]) {i=4} permutation={i}>"
    assert rule("a", [("7 - a", (8,))], ("a", (8,))) == "<([i])->([i]) {i=8} permutation={i}>"


def test_windows_move() -> None:
    """Where a window slides over a dimension, the loop that moves it has the dimension, the window stays whole."""
    kinds = ["parallel", "reduction"]
    moved = "<([i], [j])->([i]) {i=8, j=3} need_replication={j} permutation={i}>"
    assert rule("a, b", [("a + b", (10,)), ("b", (3,))], ("a", (8,)), kinds) == moved
    assert rule("a, b", [("2 * a + 3 * b - 1", (21,)), ("b", (3,))], ("a", (8,)), kinds) == moved
    assert rule("a, b", [("a + b", (8,)), ("b", (1,))], ("a", (8,)), kinds) == (
        "<([i], [j])->([i]) {i=8, j=1} reduction={j}>"
    )


def test_windows_side_by_side_are_compounds() -> None:
    """Windows that neither overlap nor leave gaps are the major factor of a dimension, their elements the minor."""
    actual = rule("a, b", [("3 * a + b", (24,)), ("b", (3,))], ("a", (8,)), ["parallel", "reduction"])
    assert actual == "<([ij], [j])->([i]) {i=8, j=3} reduction={j}>"


def test_other_combinations_need_replication() -> None:
    """A dimension that is indexed by overlapping loops, none of which is reduced, is sharded by none of them."""
    actual = rule("a, b", [("a + b", (10,)), ("b", (3,))], ("a, b", (8, 3)))
    assert actual == "<([k], [j])->([i, j]) {i=8, j=3, k=1} need_replication={i, j}>"


def test_steps_need_a_permutation() -> None:
    """A dimension of which every other element is taken is sharded like the result; data has to move."""
    assert rule("a", [("2 * a + 1", (16,))], ("a", (8,))) == "<([i])->([i]) {i=8} permutation={i}>"


def test_a_loop_has_a_factor_for_each_digit() -> None:
    """Digits that all tensors agree on are factors; others take the loop out of the game."""
    operand = ("a floordiv 12, (a floordiv 4) mod 3, a mod 4", (2, 3, 4))
    assert rule("a", [operand], ("a floordiv 4, a mod 4", (6, 4))) == "<([i, j, k])->([ij, k]) {i=2, j=3, k=4}>"
    assert rule("a", [operand], ("a", (24,))) == "<([i, j, k])->([ijk]) {i=2, j=3, k=4}>"
    actual = rule("a", [("a floordiv 4, a mod 4", (6, 4))], ("a floordiv 6, a mod 6", (4, 6)))
    assert actual == "<([i, j])->([k, l]) {i=1, j=1, k=1, l=1}>"


def test_unknown_loops_have_no_rule() -> None:
    """Where no dimension tells the size of a loop, there is no rule."""
    assert rule("a, b", [("a + b", (10,))], ("a", (8,))) == "None"


@pytest.mark.parametrize(
    ("maps", "shapes", "kinds", "message"),
    [
        (["(a) -> (a)"], [(8,), (8,)], (), "1 maps for 2 tensors"),
        (["(a) -> (a)"], [(8, 4)], (), "map 0 has 1 results"),
        (["(a) -> (a)", "(a, b) -> (a)"], [(8,), (8,)], (), "map 1 is over 2 loops"),
        (["(a) -> (a)"], [(8,)], ("parallel", "parallel"), "2 iterator types for 1 loops"),
    ],
)
def test_what_does_not_fit(maps, shapes, kinds, message) -> None:
    """Maps that fit neither the shapes nor each other are errors."""
    with pytest.raises(RuleError, match=message):
        rule_from_indexing_maps([*map(AffineMap.parse, maps)], shapes, num_results=1, iterator_types=kinds)


def test_a_tensor_has_a_factor_once() -> None:
    """Of a diagonal the first dimension has the loop's factor, the second one of its own; the op needs all of both."""
    assert rule("a", [("a, a", (8, 8))], ("a", (8,))) == "<([i, j])->([i]) {i=8, j=1} need_replication={i}>"
    beside = rule("a, b", [("a, a, b", (8, 8, 4))], ("a, b", (8, 4)))
    assert beside == "<([i, k, j])->([i, j]) {i=8, j=4, k=1} need_replication={i}>"
    trace = rule("a", [("a, a", (8, 8))], ("", ()), ("reduction",))
    assert trace == "<([i, j])->([]) {i=8, j=1} need_replication={i}>"


def test_sums_that_meet_at_different_places_need_replication() -> None:
    """A reduced loop that indexes two dimensions differently is no reduction; alone, or alike in both, it is one."""
    kinds = ["reduction"]
    assert rule("a", [("a", (8,)), ("7 - a", (8,))], ("", ()), kinds) == "<([i], [i])->([]) {i=8} need_replication={i}>"
    assert rule("a", [("a", (8,)), ("a + 2", (10,))], ("", ()), kinds).endswith("need_replication={i}>")
    assert rule("a", [("a", (8,)), ("a", (8,))], ("", ()), kinds) == "<([i], [i])->([]) {i=8} reduction={i}>"
    split = rule("a", [("a floordiv 2", (2,)), ("3 - a", (4,))], ("", ()), kinds)
    assert split == "<([i], [ij])->([]) {i=2, j=2} need_replication={i, j}>"


def test_the_digits_of_a_reduced_loop_meet_the_loop() -> None:
    """A digit lies where the whole loop would, so that both may be sharded in a sum."""
    actual = rule("a", [("a floordiv 2", (2,)), ("a", (4,))], ("", ()), ("reduction",))
    assert actual == "<([i], [ij])->([]) {i=2, j=2} reduction={i, j}>"


def test_equal_expressions_have_equal_rules() -> None:
    """The rule depends on the values of an expression, not on the way in which it is written."""
    plain = rule("a, b", [("a, b", (8, 4))], ("a, b", (8, 4)))
    assert rule("a, b", [("a floordiv 1, (2 * b) floordiv 2", (8, 4))], ("a, b", (8, 4))) == plain
    digit = rule("a", [("a floordiv 2", (4,))], ("a", (8,)))
    assert rule("a", [("(2 * a) floordiv 4", (4,))], ("a", (8,))) == digit == "<([i])->([ij]) {i=4, j=2}>"


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
    actual = str(rule_from_op_maps([IndexingMap.parse(maps)], [operand], [result], sums=True))
    assert actual.partition("}")[2].strip(" >") == kinds


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
    actual = rule_from_op_maps([IndexingMap.parse(text) for text in maps], operands, results, sums=True)
    assert str(actual) == expected

"""The helpers for the rules of usual ops."""

import numpy as np
import pytest

from shardy_py.errors import RuleError
from shardy_py.ir import tensor
from shardy_py.sharding import rules
from shardy_py.sharding.rule import FactorKind
from shardy_py.testing import assert_rule_holds, make_op


def text_of(helper, operands, results, *arguments, **settings):
    """Return the text of the rule that a helper gives an op."""
    return str(helper(make_op("toy.f", operands, results), *arguments, **settings))


@pytest.mark.parametrize(
    ("operands", "result", "expected"),
    [
        ([(8, 16), (16,)], (8, 16), "<([i, j], [j])->([i, j]) {i=8, j=16}>"),
        ([(8, 16), ()], (8, 16), "<([i, j], [])->([i, j]) {i=8, j=16}>"),
        ([(8, 1), (1, 16)], (8, 16), "<([i, k], [l, j])->([i, j]) {i=8, j=16, k=1, l=1}>"),
        ([(4, 1, 6), (5, 6)], (4, 5, 6), "<([i, l, k], [j, k])->([i, j, k]) {i=4, j=5, k=6, l=1}>"),
        ([(1, 4), (1, 4)], (1, 4), "<([i, j], [i, j])->([i, j]) {i=1, j=4}>"),
    ],
)
def test_broadcast_follows_numpy(operands, result, expected):
    """The last dimensions correspond, and a dimension of size 1 is repeated; what numpy computes agrees."""
    assert np.broadcast_shapes(*operands) == result
    assert text_of(rules.broadcast, operands, [result]) == expected
    rule = rules.broadcast(make_op("toy.f", operands, [result]))
    assert_rule_holds(rule, lambda *values: sum(values), operands)


@pytest.mark.parametrize(
    ("operands", "results"),
    [([(8, 16), (16, 4)], [(8, 4)]), ([(8, 16), (8,)], [(8, 16)]), ([(1, 4)], [(8, 4)]), ([(8,)], [(8,), (4,)])],
)
def test_broadcast_refuses_what_numpy_refuses(operands, results):
    """Sizes that differ and are not 1 are an error with the shapes."""
    with pytest.raises(RuleError, match=r"operands (8|1x4)"):
        text_of(rules.broadcast, operands, results)


def test_broadcast_to_puts_dimensions_where_it_is_told():
    """New dimensions have factors of their own, as those have that are expanded."""
    assert text_of(rules.broadcast_to, [(4,)], [(4, 8)], [0]) == "<([i])->([i, j]) {i=4, j=8}>"
    assert text_of(rules.broadcast_to, [(1, 4)], [(8, 4)]) == "<([i, k])->([j, k]) {i=1, j=8, k=4}>"
    for dims in ([1], [2], [0, 1]):
        with pytest.raises(RuleError):
            text_of(rules.broadcast_to, [(4,)], [(4, 8)], dims)


@pytest.mark.parametrize(
    ("shape", "out", "expected"),
    [
        ((8, 4), (32,), "<([i, j])->([ij]) {i=8, j=4}>"),
        ((32,), (8, 4), "<([ij])->([i, j]) {i=8, j=4}>"),
        ((6, 4), (4, 6), None),
    ],
)
def test_reshape_shares_what_both_shapes_have(shape, out, expected):
    """Dimensions that are joined or split share factors."""
    actual = text_of(rules.reshape, [shape], [out])
    assert expected is None or actual == expected
    assert_rule_holds(
        rules.reshape(make_op("toy.f", [shape], [out])),
        lambda x, local: x.reshape(local.results[0].shape),
        [shape],
        [out],
        allow_missing=True,
    )


def test_a_reshape_keeps_the_number_of_elements():
    """Another number of elements is no reshape; nothing to shard is no rule."""
    with pytest.raises(RuleError, match="32 and 24"):
        text_of(rules.reshape, [(8, 4)], [(8, 3)])
    assert rules.reshape(make_op("toy.f", [(0, 4)], [(4, 0)])) is None


def test_transpose_permutes():
    """Each dimension of the result has the factor of the one it comes from."""
    assert text_of(rules.transpose, [(8, 4, 2)], [(2, 8, 4)], [2, 0, -2]) == (
        "<([j, k, i])->([i, j, k]) {i=2, j=8, k=4}>"
    )
    for permutation in ([0, 0, 1], [0, 1], [0, 1, 2]):
        with pytest.raises(RuleError):
            text_of(rules.transpose, [(8, 4, 2)], [(2, 8, 4)], permutation)


def test_contraction_of_any_dimensions():
    """Batching dimensions come first, then those of one side, and the others are summed over."""
    sides = [(2, 8, 4), (2, 6, 4)]
    settings = {"contracting": ([-1], [2]), "batching": ([0], [0])}
    actual = text_of(rules.contraction, sides, [(2, 8, 6)], **settings)
    assert actual == "<([i, j, l], [i, k, l])->([i, j, k]) {i=2, j=8, k=6, l=4} reduction={l}>"
    rule = rules.contraction(make_op("toy.f", sides, [(2, 8, 6)]), **settings)
    assert_rule_holds(rule, lambda x, y: np.einsum("bik,bjk->bij", x, y), sides)
    tropical = rules.contraction(make_op("toy.f", sides, [(2, 8, 6)]), **settings, combiner="max")
    assert_rule_holds(tropical, lambda x, y: (x[:, :, None] + y[:, None]).max(-1), sides)


@pytest.mark.parametrize(
    ("equation", "operands", "result", "expected"),
    [
        (
            "bij,bjk->bik",
            [(2, 8, 4), (2, 4, 6)],
            (2, 8, 6),
            "<([i, j, k], [i, k, l])->([i, j, l]) {i=2, j=8, k=4",
        ),
        ("...i,i", [(3, 2, 8), (8,)], (3, 2), "<([i, j, k], [k])->([i, j]) {i=3, j=2, k=8}"),
        ("ij,jk->ik", [(8, 1), (4, 6)], (8, 6), "<([i, l], [j, k])->([i, k]) {i=8, j=4, k=6, l=1}"),
    ],
)
def test_an_equation_gives_a_factor_for_each_letter(equation, operands, result, expected):
    """What the result lacks is summed over; an operand of size 1 along a letter is repeated."""
    actual = text_of(rules.einsum, operands, [result], equation)
    assert actual.startswith(expected)
    assert actual.count("reduction={") == 1


def test_a_diagonal_has_no_rule_and_other_ranks_are_refused():
    """A letter twice in one tensor says what no rule can; terms must have the ranks of the tensors."""
    assert rules.einsum(make_op("toy.f", [(4, 4)], [(4,)]), "ii->i") is None
    with pytest.raises(RuleError, match="'ij' has rank 3"):
        text_of(rules.einsum, [(4, 4, 4)], [(4,)], "ij->i")
    with pytest.raises(RuleError, match="one term for each operand"):
        text_of(rules.einsum, [(4,)], [(4,)], "i,i->i")


def test_a_contraction_that_does_not_fit_is_refused():
    """Sizes that do not meet, and another result than the dimensions make, are errors."""
    with pytest.raises(RuleError, match="equal sizes"):
        text_of(rules.contraction, [(8, 4), (5, 2)], [(8, 2)], contracting=([1], [0]))
    with pytest.raises(RuleError, match="makes 8x2"):
        text_of(rules.contraction, [(8, 4), (4, 2)], [(8, 4)], contracting=([1], [0]))


@pytest.mark.parametrize(
    ("word", "function"),
    [
        ("add", np.sum),
        ("mul", np.prod),
        ("min", np.min),
        ("max", np.max),
        ("not", np.median),
    ],
)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduction_combines_by_its_word(word, function, keepdims):
    """The dimensions are gone from the result, or of size 1, and partial results combine by the word."""
    out = (8, 1, 2) if keepdims else (8, 2)
    op = make_op("toy.f", [(8, 4, 2)], [out])
    assert_rule_holds(rules.reduction(op, 1, word), lambda x: function(x, axis=1, keepdims=keepdims), [(8, 4, 2)])


def test_a_reduction_may_start_from_an_operand():
    """What a reduction starts from counts once."""
    op = make_op("toy.f", [(8, 4), (8,)], [(8,)])
    rule = rules.reduction(op, 1, initial=1)
    assert str(rule) == "<([i, j], [i])->([i]) {i=8, j=4} reduction={j} initial={1}>"
    assert_rule_holds(rule, lambda x, start: x.sum(1) + start, [(8, 4), (8,)])
    scalar = rules.reduction(make_op("toy.f", [(8, 4), ()], [(8,)]), 1, initial=1)
    assert str(scalar) == "<([i, j], [])->([i]) {i=8, j=4} reduction={j} initial={1}>"
    assert_rule_holds(scalar, lambda x, start: x.sum(1) + start, [(8, 4), ()])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda op: rules.reduction(op, 1, initial=5), "there is no operand 5 to start from"),
        (lambda op: rules.reduction(op, 1, initial="1"), "needs numbers of operands as initial=, not '1'"),
        (lambda op: rules.reduction(op, 1.5), "needs dimensions, not 1.5"),
        (lambda op: rules.transpose(op, 1), "does not get the result from the permutation"),
        (lambda op: rules.broadcast_to(op, 0), "a dimension of the result for each one of the operand"),
        (lambda op: rules.broadcast_to(op, [[0], [1]]), "needs dimensions, not"),
        (lambda op: rules.concatenate(op, []), "needs one dimension"),
        (lambda op: rules.reshape("toy.f"), "'toy.f' has no operands and results"),
        (lambda op: rules.broadcast(None), "None has no operands and results"),
    ],
)
def test_what_is_no_dimension_is_an_error(call, message):
    """Arguments of wrong types and numbers that are none are errors of the helper, and not of Python."""
    with pytest.raises(RuleError, match=message):
        call(make_op("toy.f", [(8, 4), (8,)], [(8,)]))


def test_dimensions_may_be_those_of_numpy_and_come_one_by_one():
    """Integers of numpy are dimensions, and a permutation may be a generator."""
    assert text_of(rules.reduction, [(8, 4)], [(8,)], np.array([1])) == "<([i, j])->([i]) {i=8, j=4} reduction={j}>"
    actual = rules.transpose(make_op("toy.f", [(8, 4)], [(4, 8)]), (dim for dim in (1, 0)))
    assert str(actual) == "<([j, i])->([i, j]) {i=4, j=8}>"


def test_along_needs_some_dimensions_whole():
    """The others are treated one by one; sizes along the named ones may differ, scalars have no part."""
    assert text_of(rules.along, [(8, 4)], [(8, 4)], -1) == "<([i, j])->([i, j]) {i=8, j=4} need_replication={j}>"
    actual = text_of(rules.along, [(8, 9), ()], [(8, 3), (8, 3)], 1, kind=FactorKind.PERMUTATION)
    assert actual == "<([i, j], [])->([i, j], [i, j]) {i=8, j=3} permutation={j}>"
    with pytest.raises(RuleError, match="one size in dimension 0"):
        text_of(rules.along, [(8, 4)], [(6, 4)], 1)
    with pytest.raises(RuleError, match="no dimension 2"):
        text_of(rules.along, [(8, 4)], [(8, 4)], 2)


def test_concatenate_needs_the_joined_dimension_whole():
    """The sizes of the joined dimension add up."""
    assert text_of(rules.concatenate, [(8, 4), (8, 2)], [(8, 6)], -1) == (
        "<([i, j], [i, j])->([i, j]) {i=8, j=6} need_replication={j}>"
    )
    with pytest.raises(RuleError, match="add up"):
        text_of(rules.concatenate, [(8, 4), (8, 2)], [(8, 5)], 1)


def test_generate_lets_results_be_sharded_in_any_way():
    """Results of one shape are sharded alike, operands are whole."""
    actual = text_of(rules.generate, [(2,)], [(8, 4), (8, 4)])
    assert actual == "<([i])->([j, k], [j, k]) {i=2, j=8, k=4} need_replication={i}>"
    assert text_of(rules.generate, [], [(8,)]) == "<()->([i]) {i=8}>"


@pytest.mark.parametrize("helper", [rules.elementwise, rules.broadcast, rules.reshape, rules.generate])
def test_an_op_with_an_unknown_size_has_no_rule(helper):
    """There is nothing to propagate on dynamic shapes."""
    assert helper(make_op("toy.f", [tensor(None, 4)], [tensor(None, 4)])) is None

"""The rule builder, against rules written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shardy_py.errors import RuleError
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.graph.types import OpaqueType, tensor
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, identity_rule, pointwise_rule


def make_op(operands, results):
    """An op of given operand and result types."""
    program = Program()
    return Op(program, "toy.op", Block(program, operands).arguments, results)


def test_a_dimension_without_a_factor_gets_one_of_size_one_operands_first():
    """Dimensions without a factor get fresh factors of size 1 after all others, operands before results."""
    builder = OpShardingRuleBuilder([(4, 3), (5,)], [(4, 8)])
    builder.add_factor([0, None], [0], 4)
    assert str(builder.build()) == "<([i, j], [k])->([i, l]) {i=4, j=1, k=1, l=1}>"


def test_dimensions_may_be_given_by_the_numbers_of_their_tensors():
    """A mapping says which tensors have a factor; it is the list with None for all others."""
    shapes = [(4, 3), (3, 5), (7,)], [(4, 5)]
    named = OpShardingRuleBuilder(*shapes).add_factor({0: 0}, {0: 0}, 4).add_factor({0: 1, 1: 0}, {}, 3)
    listed = OpShardingRuleBuilder(*shapes).add_factor([0, None, None], [0], 4).add_factor([1, 0, None], [None], 3)
    assert named.build() == listed.build()
    assert str(named.build()) == "<([i, j], [j, k], [l])->([i, m]) {i=4, j=3, k=1, l=1, m=1}>"


@pytest.mark.parametrize("numbers", [{3: 0}, {-1: 0}, {"0": 0}])
def test_a_factor_is_refused_a_tensor_that_is_not_there(numbers):
    """The error names the tensor and says how many there are."""
    with pytest.raises(RuleError, match=r"there is no operand .* the op has 1"):
        OpShardingRuleBuilder([(4,)], [(4,)]).add_factor(numbers, {0: 0}, 4)


def test_a_tie_of_a_dimension_of_size_one_and_a_larger_one_is_none():
    """A padding of 1 to 5 elements ties nothing: the larger dimension is replicated by itself."""
    builder = OpShardingRuleBuilder([(1, 6)], [(5, 6)])
    builder.tie({0: 0}, {0: 0}, 1, kind=FactorKind.PERMUTATION).tie({0: 1}, {0: 1}, 6)
    assert str(builder.build()) == "<([i, k])->([j, k]) {i=1, j=5, k=6} need_replication={i, j}>"


def test_a_tie_of_size_one_leaves_dimensions_that_have_a_factor():
    """Of two ties of size 1 along one dimension the first one counts."""
    builder = OpShardingRuleBuilder([(1,), (1,)], [(1,)])
    builder.tie({0: 0}, {0: 0}, 1).tie({1: 0}, {0: 0}, 1)
    assert str(builder.build()) == "<([i], [j])->([i]) {i=1, j=1}>"


def test_building_does_not_change_the_builder():
    """A builder may be asked for its rule, extended, and asked again."""
    builder = OpShardingRuleBuilder([(4, 3)], [(4, 3)])
    builder.add_factor([0], [0], 4)
    assert builder.build() == builder.build()
    builder.add_factor([1], [1], 3)
    assert str(builder.build()) == "<([i, j])->([i, j]) {i=4, j=3}>"


def test_a_factor_of_size_one_is_not_appended_where_there_is_one_already():
    """A factor of size 1 joins a dimension only if it is the first there; larger ones are always appended."""
    builder = OpShardingRuleBuilder([(8,)], [(8,), (1,)])
    builder.add_factor([0], [0, None], 8).add_factor([0], [None, 0], 1)
    assert str(builder.build()) == "<([i])->([i], [j]) {i=8, j=1}>"


def test_a_factor_for_all_tensors_skips_scalars_only():
    """The form for all tensors leaves scalars out, and appends whatever the size."""
    builder = OpShardingRuleBuilder([(4,), ()], [(4,)])
    builder.add_factor_all(0, 4).add_factor_all(0, 1)
    assert str(builder.build()) == "<([ij], [])->([ij]) {i=4, j=1}>"


def test_operands_and_results_can_have_a_factor_each():
    """A factor of all operands and a factor of all results share nothing."""
    builder = OpShardingRuleBuilder([(2,), (2,)], [(4,), ()])
    builder.add_factor_all_operands(0, 2, kind=FactorKind.NEED_REPLICATION)
    builder.add_factor_all_results(0, 4, kind=FactorKind.REDUCTION, blocked=True)
    assert str(builder.build()) == (
        "<([i], [i])->([j], []) {i=2, j=4} reduction={j} need_replication={i} blocked_propagation={j}>"
    )


def test_pointwise_factors_can_be_chosen_by_dimension():
    """Dimensions may be left out, and kind and blocking may depend on the dimension."""
    builder = OpShardingRuleBuilder([(2, 3, 4)], [(2, 3, 4)])
    builder.add_pointwise(
        (2, 3, 4),
        where=lambda dim: dim != 0,
        kind=lambda dim: FactorKind.PERMUTATION if dim == 2 else FactorKind.PASS_THROUGH,
        blocked=lambda kind: kind is FactorKind.PERMUTATION,
    )
    assert str(builder.build()) == (
        "<([k, i, j])->([l, i, j]) {i=3, j=4, k=1, l=1} permutation={j} blocked_propagation={j}>"
    )


def test_only_mismatching_dimensions_are_of_the_given_kind():
    """The kind for mismatches is that of the dimensions whose sizes differ; sizes are those of the first shape."""
    builder = OpShardingRuleBuilder([(8, 4)], [(8, 2)])
    builder.add_pointwise_with_mismatch((8, 4), (8, 2), kind=FactorKind.NEED_REPLICATION, blocked=True)
    assert str(builder.build()) == "<([i, j])->([i, j]) {i=8, j=4} need_replication={j} blocked_propagation={j}>"


@pytest.mark.parametrize(("operand_dims", "result_dims"), [([0], [0]), ([0, None], []), ([0, None, 0], [0])])
def test_one_dimension_per_tensor_is_required(operand_dims, result_dims):
    """A factor that names too few or too many tensors is an error, not a factor of some of them."""
    with pytest.raises(RuleError, match="one dimension or None per tensor"):
        OpShardingRuleBuilder([(2,), (2,)], [(2,)]).add_factor(operand_dims, result_dims, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: OpShardingRuleBuilder(None, []), "the shapes of operands are None"),
        (lambda: OpShardingRuleBuilder([(2,)], [2]), r"the shapes of results are \[2\]"),
        (lambda: OpShardingRuleBuilder([("x",)], []), "not one tuple of sizes per operand"),
        (lambda: OpShardingRuleBuilder.for_op("toy.op"), "'toy.op' has no operands and results"),
        (lambda: OpShardingRuleBuilder([(2,)], [(2,)]).add_factor(["0"], [0], 2), "operand 0 has no dimension '0'"),
        (lambda: OpShardingRuleBuilder([(2,)], [(2,)]).add_factor_all(None, 2), "tensor 0 has no dimension None"),
        (lambda: OpShardingRuleBuilder([(2,)], [()]).start_from("0"), "there is no operand '0' to start from"),
        (lambda: OpShardingRuleBuilder([(2,)], [()]).start_from(False), "there is no operand False to start from"),
    ],
)
def test_what_is_no_number_is_an_error(call, message):
    """Shapes, dimensions and operands of wrong types are errors of the builder, and not of Python."""
    with pytest.raises(RuleError, match=message):
        call()


def test_numbers_may_be_those_of_numpy():
    """A dimension and an operand may be integers of numpy, which leave no trace in the rule."""
    builder = OpShardingRuleBuilder([(np.int64(2),), ()], [()]).add_factor([np.int64(0), None], [None], 2)
    assert builder.start_from(np.int64(1)).build().initial_operands == (1,)


def test_the_identity_rule_ties_all_tensors_together():
    """All tensors of the identity rule have the same mapping, which is empty for scalars."""
    assert str(identity_rule((4, 2), num_operands=2)) == "<([i, j], [i, j])->([i, j]) {i=4, j=2}>"
    assert str(identity_rule((), num_results=2)) == "<([])->([], [])>"


@pytest.mark.parametrize(
    ("operands", "results", "expected"),
    [
        ([tensor(2, 3), tensor(2, 3)], [tensor(2, 3)], "<([i, j], [i, j])->([i, j]) {i=2, j=3}>"),
        ([tensor(), tensor(4)], [tensor(4)], "<([], [i])->([i]) {i=4}>"),
        ([OpaqueType("!toy.token"), tensor(4)], [tensor(4), tensor(4)], "<([], [i])->([i], [i]) {i=4}>"),
        ([tensor(4)], [OpaqueType("!toy.token")], None),
        ([tensor(4, 4)], [tensor(4)], None),
        ([tensor(4)], [], None),
    ],
)
def test_a_pointwise_rule_follows_the_first_result(operands, results, expected):
    """Values without a shape have no part; without a first result of the highest rank there is no rule."""
    rule = pointwise_rule(make_op(operands, results))
    assert (rule and str(rule)) == expected

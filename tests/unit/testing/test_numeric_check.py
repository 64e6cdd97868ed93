"""The numeric check finds what is wrong with a rule and what is missing from it, and nothing else."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")
import numpy as np

import shardy_py as sdy
from shardy_py.ir.graph.types import tensor
from shardy_py.testing import Verdict, assert_rule_holds, check_rule_numerically, make_op


def matmul(x, y):
    """A product of two matrices."""
    return x @ y


def reshape(x, local):
    """To the shape that the device has to make."""
    return x.reshape(local.results[0].shape)


def found(report):
    """The symbols of wrong factors, and kind, size and places of missing ones."""
    wrong = [item.symbol for item in report.wrong]
    return wrong, [(item.kind.value, item.size, item.places) for item in report.missing]


MATMUL = [(4, 6), (6, 8)]
RIGHT = [
    (sdy.rule("i k, k j -> i j", reduction="k"), matmul, MATMUL, None),
    (sdy.rule("b i -> b i", need_replication="i"), lambda x: np.sort(x, -1), [(4, 6)], None),
    (sdy.rule("i j -> i j", permutation="j"), lambda x: x[:, ::-1], [(4, 6)], None),
    (sdy.rule("... -> ... new"), lambda x: np.repeat(x[..., None], 3, -1), [(4, 6)], None),
    (sdy.rule("i j -> (i j)"), reshape, [(4, 6)], [(24,)]),
    (sdy.rule("(i j) k -> i (j k)"), reshape, [(8, 6)], [(2, 24)]),
    (
        sdy.rule("i j -> i j, i", need_replication="j"),
        lambda x: (x / x.sum(1, keepdims=True), x.sum(1)),
        MATMUL[:1],
        None,
    ),
    (sdy.rule("i , i -> i"), lambda x, y: x + y, [(1,), (1,)], None),
    (sdy.rule("i, -> i"), lambda x, y: x + y, [tensor(6, dtype="i32"), tensor(dtype="i32")], None),
    (sdy.rule("i, i -> i"), np.logical_xor, [tensor(6, dtype="i1")] * 2, None),
    (sdy.rule("i -> i"), np.conj, [tensor(6, dtype="complex<f32>")], None),
]


@pytest.mark.parametrize(("rule", "function", "operands", "results"), RIGHT, ids=[str(row[0]) for row in RIGHT])
def test_right_rules_hold(rule, function, operands, results):
    """Nothing is wrong with a rule that says all there is to say."""
    report = assert_rule_holds(rule, function, operands, results)
    assert report.ok
    assert str(report).endswith("every factor holds and none is missing")


PASS, REDUCE = "pass_through", "reduction"
PLANTED = [
    # A wrong kind.
    (sdy.rule("i k, k j -> i j"), matmul, MATMUL, ["j"], [(REDUCE, 6, "operand 0 dim 1, operand 1 dim 0")]),
    # Two dimensions exchanged.
    (
        sdy.rule("i j -> j i"),
        np.exp,
        [(4, 4)],
        ["i", "j"],
        [(PASS, 4, "operand 0 dim 0, result 0 dim 0"), (PASS, 4, "operand 0 dim 1, result 0 dim 1")],
    ),
    # A factor that is not shared.
    (
        sdy.rule("i k, l j -> i j", reduction="k"),
        matmul,
        MATMUL,
        ["j", "k"],
        [(REDUCE, 6, "operand 0 dim 1, operand 1 dim 0")],
    ),
    # A dimension that needs all of its elements.
    (sdy.rule("i j -> i j"), lambda x: np.sort(x, -1), [(4, 6)], ["j"], []),
    # A reduction that is none: a mean over the shard is not the mean over all.
    (sdy.rule("i j -> i", reduction="j"), lambda x: x.mean(1), [(4, 6)], ["j"], []),
    # The minor factor taken for the major one.
    (sdy.rule("(i j) -> j i", i=4, j=6), reshape, [(24,)], ["i", "j"], None),
    # Too strict marks.
    (
        sdy.rule("i k, k j -> i j", reduction="k", need_replication="i"),
        matmul,
        MATMUL,
        [],
        [(PASS, 4, "operand 0 dim 0, result 0 dim 0")],
    ),
    (
        sdy.rule("i j -> i j", permutation="i, j"),
        lambda x: x[:, ::-1],
        [(4, 6)],
        [],
        [(PASS, 4, "operand 0 dim 0, result 0 dim 0")],
    ),
    # Factors that were left out.
    (
        "<([i, j], [k, l])->([i, l]) {i=4, j=1, k=1, l=8}>",
        matmul,
        MATMUL,
        [],
        [(REDUCE, 6, "operand 0 dim 1, operand 1 dim 0")],
    ),
    ("<([i])->([j]) {i=1, j=1}>", lambda x: x.sum(keepdims=True), [(6,)], [], [(REDUCE, 6, "operand 0 dim 0")]),
    (
        "<([i, j])->([ik]) {i=4, j=1, k=6}>",
        reshape,
        [(4, 6)],
        [],
        [(PASS, 6, "operand 0 dim 1, result 0 dim 0 (4x[6])")],
    ),
    (
        "<([i, j])->([k]) {i=1, j=1, k=1}>",
        reshape,
        [(4, 6)],
        [],
        [(PASS, 4, "operand 0 dim 0, result 0 dim 0 ([4]x6)"), (PASS, 6, "operand 0 dim 1, result 0 dim 0 (4x[6])")],
    ),
]


@pytest.mark.parametrize(
    ("rule", "function", "operands", "wrong", "missing"), PLANTED, ids=[str(row[0]) for row in PLANTED]
)
def test_planted_errors_are_found(rule, function, operands, wrong, missing):
    """Each planted error is found, with what would be right."""
    results = {reshape: [(6, 4)] if operands == [(24,)] else [(24,)]}.get(function)
    report = check_rule_numerically(rule, function, operands, results)
    assert not report.ok
    assert found(report)[0] == wrong
    if missing is not None:
        assert found(report)[1] == missing


def test_a_failure_says_which_factor_on_which_shard():
    """The message has the rule, the shapes, the factor, the shard, the elements that differ, and what would hold."""
    with pytest.raises(AssertionError) as caught:
        assert_rule_holds(sdy.rule("i k, k j -> i j"), lambda x, y: x @ y, [np.ones((2, 2)), np.ones((2, 3))])
    assert str(caught.value).splitlines() == [
        "<([i, j], [j, k])->([i, k]) {i=2, j=2, k=3}>",
        "  operands 2x2, 2x3; results 2x3",
        "  wrong: factor j=2, pass-through (operand 0 dim 1, operand 1 dim 0): on shard 0 of 2, result 0 differs in"
        " 6 of 6 elements, first at [0, 0]: 1 instead of 2; it is a reduction",
        "  missing: reduction factor of size 2 (operand 0 dim 1, operand 1 dim 0); now j is pass-through",
    ]


def test_missing_factors_can_be_allowed():
    """A rule that says less than it could is right all the same; a wrong one is not."""
    assert_rule_holds(sdy.rule("i -> i", need_replication="i"), np.exp, [(4,)], allow_missing=True)
    with pytest.raises(AssertionError, match="wrong: factor i"):
        assert_rule_holds(sdy.rule("i -> i"), np.sort, [(4,)], allow_missing=True)


def test_reductions_combine_as_they_are_told():
    """A maximum combines by maxima, not by sums; one of two results by a function of both."""
    rule = sdy.rule("i j -> i", reduction="j")
    assert not check_rule_numerically(rule, lambda x: x.max(1), [(4, 6)]).ok
    assert_rule_holds(rule, lambda x: x.max(1), [(4, 6)], combine=np.maximum)

    def best(x, index):
        where = x.argmax(1)[:, None]
        return np.take_along_axis(x, where, 1)[:, 0], np.take_along_axis(index, where, 1)[:, 0]

    def better(first, second):
        return tuple(np.where(first[0] >= second[0], left, right) for left, right in zip(first, second, strict=True))

    index = np.broadcast_to(np.arange(6), (4, 6))
    both = sdy.rule("i j, i j -> i, i", reduction="j")
    assert_rule_holds(both, best, [(4, 6), index], combine=better)


def test_functions_may_ask_what_their_device_holds():
    """A table that is sharded by rows: each device looks up the rows it has, and the results add up."""

    def take(table, rows, local):
        held = local.operands[0]
        here = rows - held.offset(0)
        inside = (here >= 0) & (here < held.shape[0])
        return np.where(inside[:, None], table[np.clip(here, 0, held.shape[0] - 1)], 0)

    rule = sdy.rule("row column, i -> i column", reduction="row")
    rows = np.array([3, 0, 5, 1, 1, 4, 2, 0])
    assert_rule_holds(rule, take, [(6, 4), rows], [(8, 4)])
    with pytest.raises(sdy.OptionError, match="needs the shapes of the results"):
        check_rule_numerically(rule, take, [(6, 4), rows])


def test_shards_may_be_uneven():
    """A function that takes all shards for equal is found out, however many equal ones there are."""

    def number(x, local):
        return x + np.arange(len(x)) + local.part * len(x)

    report = check_rule_numerically("i -> i", number, [(6,)], [(6,)])
    assert "on shard 1 of 2 uneven ones, result 0 differs in 5 of 5" in report.wrong[0].reason
    right = check_rule_numerically("i -> i", lambda x, local: x + local.operands[0].positions[0], [(6,)], [(6,)])
    assert right.ok


def test_dimensions_of_other_sizes_are_split_alike():
    """A lone factor may have dimensions of several sizes; where no number of parts divides them all it is unchecked."""
    rule = "<([i])->([i]) {i=4}>"
    assert check_rule_numerically(rule, lambda x: np.repeat(x, 2), [(4,)], [(8,)]).ok
    report = check_rule_numerically(rule, lambda x: x[:3], [(4,)], [(3,)])
    assert [item.verdict for item in report.factors] == [Verdict.UNCHECKED]
    assert "of sizes 4, 3, have no common parts" in str(report)


def test_dimensions_that_their_factors_do_not_fill_are_unchecked():
    """A compound whose factors make another size than its dimension cannot be split."""
    report = check_rule_numerically("<([ij])->([ij]) {i=2, j=2}>", np.exp, [(6,)])
    assert [item.reason for item in report.unchecked] == ["operand 0 dim 0 has size 6, but its factors make 4"] * 2
    assert found(report) == ([], [("pass_through", 6, "operand 0 dim 0, result 0 dim 0")])


def test_gathered_factors_claim_nothing():
    """Factors that need replication or are permuted are never wrong."""
    report = check_rule_numerically(sdy.rule("i j -> i j", need_replication="j"), lambda x: np.sort(x, -1), [(4, 6)])
    assert [item.verdict for item in report.factors] == [Verdict.HOLDS, Verdict.GATHERED]


def test_ops_are_checked_through_the_registry():
    """An op, or its name, has the rule of its dialect."""
    toy = sdy.Dialect("toy")
    toy.op("toy.add", rule="..., ... -> ...")
    toy.op("toy.none")
    registry = sdy.Registry.of([toy])
    assert_rule_holds("toy.add", np.add, [(4, 6), (4, 6)], registry=registry)
    assert_rule_holds(make_op("toy.add", [(4, 6)] * 2, [(4, 6)]), np.add, registry=registry)
    with pytest.raises(sdy.OptionError, match="no sharding rule"):
        check_rule_numerically("toy.none", np.exp, [(4,)], registry=registry)


def test_one_side_of_a_rule_may_be_empty():
    """What has no operands can make any part of its results, and what has no results is right whatever it is given."""
    assert_rule_holds("-> i j", lambda local: np.zeros(local.results[0].shape), [], [(4, 6)])
    assert_rule_holds("i ->", lambda x: (), [(4,)])


def test_functions_of_jax_are_functions():
    """Arrays of JAX count as arrays; the numbers are of 32 bits then, and rounding does not matter."""
    jax = pytest.importorskip("jax")
    rule = sdy.rule("b (h d) -> b (h d)", h=3, need_replication="d")
    assert_rule_holds(rule, lambda x: jax.nn.softmax(x.reshape(len(x), -1, 4)).reshape(x.shape), [(2, 12)])


def test_rules_that_do_not_fit_are_errors():
    """A rule of another rank or number of results is no rule of the function; the whole run may fail, too."""
    with pytest.raises(sdy.RuleError, match="mapping rank must match"):
        check_rule_numerically("<([i, j])->([ik]) {i=4, j=1, k=6}>", np.exp, [(4,)])
    with pytest.raises(sdy.RuleError, match="number of results and mappings"):
        check_rule_numerically("<([i])->([i], [i]) {i=4}>", np.exp, [(4,)])
    with pytest.raises(ValueError, match="operands could not be broadcast"):
        check_rule_numerically("<([i], [j])->([i]) {i=4, j=3}>", np.add, [(4,), (3,)])
    with pytest.raises(sdy.OptionError, match="no random numbers of type i7"):
        check_rule_numerically("i -> i", np.exp, [tensor(4, dtype="i7")])


def test_partial_results_of_other_shapes_do_not_combine():
    """Devices whose results have as many elements as their operands say have no sum, which is no error."""
    report = check_rule_numerically(
        "<([i])->([j]) {i=4, j=10} need_replication={i, j}>",
        lambda counts: np.repeat(np.arange(len(counts)), counts),
        [np.array([1, 2, 3, 4], np.int32)],
    )
    assert found(report) == ([], [])


def test_the_search_for_missing_factors_is_bounded():
    """With too many dimensions to combine, those of one size are tried, and the report says so."""
    nothing = "<([i, j, k, l, m], [n, o, p, q, r], [s, t, u, v, w], [x, y, z, z_1, z_2])->([i, j, k, l, m]) {%s}>"
    rule = nothing % ", ".join(f"{name}=1" for name in [*"ijklmnopqrstuvwxyz", "z_1", "z_2"])
    report = check_rule_numerically(rule, lambda a, b, c, d: a + b + c + d, [(2,) * 5] * 4, trials=1)
    assert not report.is_search_complete
    assert "too many dimensions" in str(report)
    assert report.missing[0].places.count("dim") == 5


def test_a_function_may_work_in_place():
    """A function that writes into its operand is judged by what it returns."""

    def doubled(x):
        x *= 2
        return x

    assert_rule_holds("i j -> i j", doubled, [(4, 6)])


@pytest.mark.parametrize("shape", [8, "84", (8, -4), (8, 2.5), None, ((8, 4), 2)])
def test_shapes_that_are_none(shape):
    """What is no shape, type or array is an error."""
    with pytest.raises(sdy.OptionError, match="is no shape"):
        assert_rule_holds("i j -> i j", lambda x: x, [shape])

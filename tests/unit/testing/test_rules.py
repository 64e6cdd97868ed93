"""Asserting the rule of an op."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.plugins import RuleOptions
from shardy_py.sharding.parse import parse_op_sharding_rule
from shardy_py.testing import assert_rule, make_op
from shardy_py.testing.rules import canonical, first_difference

MATMUL = "<([i, k], [k, j])->([i, j]) {i=8, j=2, k=4} reduction={k}>"
SHAPES = ([(8, 4), (4, 2)], [(8, 2)])


@pytest.fixture(scope="module")
def registry():
    """One op with a rule, one without."""
    toy = sdy.Dialect("toy")
    toy.op("toy.matmul", rule="i k, k j -> i j", reduction="k")
    toy.op("toy.nothing")
    toy.op("toy.window", rule=lambda op: sdy.rule("i j -> i j", **{op.attributes["kind"]: "j"})(op))
    toy.op("toy.careful", rule=lambda op, options: sdy.rule("i -> i", blocked="i" if options.conservative else ())(op))
    return sdy.Registry.of([toy])


@pytest.mark.parametrize(
    "expected",
    [
        "<([i, j], [j, k])->([i, k]) {i=8, j=4, k=2} reduction={j}>",
        sdy.rule("rows inner, inner columns -> rows columns", reduction="inner"),
    ],
)
def test_a_rule_is_found_by_the_name_of_its_op(registry, expected):
    """A rule that is as expected passes, in Shardy's text and in names of one's own."""
    assert_rule("toy.matmul", expected, *SHAPES, registry=registry)


def test_only_a_text_of_shardy_fixes_the_numbers_of_factors(registry):
    """The same rule with other numbers of factors is another rule, but the same for names of one's own."""
    with pytest.raises(AssertionError, match="only the numbers of the factors differ"):
        assert_rule("toy.matmul", MATMUL, *SHAPES, registry=registry)
    assert_rule(parse_op_sharding_rule(MATMUL), sdy.rule("i k, k j -> i j", reduction="k"), *SHAPES)


def test_an_op_may_have_no_rule(registry):
    """None stands for no rule, and only for that."""
    assert_rule("toy.nothing", None, [(8,)], [(8,)], registry=registry)
    with pytest.raises(AssertionError, match="first difference: there is no rule"):
        assert_rule("toy.nothing", "i -> i", [(8,)], [(8,)], registry=registry)
    with pytest.raises(AssertionError, match="first difference: there is a rule"):
        assert_rule("toy.matmul", None, *SHAPES, registry=registry)


def test_attributes_and_options_reach_the_rule(registry):
    """The op has the attributes given, and the rule sees the options."""
    expected = sdy.rule("i j -> i j", permutation="j")
    assert_rule("toy.window", expected, [(8, 4)], [(8, 4)], {"kind": "permutation"}, registry=registry)
    options = RuleOptions(conservative=True)
    assert_rule("toy.careful", sdy.rule("i -> i", blocked="i"), [(8,)], [(8,)], registry=registry, options=options)
    assert_rule("toy.careful", "i -> i", [(8,)], [(8,)], registry=registry)


def test_an_op_brings_its_shapes(registry):
    """An op that was built is asserted as it is."""
    assert_rule(make_op("toy.matmul", *SHAPES), sdy.rule("i k, k j -> i j", reduction="k"), registry=registry)


def test_installed_plugins_are_asked_by_default():
    """Without a registry the installed plugins know the ops."""
    assert_rule("stablehlo.transpose", "i j -> j i", [(8, 4)], [(4, 8)], {"permutation": (1, 0)})


def test_a_failure_shows_both_rules_and_the_shapes(registry):
    """The message has the op, the shapes, both rules and where they differ first."""
    with pytest.raises(AssertionError) as caught:
        assert_rule("toy.matmul", "i k, k j -> i j", *SHAPES, registry=registry)
    assert str(caught.value).splitlines() == [
        "the rule of 'toy.matmul' is not the expected one",
        "  operands 8x4, 4x2; results 8x2",
        "  expected <([i, j], [j, k])->([i, k]) {i=8, j=4, k=2}>",
        "  found    <([i, j], [j, k])->([i, k]) {i=8, j=4, k=2} reduction={j}>",
        "  first difference: the kind of factor j (operand 0 dim 1, operand 1 dim 0): expected pass-through,"
        " found reduction",
    ]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("<([i])->([i]) {i=2}>", "<([i], [i])->([i]) {i=2}>", "1 operands expected, found 2"),
        ("<([i])->([i]) {i=2}>", "<([i, j])->([i]) {i=2, j=1}>", "the rank of operand 0: expected 1, found 2"),
        ("<([i])->([i]) {i=2}>", "<([i])->([j]) {i=2, j=2}>", "result 0 dim 0: expected i, found j, by order of"),
        ("<([i])->([i]) {i=2}>", "<([i])->([i]) {i=4}>", "the size of factor i (operand 0 dim 0, result 0 dim 0)"),
        ("<([i])->([i]) {i=2} blocked_propagation={i}>", "<([i])->([i]) {i=2}>", "is not blocked"),
        ("<([i])->([i]) {i=2}, custom>", "<([i])->([i]) {i=2}>", "one counts as given by a user"),
    ],
)
def test_the_first_difference_is_named(left, right, expected):
    """Whatever differs first has a place and both values."""
    difference = first_difference(parse_op_sharding_rule(left), parse_op_sharding_rule(right))
    assert expected in difference


def test_canonical_rules_do_not_depend_on_numbers():
    """Rules that differ in the numbers of their factors only are one in canonical form, special factors included."""
    other = "<([k, i], [i, j])->([k, j]) {i=4, j=2, k=8} reduction={i}>"
    assert canonical(parse_op_sharding_rule(MATMUL)) == canonical(parse_op_sharding_rule(other))


def test_shapes_are_asked_for():
    """A name or a text alone says nothing about sizes."""
    with pytest.raises(sdy.OptionError, match="needs the shapes"):
        assert_rule("toy.matmul", None)
    with pytest.raises(sdy.OptionError, match="needs the shapes"):
        assert_rule(MATMUL, "i k, k j -> i j")

"""How reductions combine, as words in rule texts and in rules."""

import pytest

from shardy_py.errors import RuleError
from shardy_py.sharding.combiner import Combiner, parse_combiner
from shardy_py.sharding.einsum import rule
from shardy_py.sharding.parse import parse_op_sharding_rule
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("k", "reduction={j}"),
        ("k:add", "reduction={j}"),
        ("k:max", "reduction=max{j}"),
        ("k : mul", "reduction=mul{j}"),
        (["k:or"], "reduction=or{j}"),
        ({"k": "and"}, "reduction=and{j}"),
        ({"k": Combiner.MIN}, "reduction=min{j}"),
        ("k:not", "need_replication={j}"),
        ({"k": "not"}, "need_replication={j}"),
    ],
)
def test_a_mark_says_how_a_factor_combines(reduction, expected):
    """A word is the combiner; without one it is a sum, and with "not" the factor needs replication."""
    bound = rule("i k -> i", reduction=reduction).bind([(8, 4)], [(8,)])
    assert str(bound) == f"<([i, j])->([i]) {{i=8, j=4}} {expected}>"


def test_factors_combine_each_in_its_own_way():
    """Factors of one rule have different combiners; an ellipsis has one for all of its dimensions."""
    bound = rule("a b c -> ", reduction="a:max, b, c:max").bind([(2, 3, 4)], [()])
    assert str(bound) == "<([i, j, k])->([]) {i=2, j=3, k=4} reduction={j} reduction=max{i, k}>"
    assert dict(bound.reductions) == {0: Combiner.MAX, 1: Combiner.ADD, 2: Combiner.MAX}
    expanded = rule("... k -> k", reduction="...:min").bind([(2, 3, 4)], [(4,)])
    assert dict(expanded.reductions) == {0: Combiner.MIN, 1: Combiner.MIN}


@pytest.mark.parametrize(
    "text",
    [
        "<([i, j, k])->([]) {i=2, j=3, k=4} reduction={j} reduction=max{i, k}>",
        "<([i, j], [i])->([i]) {i=2, j=3} reduction=mul{j} initial={1}>",
        "<([i, j], [i])->([i]) {i=2, j=3} reduction={j} initial={1}, custom>",
    ],
)
def test_the_text_of_a_rule_with_combiners_reads_back(text):
    """The text has the words, and parsing gives the rule back."""
    assert str(parse_op_sharding_rule(text)) == text


def test_the_reference_has_no_words_for_them():
    """Without combiners and initial operands a rule prints as the reference does."""
    bound = rule("i k, i -> i", reduction="k:max", initial=1).bind([(8, 4), (8,)], [(8,)])
    assert str(bound.without_reductions) == "<([i, j], [i])->([i]) {i=8, j=4} reduction={j}>"


def test_the_builder_takes_combiners_and_initial_operands():
    """A combiner as a value or a word; "not" makes the factor need replication."""

    def built(combiner):
        builder = OpShardingRuleBuilder([(8, 4), (8,)], [(8,)]).add_factor([0, 0], [0], 8)
        builder.add_factor([1, None], [None], 4, kind=FactorKind.REDUCTION, combiner=combiner)
        return str(builder.start_from(1).build())

    start = "<([i, j], [i])->([i]) {i=8, j=4}"
    assert built(Combiner.MAX) == f"{start} reduction=max{{j}} initial={{1}}>"
    assert built("add") == f"{start} reduction={{j}} initial={{1}}>"
    assert built("not") == f"{start} need_replication={{j}} initial={{1}}>"


@pytest.mark.parametrize(
    ("word", "hint"), [("sum", "'add'"), ("prod", "'mul'"), ("any", "'or'"), ("maxx", "'max'"), ("mean", "'not'")]
)
def test_an_unknown_word_is_an_error_that_names_the_nearest(word, hint):
    """Words of other libraries lead to ours."""
    with pytest.raises(RuleError, match=f"did you mean {hint}"):
        parse_combiner(word)


@pytest.mark.parametrize(("initial", "message"), [(2, "no operand 2"), (0, "the factor k, which is reduced")])
def test_a_reduction_starts_from_something_of_the_shape_of_its_result(initial, message):
    """An initial operand exists and has no reduced factor."""
    with pytest.raises(RuleError, match=message):
        rule("i k, i -> i", reduction="k", initial=initial)


def test_collectives_have_words_for_some():
    """Shardy's collectives add and take the largest or smallest; on booleans these are logical."""
    assert [combiner.collective_word("f32") for combiner in Combiner] == ["sum", None, "min", "max", None, None]
    assert [combiner.collective_word("i1") for combiner in Combiner] == [None, "min", "min", "max", "min", "max"]

"""The numeric check combines shards as the rule says, and finds those that say it wrongly."""

import numpy as np
import pytest

import shardy_py as sdy
from shardy_py.testing import assert_rule_holds
from shardy_py.testing.numeric.check import check_rule_numerically

MATRIX = [(6, 8)]
RIGHT = {
    "add": lambda x: x.sum(1),
    "mul": lambda x: x.prod(1),
    "min": lambda x: x.min(1),
    "max": lambda x: x.max(1),
}


def reduced(word):
    """Return the rule of a reduction of the columns of a matrix."""
    return sdy.rule("i k -> i", reduction={"k": word})


@pytest.mark.parametrize("word", RIGHT)
@pytest.mark.parametrize("function", RIGHT)
def test_only_the_right_combiner_holds(word, function):
    """Every other combiner is found out, and the right one is named."""
    report = check_rule_numerically(reduced(word), RIGHT[function], MATRIX)
    if word == function:
        assert report.ok
        return
    (wrong,) = report.wrong
    message = "it is a reduction" if function == "add" else f"it is a reduction by {function}"
    assert wrong.advice == message
    assert ("by " + word in str(wrong)) == (word != "add")


@pytest.mark.parametrize(("word", "function"), [("and", np.logical_and.reduce), ("or", np.logical_or.reduce)])
def test_booleans_combine_logically(word, function):
    """Whether all or any hold of the whole is told by the shards."""
    operands = [np.random.default_rng(0).integers(0, 5, (6, 8)) > (word == "or") * 3]
    assert_rule_holds(reduced(word), lambda x: function(x, axis=1), operands)
    other = "or" if word == "and" else "and"
    assert check_rule_numerically(reduced(other), lambda x: function(x, axis=1), operands).wrong


def test_bitwise_combiners_need_integers():
    """Floating-point numbers cannot be combined bitwise, which is a finding and no crash."""
    (wrong,) = check_rule_numerically(reduced("or"), RIGHT["max"], MATRIX).wrong
    assert "cannot be combined by or" in wrong.reason


def test_an_initial_value_counts_once():
    """A sum that starts from an operand holds only if the rule says so; the finding names the operand."""
    operands = [(6, 8), (6,)]

    def accumulate(x, start):
        return x.sum(1) + start

    message = sdy.rule("i k, i -> i", reduction="k", initial=1)
    unsaid = sdy.rule("i k, i -> i", reduction="k")
    assert check_rule_numerically(message, accumulate, operands).ok
    (wrong,) = check_rule_numerically(unsaid, accumulate, operands).wrong
    assert wrong.advice == "it holds if operand 1 is an initial one, that counts once: initial=1"
    largest = sdy.rule("i k, i -> i", reduction="k:max")
    assert check_rule_numerically(largest, lambda x, start: np.maximum(x.max(1), start), operands).ok


def test_what_cannot_be_combined_needs_replication():
    """The position of the largest element is no reduction by any combiner."""
    report = check_rule_numerically(reduced("max"), lambda x: x.argmax(1), MATRIX)
    assert [item.advice for item in report.wrong] == ["it needs replication"]
    assert check_rule_numerically(reduced("not"), lambda x: x.argmax(1), MATRIX).ok


def test_a_missing_reduction_is_found_with_its_combiner():
    """A factor that needs replication where a combiner would do is missing, with the combiner."""
    (missing,) = check_rule_numerically(reduced("not"), RIGHT["max"], MATRIX).missing
    assert missing.combiner is sdy.Combiner.MAX
    assert str(missing).startswith("reduction by max factor of size 8")

"""The program generator."""

from collections import Counter

import pytest

from shardy_py.errors import OptionError
from shardy_py.oracle.generate import (
    ALL_FEATURES,
    DEFAULT_FEATURES,
    Choices,
    generate,
    generate_from,
    generate_program,
    parse_features,
)
from shardy_py.oracle.reference import Reference

OPS_OF = {
    "sharding_constraint": "sdy.sharding_constraint",
    "sharding_group": "sdy.sharding_group",
    "while": "stablehlo.while",
    "manual_computation": "sdy.manual_computation",
    "unknown_ops": "test.unknown",
    "calls": "func.call",
}


@pytest.fixture(scope="module")
def reference():
    """The reference, which parses and verifies."""
    pytest.importorskip("jaxlib")
    with Reference() as reference:
        yield reference


def test_every_program_is_valid(reference):
    """All of 150 programs parse and verify."""
    outcomes = {seed: reference.run(generate(seed)) for seed in range(150)}
    assert {seed: item.text for seed, item in outcomes.items() if not item.ok} == {}


def test_every_program_with_all_features_is_valid(reference):
    """So do those with what the reference's passes do not take."""
    outcomes = {seed: reference.run(generate(seed, features=ALL_FEATURES)) for seed in range(100)}
    assert {seed: item.text for seed, item in outcomes.items() if not item.ok} == {}


@pytest.mark.parametrize("pipeline", ["sdy-basic-propagate", "sdy-user-priority-propagate", "sdy-propagation-pipeline"])
def test_the_reference_takes_nearly_all(reference, pipeline):
    """More than nine of ten programs get a result."""
    kinds = Counter(reference.run(generate(seed), pipeline).kind for seed in range(40))
    assert kinds["ok"] > 36


def test_propagation_has_something_to_do(reference):
    """Half of the programs get at least five more sharded ops out of it."""

    def sharded(text):
        return text.count("#sdy.sharding_per_value")

    gains = []
    for seed in range(40):
        text = generate(seed)
        outcome = reference.run(text, "sdy-basic-propagate")
        gains.append(sharded(outcome.text) - sharded(text) if outcome.ok else 0)
    assert sorted(gains)[20] >= 5


def test_a_seed_means_one_program():
    """The same seed, size and features give the same text; another seed gives another one."""
    assert generate(7) == generate(7)
    assert generate(7) != generate(8)


def test_size_counts_ops():
    """A larger size gives more ops."""
    small, large = (sum(generate_program(seed, size=size).used.total() for seed in range(20)) for size in (3, 60))
    assert large > 5 * small


def test_every_feature_appears():
    """Each family of ops is generated within a few programs, and all kinds of shardings are written."""
    used = Counter()
    texts = []
    for seed in range(150):
        program = generate_program(seed, features=ALL_FEATURES)
        used += program.used
        texts.append(program.text)
    assert len(used) > 100
    assert set(OPS_OF.values()) <= set(used)
    text = "\n".join(texts)
    marks = ("replicated={", "unreduced={", "}p1", ", ?}", '":(1)2', "device_ids=", "allowed_direction=NONE", "<@other")
    assert [mark for mark in marks if mark not in text] == []


@pytest.mark.parametrize(("feature", "op"), OPS_OF.items())
def test_a_feature_switched_off_is_absent(feature, op):
    """Without the switch no such op appears."""
    used = sum((generate_program(seed, features=DEFAULT_FEATURES - {feature}).used for seed in range(40)), Counter())
    assert used.total() > 0
    assert used[op] == 0


def test_zeros_give_the_simplest_program():
    """Choices that are all zero give a short program without shardings on ops."""
    program = generate_from(Choices(lambda low, high: low), size=3)
    assert "replicated" not in program.text
    assert program.used.total() <= 4


def test_features_as_text():
    """Names add up, a minus takes away, and a leading one starts from the default."""
    assert parse_features("all") == ALL_FEATURES
    assert parse_features("-dot") == DEFAULT_FEATURES - {"dot"}
    assert parse_features("default,-dot,maximal") == (DEFAULT_FEATURES - {"dot"}) | {"maximal"}
    with pytest.raises(OptionError, match="unknown feature 'nonsense'"):
        parse_features("dot,nonsense")

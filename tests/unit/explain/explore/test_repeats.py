"""Repetitions in a sequence."""

import random

from shardy_py.explain.explore.folding import Repeat, find_repeats


def test_the_layers_of_a_sequence_are_found():
    """Equal pieces behind each other are one repetition, whatever stands before and behind."""
    layer = [f"op {number}" for number in range(30)]
    found = find_repeats(["a", "b", *layer * 5, "c"])
    assert found == (Repeat(2, 30, 5),)


def test_two_parts_of_a_program_are_found_both():
    """A forward and a backward pass repeat each for themselves, in order."""
    forward = [f"f{number}" for number in range(12)]
    backward = [f"b{number}" for number in range(20)]
    found = find_repeats([*forward * 4, "loss", *backward * 4])
    assert [(one.period, one.count) for one in found] == [(12, 4), (20, 4)]


def test_what_does_not_repeat_is_left_alone():
    """Distinct items have no repetition."""
    assert find_repeats(range(200)) == ()


def test_repetitions_are_what_they_say():
    """Each repetition found consists of equal pieces, and no two overlap."""
    chance = random.Random(0)
    for _ in range(20):
        keys = [chance.choice("abc") for _ in range(200)]
        position = 0
        for one in find_repeats(keys):
            assert one.start >= position
            assert one.count >= 2
            pieces = {tuple(keys[start : start + one.period]) for start in range(one.start, one.stop, one.period)}
            assert len(pieces) == 1
            position = one.stop

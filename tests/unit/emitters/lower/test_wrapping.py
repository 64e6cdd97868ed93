"""Places that begin again are found by what computes them."""

from __future__ import annotations

import pytest

from shardy_py.emitters.lower.wrapping import may_wrap

PHASE = """define internal i32 @f(ptr %from, i32 %lane, i32 %strip) {{
  %less = {instruction}
  %place = getelementptr inbounds i8, ptr %from, i32 {index}
  %word = load i32, ptr %place
  %bits = and i32 %word, 7
  %far = getelementptr inbounds i8, ptr %from, i32 %lane
  store i32 {stored}, ptr %far
  ret i32 0
}}
define i32 @grid(ptr %from, i32 %block) {{
  %x = urem i32 %block, 4
  %done = call i32 @f(ptr %from, i32 %x, i32 0)
  ret i32 %done
}}
"""


@pytest.mark.parametrize("instruction", ["urem i32 %lane, 32", "and i32 %lane, 31", "trunc i32 %lane to i8"])
def test_a_place_that_follows_from_a_remainder_may_wrap(instruction: str) -> None:
    """A remainder that reaches an index is one; that what is stored has one does not matter."""
    assert may_wrap(PHASE.format(instruction=instruction, index="%less", stored="%bits"))
    assert not may_wrap(PHASE.format(instruction=instruction, index="%lane", stored="%less"))


def test_numbers_that_grow_or_stay_do_not_wrap() -> None:
    """Sums and products grow, and a remainder of the strip's number stays for all threads of the strip."""
    for instruction in ("add nuw nsw i32 %lane, 3", "urem i32 %strip, 4", "trunc nuw i32 %lane to i16"):
        assert not may_wrap(PHASE.format(instruction=instruction, index="%less", stored="%bits"))


def test_remainders_of_the_blocks_number_stay_for_its_threads() -> None:
    """What follows from the block alone does not wrap; what follows from it and a lane does."""
    text = PHASE.replace("i32 %strip)", "i32 %strip, i32 %block.x)").replace(
        "  %less =", "  %before = add nuw nsw i32 %block.x, {added}\n  %less ="
    )
    instruction = "urem i32 %before, 16"
    assert not may_wrap(text.format(instruction=instruction, index="%less", stored="%bits", added=8))
    assert may_wrap(text.format(instruction=instruction, index="%less", stored="%bits", added="%lane"))


def test_a_number_that_is_loaded_does_not_grow_from_thread_to_thread() -> None:
    """What a remainder is loaded from may wrap, and what is loaded does not."""
    text = PHASE.format(instruction="add i32 %lane, 1", index="%lane", stored="%bits")
    assert not may_wrap(text.replace("i8, ptr %from, i32 %lane\n  store", "i8, ptr %from, i32 %word\n  store"))


def test_a_float_that_a_function_is_given_is_no_place() -> None:
    """The bits of a float may wrap; those of an integer that a function is given may be a place."""
    call = PHASE.format(instruction="and i32 %lane, 31", index="%lane", stored="%bits").replace(
        "  ret i32 0", "  %float = bitcast i32 %less to float\n  %r = call float @g({})\n  ret i32 0", 1
    )
    assert "%less = and" in call
    assert not may_wrap(call.replace("@g({})", "@g(float %float)"))
    assert may_wrap(call.replace("@g({})", "@g(i32 %less)"))

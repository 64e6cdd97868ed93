"""Hypothesis strategies for whole programs: the generator driven by drawn integers, so that Hypothesis can shrink."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from shardy_py.oracle.generate import DEFAULT_FEATURES, Choices, generate_from


@st.composite
def programs(draw: st.DrawFn, *, max_size: int = 12, features: Iterable[str] = DEFAULT_FEATURES) -> str:
    """Draw the text of a valid module.

    Args:
        draw: Given by Hypothesis.
        max_size: About how many ops the main function has at most.
        features: The switches that are on.
    """
    choices = Choices(lambda low, high: draw(st.integers(low, high)))
    return generate_from(choices, size=draw(st.integers(1, max_size)), features=features).text

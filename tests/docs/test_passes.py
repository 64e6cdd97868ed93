"""The page about passes says what the passes say."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="one of the passes is MLIR's")

from tests.docs.passes import PAGE, page


def test_the_page_is_up_to_date() -> None:
    """Every pass is there with its options, defaults and meanings; ``python -m tests.docs`` writes the page."""
    assert PAGE.read_text(encoding="utf-8") == page()

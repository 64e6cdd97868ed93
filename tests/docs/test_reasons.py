"""The page about reasons has all of them."""

from __future__ import annotations

import re

from shardy_py.trace.reasons import MEANINGS
from tests.docs.pages import ROOT


def test_every_reason_is_on_its_page_with_an_example() -> None:
    """The meanings are those that the program prints, and a line shows each."""
    text = (ROOT / "docs" / "reference" / "reasons.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", text, re.MULTILINE))
    assert rows == {code.value: meaning for code, meaning in MEANINGS.items()}
    assert {line.partition(":")[0] for line in re.findall(r"^[a-z-]+: .*$", text, re.MULTILINE)} == set(rows)

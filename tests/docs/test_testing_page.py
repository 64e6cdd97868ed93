"""The page about the kit for tests names all of it."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT

pytest.importorskip("hypothesis")

from shardy_py import testing
from shardy_py.testing import pytest_plugin, strategies

PAGE = (ROOT / "docs" / "reference" / "testing.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", [testing, strategies], ids=["kit", "strategies"])
def test_every_public_name_is_on_the_page(module):
    """What the kit and its strategies export has its place in the reference."""
    names = {name for code in re.findall(r"`([^`]+)`", PAGE) for name in re.findall(r"[A-Za-z_]\w*", code)}
    assert set(module.__all__) - names == set()
    assert all(hasattr(module, name) for name in module.__all__)


def test_every_option_and_fixture_is_on_the_page():
    """What the plugin for pytest adds has its place in the reference, and nothing else is there."""
    source = (ROOT / "shardy_py" / "testing" / "pytest_plugin.py").read_text(encoding="utf-8")
    fixtures = re.findall(r"@pytest\.fixture.*\ndef (\w+)", source)
    options = re.findall(r'^        "(--[\w-]+)",$', source, re.MULTILINE)
    assert len(fixtures) == 3
    assert len(options) == 2
    assert [name for name in (*fixtures, *options) if f"| `{name}" not in PAGE] == []
    assert all(hasattr(pytest_plugin, name) for name in fixtures)
    assert set(re.findall(r"\| `(--[\w-]+)", PAGE)) == set(options)

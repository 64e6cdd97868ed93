"""The page of PyTorch's operators."""

from __future__ import annotations

import pytest
import torch

from tests.docs import torch_operators

pytestmark = pytest.mark.torch


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the page is about one release")
def test_the_page_is_as_the_rules_are() -> None:
    """``python -m tests.docs`` changes nothing; and no operator is without a rule and without a reason."""
    assert torch_operators.PAGE.read_text(encoding="utf-8") == torch_operators.page()
    assert "not yet" not in torch_operators.overloads().values()

"""Index expressions."""

from __future__ import annotations

import pytest

from shardy_py.indexing import dim, symbol
from shardy_py.indexing.expressions import evaluate
from shardy_py.indexing.text import print_expression


def test_operators_build_trees() -> None:
    """Operators of Python build the tree that is written, with integers on either side."""
    tree = (2 * dim(0) - 1) // 4 + symbol(0) % 8 + (3 - dim(1))
    names = {dim(0): "d0", dim(1): "d1", symbol(0): "s0"}
    assert print_expression(tree, names) == "(d0 * 2 - 1) / 4 + s0 mod 8 + 3 - d1"
    assert evaluate(tree, {dim(0): 9, dim(1): 5, symbol(0): 11}.__getitem__) == 4 + 3 - 2
    with pytest.raises(TypeError, match="neither an expression nor an integer"):
        dim(0) + "1"

"""Index expressions and affine maps."""

from __future__ import annotations

import pytest

from shardy_py.errors import ParseError, VerificationError
from shardy_py.indexing import AffineMap, dim, symbol
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


def test_the_text_gives_the_map_back() -> None:
    """A map is read with any names, with or without ``affine_map<>``, and prints with the default ones."""
    text = "affine_map<(i, j)[n] -> (j, 2 * i - 1, i floordiv 4, j mod 2, i ceildiv 3, -n, 0)>"
    map_ = AffineMap.parse(text)
    assert (map_.num_dims, map_.num_symbols, map_.results[0]) == (2, 1, dim(1))
    printed = "(d0, d1)[s0] -> (d1, 2 * d0 - 1, d0 floordiv 4, d1 mod 2, d0 ceildiv 3, -s0, 0)"
    assert str(map_) == printed
    assert str(AffineMap.parse(printed)) == printed
    assert AffineMap.parse("() -> ()") == AffineMap(0, ())


def test_dims_are_results() -> None:
    """The map of some dimensions has them as results."""
    assert AffineMap.of_dims(3, [2, 0]) == AffineMap.parse("(a, b, c) -> (c, a)")


def test_sizes_are_bounds() -> None:
    """With a size per dimension and symbol an affine map is an indexing map."""
    map_ = AffineMap(1, (dim(0), symbol(0)), 1)
    assert str(map_.bounded([4], [2])) == "(d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 1]"
    with pytest.raises(VerificationError, match="1 dimensions and 1 symbols, 2 and 0 sizes"):
        map_.bounded([4, 4])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("d0 -> d0", "is expected"),
        ("(d0) -> (d0 +)", "an expression is expected"),
        ("affine_map<(d0)>", "'->' is expected"),
        ("(d0) -> (d1)", "'d1' is not a variable"),
        ("(d0, d0) -> (d0)", "'d0' stands twice"),
        ("(d0) -> (d0) d0", "has ended"),
        ("", "is expected"),
    ],
)
def test_malformed_maps(text, message) -> None:
    """Anything else is an error that names the place."""
    with pytest.raises(ParseError, match="this is not a valid affine map") as error:
        AffineMap.parse(text)
    assert message in str(error.value)

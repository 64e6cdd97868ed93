"""Composition of indexing maps and changes of their variables."""

from __future__ import annotations

import pytest

from shardy_py.errors import VerificationError
from shardy_py.indexing import (
    IndexingMap,
    compose,
    rescale_symbols,
    simplify,
    without_unused_dims,
    without_unused_symbols,
)


def composed(first: str, second: str) -> str:
    """The text of a composition."""
    return str(compose(IndexingMap.parse(first), IndexingMap.parse(second)))


def test_a_reshape_there_and_back_is_the_identity() -> None:
    """Results of the first map are put in for the second one's dimensions, and simplified."""
    there = "(d0) -> (d0 / 8, d0 mod 8), domain: d0 in [0, 31]"
    back = "(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]"
    assert composed(there, back) == "(d0) -> (d0), domain: d0 in [0, 31]"


def test_symbols_of_the_second_come_first() -> None:
    """Range and run-time variables of both live on, those of the second map first."""
    first = "(d0)[s0]{rt0} -> (d0 + s0 + rt0), domain: d0 in [0, 3], s0 in [0, 1], rt0 in [0, 5]"
    second = "(d0)[s0]{rt0} -> (d0 * 10 + s0, rt0), domain: d0 in [0, 9], s0 in [0, 8], rt0 in [0, 7]"
    expected = (
        "(d0)[s0, s1]{rt0, rt1} -> (d0 * 10 + s1 * 10 + rt1 * 10 + s0, rt0), domain: d0 in [0, 3], "
        "s0 in [0, 8], s1 in [0, 1], rt0 in [0, 7], rt1 in [0, 5]"
    )
    assert composed(first, second) == expected


def test_results_outside_the_second_s_domain_are_cut_off() -> None:
    """A result has to lie in the bounds of the dimension that it stands for."""
    first = "(d0)[s0] -> (d0 + s0 - 1), domain: d0 in [0, 15], s0 in [0, 2]"
    second = "(d0) -> (d0), domain: d0 in [0, 15]"
    expected = "(d0)[s0] -> (d0 + s0 - 1), domain: d0 in [0, 15], s0 in [0, 2], d0 + s0 in [1, 16]"
    assert composed(first, second) == expected


def test_nothing_meets_is_known_empty() -> None:
    """A composition none of whose points are in both domains is known to be empty; undefined stays undefined."""
    assert composed("(d0) -> (d0), domain: d0 in [0, 3]", "(d0) -> (d0), domain: d0 in [4, 9]") == "KNOWN EMPTY"
    assert compose(IndexingMap.undefined(), IndexingMap(())).is_undefined


def test_unused_symbols_go_with_their_constraints() -> None:
    """A symbol that no result needs goes, with constraints on such symbols alone; others keep the symbols they name."""
    domain = "domain: d0 in [0, 9], s0 in [0, 9], s1 in [0, 9], s2 in [0, 9], d0 + s1 in [0, 12], s2 mod 2 in [0, 0]"
    short = without_unused_symbols(IndexingMap.parse(f"(d0)[s0, s1, s2] -> (d0), {domain}"))
    assert str(short) == "(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 9], d0 + s0 in [0, 12]"


def test_unused_dims_go() -> None:
    """A dimension in neither results nor constraints goes, and the others are numbered anew."""
    map_ = IndexingMap.parse(
        "(d0, d1, d2) -> (d2), domain: d0 in [0, 1], d1 in [0, 9], d2 in [0, 5], d0 * 2 + d2 in [0, 5]"
    )
    assert (
        str(without_unused_dims(map_)) == "(d0, d1) -> (d1), domain: d0 in [0, 1], d1 in [0, 5], d0 * 2 + d1 in [0, 5]"
    )


def test_symbols_are_rescaled_by_their_remainders() -> None:
    """A symbol whose remainder is fixed counts its values one by one instead."""
    map_ = IndexingMap.parse("(d0)[s0] -> (d0 + s0), domain: d0 in [0, 3], s0 in [0, 10], s0 mod 3 in [1, 1]")
    assert str(rescale_symbols(map_)) == "(d0)[s0] -> (s0 * 3 + d0 + 1), domain: d0 in [0, 3], s0 in [0, 3]"


def test_values() -> None:
    """A map gives values for integers and arrays alike, and says whether a point is in its domain."""
    map_ = IndexingMap.parse(
        "(d0)[s0] -> (d0 * 2 + s0, max(d0, s0)), domain: d0 in [0, 3], s0 in [0, 1], d0 + s0 in [0, 3]"
    )
    assert map_.evaluate([3], [1]) == [7, 3]
    assert map_.holds([2], [1])
    assert not map_.holds([3], [1])
    with pytest.raises(VerificationError, match="1 variables s, 0 values"):
        map_.evaluate([1])
    with pytest.raises(VerificationError, match="no values"):
        IndexingMap.undefined().evaluate([])


def test_simplifying_a_composition_again_drops_what_new_bounds_imply() -> None:
    """One round is what a composition gets; another one may drop constraints that cut bounds imply."""
    constraints = "d0 + s0 in [0, 12], d0 mod 8 in [0, 0], s0 mod 4 in [0, 0]"
    text = f"(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 5], {constraints}"
    assert "d0 + s0" not in str(simplify(IndexingMap.parse(text)))
    identity = IndexingMap.parse("(d0) -> (d0), domain: d0 in [0, 5]")
    assert "d0 + s0" in str(compose(IndexingMap.parse(text), identity))

"""Composition and simplification of indexing maps."""

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


def simplified(text: str) -> str:
    """The text of a map after simplification."""
    return str(simplify(IndexingMap.parse(text)))


def results(expression: str, **bounds: int) -> str:
    """The text of a simplified expression over variables from 0 to their upper bounds."""
    names = ", ".join(bounds)
    domain = ", ".join(f"{name} in [0, {upper}]" for name, upper in bounds.items())
    return simplified(f"({names}) -> ({expression}), domain: {domain}").split("-> (", 1)[1].split("), domain")[0]


@pytest.mark.parametrize(
    ("expression", "bounds", "expected"),
    [
        ("a + a", {"a": 9}, "a * 2"),
        ("3 + a", {"a": 9}, "a + 3"),
        ("(a + b) * 4 - a * 4", {"a": 9, "b": 9}, "b * 4"),
        ("(a mod 4) + (a / 4) * 4", {"a": 30}, "a"),
        ("(a * 6) / 4", {"a": 9}, "(a * 3) / 2"),
        ("(a * 4) mod 8", {"a": 9}, "(a mod 2) * 4"),
        ("(a mod 12) mod 4", {"a": 30}, "a mod 4"),
        ("(a * 4 + b) mod 4", {"a": 9, "b": 9}, "b mod 4"),
        ("(a * 4 + 3) / 4", {"a": 9}, "a"),
        ("a ceildiv 4", {"a": 30}, "(a + 3) / 4"),
        ("a mod 10", {"a": 9}, "a"),
        ("a / 10", {"a": 9}, "0"),
        ("(a * 10 + b) / 20", {"a": 9, "b": 9}, "a / 2"),
        ("(a * 8 + b) mod 32", {"a": 99, "b": 7}, "(a mod 4) * 8 + b"),
        ("(a mod 60) / 12", {"a": 999}, "(a / 12) mod 5"),
        ("(a / 3) / 4", {"a": 99}, "a / 12"),
        ("(a * 2 + b / 3) / 5", {"a": 99, "b": 99}, "(a * 6 + b) / 15"),
        ("a - (a / 5) * 5", {"a": 24}, "a mod 5"),
        ("a * 9 - (a / 5) * 20", {"a": 24}, "(a mod 5) * 4 + a * 5"),
        ("min(a, 20)", {"a": 9}, "a"),
        ("max(a, b + 9)", {"a": 9, "b": 3}, "b + 9"),
        ("a * 3 + b", {"a": 0, "b": 9}, "b"),
    ],
)
def test_expressions(expression: str, bounds: dict[str, int], expected: str) -> None:
    """Each rule shortens what it is for."""
    assert results(expression, **bounds) == expected


@pytest.mark.parametrize(
    ("constraint", "bounds"),
    [
        ("a + 5 in [10, 20]", "a in [5, 15]"),
        ("a * 7 in [15, 50]", "a in [3, 7]"),
        ("a * -4 in [-21, -6]", "a in [2, 5]"),
        ("a / 4 in [1, 2]", "a in [4, 11]"),
        ("a / -3 in [-11, -5]", "a in [13, 33]"),
        ("a in [7, 9]", "a in [7, 9]"),
        ("a mod 1 in [0, 0]", "a in [0, 99]"),
        ("a in [0, 100]", "a in [0, 99]"),
    ],
)
def test_constraints_become_bounds(constraint: str, bounds: str) -> None:
    """A constraint that comes down to one variable cuts its bounds; division rounds down, by negative numbers too."""
    assert simplified(f"(a) -> (a), domain: a in [0, 99], {constraint}") == f"(a) -> (a), domain: {bounds}"


def test_remainders_are_merged() -> None:
    """Constraints on remainders of one variable become one, and the bounds go to the first and last hit."""
    text = "(a) -> (a), domain: a in [0, 40], a mod 4 in [1, 1], a mod 6 in [3, 3]"
    assert simplified(text) == "(a) -> (a), domain: a in [9, 33], a mod 12 in [9, 9]"


@pytest.mark.parametrize(
    "constraint", ["a mod 4 in [1, 1], a mod 2 in [0, 0]", "a + 1 in [30, 40]", "a mod 4 in [5, 6]", "3 in [0, 1]"]
)
def test_what_cannot_hold_is_known_empty(constraint: str) -> None:
    """A map whose constraints exclude each other, or all points, is known to be empty."""
    assert simplified(f"(a) -> (a), domain: a in [0, 9], {constraint}") == "KNOWN EMPTY"


def test_points_may_stay_variables() -> None:
    """Variables with one value become that value, unless asked not to."""
    map_ = IndexingMap.parse("(a, b) -> (a * 8 + b), domain: a in [0, 0], b in [0, 7]")
    assert str(simplify(map_)).startswith("(a, b) -> (b)")
    assert str(simplify(map_, fold_points=False)).startswith("(a, b) -> (a * 8 + b)")


def test_a_constraint_on_an_expression_bounds_it() -> None:
    """Where a result contains what a constraint is on, the constraint's interval counts."""
    text = "(a, b) -> ((a * 10 + b * 7) mod 30), domain: a in [0, 9], b in [0, 9], a * 10 + b * 7 in [0, 29]"
    assert simplified(text).startswith("(a, b) -> (a * 10 + b * 7), domain")


def test_simplifying_keeps_undefined_maps() -> None:
    """An undefined map stays undefined."""
    assert simplify(IndexingMap.undefined()).is_undefined

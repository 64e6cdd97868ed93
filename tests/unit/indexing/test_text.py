"""The text of indexing maps."""

from __future__ import annotations

import pytest

from shardy_py.errors import ParseError
from shardy_py.indexing import Binary, Bound, Constant, IndexingMap, Interval, dim, symbol

DOMAIN = "domain: d0 in [0, 9], d1 in [0, 9], d2 in [0, 9]"


def printed(expression: str, spelling: str = "/") -> str:
    """The text of an expression after it was read."""
    map_ = IndexingMap.parse(f"(d0, d1, d2) -> ({expression}), {DOMAIN}")
    return map_.print(spelling=spelling).split("-> (", 1)[1].split("), domain")[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d0 + d1 * 2", "d0 + d1 * 2"),
        ("(d0 + d1) * 2", "(d0 + d1) * 2"),
        ("d0 mod 4 mod 3", "d0 mod 4 mod 3"),
        ("(d0 mod 4) / 3", "(d0 mod 4) / 3"),
        ("d0 floordiv 4", "d0 / 4"),
        ("d0 - d1 * 3 - 5", "d0 - d1 * 3 - 5"),
        ("-d0 mod 2", "-d0 mod 2"),
        ("-(d0 + d1)", "-(d0 + d1)"),
        ("d0 - (d1 + d2)", "d0 - (d1 + d2)"),
        ("d0 / (d1 / 2)", "d0 / (d1 / 2)"),
        ("d0 ceildiv 3", "d0 ceildiv 3"),
        ("min(d0, max(d1, 3)) * 2", "min(d0, max(d1, 3)) * 2"),
        ("--d0", "d0"),
        ("d0 * -4", "d0 * -4"),
        ("0 * -1", "0 * -1"),
        ("d0 + 0 * -1", "d0 + 0 * -1"),
        ("d0 + (-1 + d1)", "d0 - 1 + d1"),
        ("d0 + -(d1 * -2)", "d0 + -(d1 * -2)"),
    ],
)
def test_expressions_print_with_the_fewest_parentheses(text: str, expected: str) -> None:
    """An expression prints with those parentheses only that keep its tree."""
    assert printed(text) == expected


def test_the_document_s_spelling_of_a_division() -> None:
    """The division is written as a word on request, with the same parentheses."""
    assert printed("(d0 / 2) mod 4", "floordiv") == "(d0 floordiv 2) mod 4"


def test_names_are_kept() -> None:
    """Variables may have any names; those that are the default ones are not stored."""
    text = "(th_x, d1)[v]{rt0} -> (th_x + v + rt0), domain: th_x in [0, 127], d1 in [0, 0], v in [0, 3], rt0 in [0, 1]"
    map_ = IndexingMap.parse(text)
    assert str(map_) == text
    assert [bound.name for bound in map_.dims] == ["th_x", ""]


def test_an_attribute_in_several_strings_is_read() -> None:
    """The attribute of MLIR is read, also where its text is cut into adjacent strings."""
    text = '#xla_gpu.indexing_map<"(d0) -> (d0 floordiv 2), " "domain: d0 in [0, 9]">'
    assert IndexingMap.parse(text) == IndexingMap((Binary("/", dim(0), Constant(2)),), (Bound(Interval(0, 9)),))


def test_a_map_without_variables_has_no_domain() -> None:
    """A map of a scalar is just two empty lists."""
    assert str(IndexingMap(())) == "() -> ()"
    assert IndexingMap.parse("() -> ()") == IndexingMap(())


def test_states() -> None:
    """Maps that are known to be empty or undefined print as these words."""
    assert str(IndexingMap((dim(0),), (Bound(Interval(3, 2)),))) == "KNOWN EMPTY"
    assert str(IndexingMap.undefined()) == "UNDEFINED"
    assert IndexingMap.parse("UNDEFINED").is_undefined
    assert IndexingMap.parse("KNOWN EMPTY").is_known_empty


def test_constraints_are_sorted_by_their_text() -> None:
    """The order in which constraints are given does not matter."""
    single = (Binary("+", dim(0), symbol(0)), Interval(0, 5))
    other = (Binary("mod", dim(0), Constant(2)), Interval(0, 0))
    bounds = {"dims": (Bound(Interval(0, 9)),), "ranges": (Bound(Interval(0, 3)),)}
    first = IndexingMap((dim(0),), **bounds).with_constraints([single, other])
    assert first == IndexingMap((dim(0),), **bounds).with_constraints([other, single])
    assert str(first).endswith("d0 + s0 in [0, 5], d0 mod 2 in [0, 0]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(d0) -> (d1), domain: d0 in [0, 1]", "'d1' is not a variable"),
        ("(d0, d0) -> (d0), domain: d0 in [0, 1]", "the name 'd0' stands twice"),
        ("(d0) -> (d0)", "the domain does not bound 'd0'"),
        ("(d0) -> (d0 +), domain: d0 in [0, 1]", "an expression is expected"),
        ("(d0) -> (d0), domain: d0 in [0, 1] more", "the map has ended here"),
        ("(d0) -> (d0), domain: d0 in [0, x]", "an integer is expected"),
        (f"(d0) -> ({'9' * 50}), domain: d0 in [0, 1]", "integers have at most 40 digits"),
        (f"(d0) -> ({'(' * 300}d0{')' * 300}), domain: d0 in [0, 1]", "nested more than"),
        ("(d0 -> d0", "',' is expected"),
        ("", "'->' is expected"),
        ("(1) -> (1)", "a name is expected"),
        ("(d0) -> (d0 ? 1), domain: d0 in [0, 1]", "',' is expected"),
    ],
)
def test_other_text_is_refused(text: str, message: str) -> None:
    """Text that is no map is an error that says what is wrong and where."""
    with pytest.raises(ParseError, match="malformed-indexing-map") as error:
        IndexingMap.parse(text)
    assert message in str(error.value)
    assert message in str(error.value) or message in error.value.diagnostics[0].message

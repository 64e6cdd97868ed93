"""Text: what is accepted beyond the printed form, and errors that point at the place."""

import pytest

from shardy_py.errors import ParseError
from shardy_py.sharding import (
    format_attribute,
    parse_attribute,
    parse_dim_sharding,
    parse_mesh,
    parse_op_sharding_rule,
    parse_tensor_sharding,
)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ('#sdy.sharding< @mesh ,[ {"x" , ? } p1 ] // why\n>', '#sdy.sharding<@mesh, [{"x", ?}p1]>'),
        ('#sdy.sharding<@"mesh", []>', "#sdy.sharding<@mesh, []>"),
        (
            '#sdy.sharding<@m, [{}], unreduced={"y"}, replicated={"x"}>',
            '#sdy.sharding<@m, [{}], replicated={"x"}, unreduced={"y"}>',
        ),
        ('#sdy.sharding<@m, [{}], unreduced{"y"}>', '#sdy.sharding<@m, [{}], unreduced={"y"}>'),
        ('#sdy.sharding<@m, [{}], unreduced=sum{"y"}>', '#sdy.sharding<@m, [{}], unreduced={"y"}>'),
        ('#sdy.sharding<@m, [{}], unreduced=max{"y"}>', '#sdy.sharding<@m, [{}], unreduced=max{"y"}>'),
        ('#sdy.mesh<["x"=0x4]>', '#sdy.mesh<["x"=4]>'),
        ('#sdy.mesh<["x"=2], device_ids=[0, 1]>', '#sdy.mesh<["x"=2]>'),
        ('#sdy<mesh<["x"=2]>>', '#sdy.mesh<["x"=2]>'),
        ("#sdy.op_sharding_rule<([i])->([i]) {i=2} reduction={} >", "#sdy.op_sharding_rule<([i])->([i]) {i=2}>"),
        ('#sdy.sharding<mesh<["x"=2], device_ids=[1, 0]>, [{"x"}]>', None),
        ('#sdy.sharding_per_value<[<@m, [{"x":(1)2}]>, <@m, []>]>', None),
        ("#sdy.sharding_per_value<[]>", None),
        ('#sdy<manual_axes{"x", "y"}>', None),
        ("#sdy<manual_axes{}>", None),
        ('#sdy<axis_ref_list{"x", "y":(1)2}>', None),
        ('#sdy<list_of_axis_ref_lists[{"x"}, {}]>', None),
        ('#sdy<all_to_all_param_list[{"x"}: 0->2, {"y"}: 1->3]>', None),
        (
            "#sdy.op_sharding_rule<([ijz_1, z], [])->([z_12]) {i=2} permutation={i} blocked_propagation={i}, custom>",
            None,
        ),
    ],
)
def test_accepted_forms(text: str, printed: str | None) -> None:
    """What MLIR accepts parses, and prints in MLIR's own form."""
    value = parse_attribute(text)
    assert format_attribute(value) == (printed or text)


@pytest.mark.parametrize(
    ("text", "column", "token", "expected"),
    [
        ('<@mesh, [{"x",}]>', 15, "'}'", "an axis name in double quotes"),
        ("<@mesh, [{?,}]>", 12, "','", "'}'"),
        ('<@mesh, [{"x" "y"}]>', 15, "'\"y\"'", "',' or '}'"),
        ('<@mesh, [{"x"}', 15, "the end of the text", "']' or ','"),
        ('<@mesh, [{"x]>', 11, "'\"'", "an axis name"),
        ('<@mesh, [{"x":2}]>', 15, "'2'", "'('"),
        ('<@mesh, [{"x":(a)2}]>', 16, "'a'", "the pre-size of a sub-axis, an integer"),
        ('<@mesh, [{"x"}phigh]>', 15, "'phigh'", "a priority in the form p<number>"),
        ('<@mesh, [{"x"}p01]>', 15, "'p01'", "without leading zeros"),
        ('<@mesh, [{"x"}p9223372036854775808]>', 15, "'p9223372036854775808'", "63 bits"),
        ("<@mesh, [], replicated={}>", 25, "'}'", "an axis name"),
        ('<@mesh, [], replicated={"x"}, replicated={"y"}>', 31, "'replicated'", "each at most once"),
        ("<@mesh, [], sharded={}>", 13, "'sharded'", "'replicated' or 'unreduced'"),
        ("<@1a, []>", 2, "'@'", "a mesh name"),
        ("<mesh, []>", 6, "','", "'<'"),
        ("<@mesh>", 7, "'>'", "','"),
        ("<@mesh, []> @x", 13, "'@x'", "the end of the text"),
        ('<@mesh, [{"x\\q"}]>', 11, "'\"x\\q\"'", "escapes"),
        ("", 1, "the end of the text", "'<'"),
    ],
)
def test_errors_in_shardings_point_at_the_place(text: str, column: int, token: str, expected: str) -> None:
    """An error names the column, what stands there and what was expected."""
    with pytest.raises(ParseError) as caught:
        parse_tensor_sharding(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.location == f"1:{column}"
    assert diagnostic.message.startswith(f"column {column}: expected ")
    assert f"but found {token} in: " in diagnostic.message
    assert expected in diagnostic.message


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("<()->([i])>", "syntax", "'['"),
        ("<([i])->([i]) {j=2}>", "factor-order", "factor symbol 'i'"),
        ("<([i])->([i]) {i=2, k=2}>", "factor-order", "factor symbol 'j'"),
        ("<([a])->([i])>", "factor-symbol", "factor symbols"),
        ("<([z_])->([i])>", "factor-symbol", "factor symbols"),
        ("<([z_0])->([i])>", "factor-symbol", "factor symbols"),
        ("<([i_])->([i])>", "factor-symbol", "factor symbols"),
        ("<([i", "syntax", "']' or ','"),
        ("<([", "factor-symbol", "factor symbols"),
        ("<([i])->([i]) {i=2} reduction={ij}>", "factor-symbol", "a single factor symbol"),
        ("<([i])->([i]) {i=2} permutation={i} reduction={i}>", "syntax", "'>'"),
        ("<([i])->([i]) {i=2}, customized>", "syntax", "'custom'"),
        ("<([i])->([i]) {i=9223372036854775808}>", "syntax", "63 bits"),
    ],
)
def test_errors_in_rules(text: str, code: str, expected: str) -> None:
    """A rule that is not well-formed is refused with a code and what was expected."""
    with pytest.raises(ParseError) as caught:
        parse_op_sharding_rule(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert expected in diagnostic.message


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ('#sdy.sharding<@mesh, [{"x"}{"y"}]>', 28),
        ('#sdy.sharding<@mesh, [{"x"}, {"y"},]>', 36),
        ('#sdy.sharding<@mesh, [{"x"}, {y}]>', 31),
        ('#sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{x}]>]>', 54),
        ("#sdy.sharding_per_value<[<@mesh, []><@mesh, []>]>", 37),
    ],
)
def test_the_column_counts_in_the_whole_attribute(text: str, column: int) -> None:
    """An error deep in an attribute that is nearly in the printed form still points at its place."""
    with pytest.raises(ParseError) as caught:
        parse_attribute(text)
    assert caught.value.diagnostics[0].location == f"1:{column}"


@pytest.mark.parametrize("text", ["#sdy.other<>", "#sdy<other>"])
def test_other_attributes_are_named_unknown(text: str) -> None:
    """An attribute outside the vocabulary has a code of its own, so that callers can keep its text."""
    with pytest.raises(ParseError) as caught:
        parse_attribute(text)
    assert caught.value.diagnostics[0].code == "unknown-attribute"


@pytest.mark.parametrize("text", ["#stablehlo.dot<>", "@mesh", '#sdy.manual_axes<{"x"}>'])
def test_text_that_is_no_sdy_attribute_is_refused(text: str) -> None:
    """Only the forms MLIR prints are attributes of the dialect."""
    with pytest.raises(ParseError, match="expected"):
        parse_attribute(text)


def test_a_value_without_attribute_form_cannot_be_formatted() -> None:
    """Formatting says which value it was."""
    with pytest.raises(ParseError, match="a str is not an #sdy attribute: text"):
        format_attribute("text")


def test_the_line_counts_in_longer_text() -> None:
    """The location has the line, and the column within it."""
    with pytest.raises(ParseError) as caught:
        parse_mesh('<["x"=2,\n  "y"=]>')
    assert caught.value.diagnostics[0].location == "2:7"


def test_long_text_is_cut_around_the_place() -> None:
    """The message quotes the neighbourhood of the problem, not a whole rule."""
    text = "{" + ", ".join(f'"axis{index}"' for index in range(100)) + ",}"
    with pytest.raises(ParseError) as caught:
        parse_dim_sharding(text)
    message = caught.value.diagnostics[0].message
    assert len(message) < 300
    assert '"axis99",}' in message

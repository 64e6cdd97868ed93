"""Rules written as text: what they mean, and what is said about those that mean nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from shardy_py.errors import RuleError
from shardy_py.sharding.einsum import rule
from shardy_py.sharding.verify_rule import verify_op_sharding_rule

Shapes = list[tuple[int, ...]]

MEANINGS = [
    ("i k, k j -> i j", {"reduction": ("k",)}, [(8, 32), (32, 16)], [(8, 16)]),
    ("... rows, ... cols -> ... rows cols", {}, [(2, 3, 8), (2, 3, 5)], [(2, 3, 8, 5)]),
    ("... i -> ... i", {}, [(8,)], [(8,)]),
    ("... i, ...1 j -> ... i j", {}, [(2, 8), (7, 6, 5)], [(2, 8, 5)]),
    ("(a b) c -> a (b c)", {"b": 4}, [(8, 3)], [(2, 12)]),
    ("i, -> i", {}, [(8,), ()], [(8,)]),
    ("i -> i, i", {}, [(8,)], [(8,), (8,)]),
    ("i j -> i j", {"need_replication": ("j",)}, [(8, 6)], [(8, 4)]),
    ("b (h g) s, b h t -> b (h g) s t", {"g": 2, "permutation": ("s", "t")}, [(4, 6, 5), (4, 3, 7)], [(4, 6, 5, 7)]),
]


def _bound(text: str, options: dict[str, object], operands: Shapes, results: Shapes) -> str:
    return str(rule(text, **options).bind(operands, results))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "options", "operands", "results", "expected"),
    [
        (*MEANINGS[0], "<([i, j], [j, k])->([i, k]) {i=8, j=32, k=16} reduction={j}>"),
        (*MEANINGS[1], "<([i, j, k], [i, j, l])->([i, j, k, l]) {i=2, j=3, k=8, l=5}>"),
        (*MEANINGS[2], "<([i])->([i]) {i=8}>"),
        (*MEANINGS[4], "<([ij, k])->([i, jk]) {i=2, j=4, k=3}>"),
        (*MEANINGS[5], "<([i], [])->([i]) {i=8}>"),
        (*MEANINGS[7], "<([i, j])->([i, j]) {i=8, j=4} need_replication={j}>"),
    ],
)
def test_a_text_is_the_rule_it_says(
    text: str, options: dict[str, object], operands: Shapes, results: Shapes, expected: str
) -> None:
    """Factors are numbered as they occur, and their sizes come from the shapes."""
    assert _bound(text, options, operands, results) == expected


@pytest.mark.parametrize(
    ("text", "options", "operands", "results", "expected"),
    [
        (
            "k ... -> ...",
            {"reduction": "k:max"},
            [(8, 2, 3)],
            [(2, 3)],
            "<([i, j, k])->([j, k]) {i=8, j=2, k=3} reduction=max{i}>",
        ),
        (
            "b c ..., c -> b c ...",
            {},
            [(4, 6, 5, 7), (6,)],
            [(4, 6, 5, 7)],
            "<([i, j, k, l], [j])->([i, j, k, l]) {i=4, j=6, k=5, l=7}>",
        ),
        ("b ... c -> b c ...", {}, [(4, 5, 6)], [(4, 6, 5)], "<([i, j, k])->([i, k, j]) {i=4, j=5, k=6}>"),
        (
            "i ... j, ...1 j -> ... i",
            {"reduction": "j"},
            [(2, 3), (5, 3)],
            [(2,)],
            "<([i, j], [k, j])->([i]) {i=2, j=3, k=5} reduction={j}>",
        ),
        (
            "(a b) ... -> a ... b",
            {"a": 2, "permutation": "..."},
            [(6, 5)],
            [(2, 5, 3)],
            "<([ij, k])->([i, k, j]) {i=2, j=3, k=5} permutation={k}>",
        ),
    ],
)
def test_an_ellipsis_stands_anywhere(
    text: str, options: dict[str, object], operands: Shapes, results: Shapes, expected: str
) -> None:
    """It stands for the dimensions between those before it and those after it, possibly none."""
    assert _bound(text, options, operands, results) == expected


@pytest.mark.parametrize(("text", "options", "operands", "results"), MEANINGS)
def test_jax_reads_the_text_alike(text: str, options: dict[str, object], operands: Shapes, results: Shapes) -> None:
    """JAX makes the same rule of the same text, but for calling it custom."""
    jax_rules = pytest.importorskip("jax._src.custom_partitioning_sharding_rule")
    from jax._src.interpreters import mlir as jax_mlir
    from jaxlib.mlir import ir

    suffixed = {f"{key}_factors" if isinstance(value, tuple) else key: value for key, value in options.items()}
    with jax_mlir.make_ir_context(), ir.Location.unknown():
        types = [
            [ir.RankedTensorType.get(shape, ir.F32Type.get()) for shape in shapes] for shapes in (operands, results)
        ]
        theirs = str(jax_rules.sdy_sharding_rule_to_mlir(jax_rules.str_to_sdy_sharding_rule(text, **suffixed), *types))
    assert theirs.removeprefix("#sdy.op_sharding_rule").replace(", custom>", ">") == _bound(
        text, options, operands, results
    )


@pytest.mark.parametrize(("text", "options", "operands", "results"), MEANINGS)
def test_rules_are_sound(text: str, options: dict[str, object], operands: Shapes, results: Shapes) -> None:
    """What a text is bound to keeps all invariants of rules."""
    bound = rule(text, **options).bind(operands, results)  # type: ignore[arg-type]
    assert verify_op_sharding_rule(bound, operands, results) == []


def test_an_op_may_have_no_operands_or_no_results() -> None:
    """Nothing on one side of the arrow is no tensor where the op has none there, and one scalar where it has one."""
    assert str(rule("-> i j, i").bind([], [(8, 4), (8,)])) == "<()->([i, j], [i]) {i=8, j=4}>"
    assert str(rule("-> i j").bind([()], [(8, 4)])) == "<([])->([i, j]) {i=8, j=4}>"
    assert str(rule("i j, i ->").bind([(8, 4), (8,)], [])) == "<([i, j], [i])->() {i=8, j=4}>"
    assert not rule("-> i j").bind([], [(8, 4)]).may_stand_on_op
    with pytest.raises(RuleError, match="the rule has 1 operand, the op 2"):
        rule("-> i").bind([(), ()], [(8,)])
    with pytest.raises(RuleError, match="the rule has 2 operands, the op 0"):
        rule(", -> i").bind([], [(8,)])


def test_a_factor_of_size_one_leaves_its_compound() -> None:
    """As many heads for keys as for queries: the group has size 1, and the rule does without it."""
    spec = rule("b (h g) s, b h t -> b (h g) s t", g=1)
    bound = spec.bind([(4, 6, 5), (4, 6, 7)], [(4, 6, 5, 7)])
    assert str(bound) == "<([i, j, k], [i, j, l])->([i, j, k, l]) {i=4, j=6, k=5, l=7}>"
    assert verify_op_sharding_rule(bound) == []


def test_one_size_of_a_compound_may_be_left_out() -> None:
    """The shape and the other sizes of a compound tell the last one, from compound to compound."""
    spec = rule("(a b), (a c) -> (a b c)", b=4)
    assert spec.bind([(8,), (6,)], [(24,)]).factor_sizes == (2, 4, 3)


def test_equal_texts_are_one_rule() -> None:
    """Reading a text again and binding it again gives the objects of the first time."""
    first, second = rule("i j -> j i"), rule("i j -> j i")
    assert first is second
    assert first.bind([(2, 3)], [(3, 2)]) is second.bind([[2, 3]], [[3, 2]])  # type: ignore[list-item]


def test_names_of_kinds_may_be_one_text() -> None:
    """Names of several letters are not taken apart."""
    assert rule("rows k, k cols -> rows cols", reduction="k").reduction == ("k",)
    assert rule("row col -> a", reduction="row, col").reduction == ("row", "col")


@pytest.mark.parametrize(
    ("text", "options", "code", "column"),
    [
        ("i j", {}, "rule-syntax", 3),
        ("i -> i -> i", {}, "rule-syntax", 7),
        ("i $ -> i", {}, "rule-syntax", 2),
        ("i .. -> i", {}, "rule-syntax", 2),
        ("i 2 -> i", {}, "rule-syntax", 2),
        ("i _ -> i", {}, "rule-syntax", 2),
        ("... i ... -> i", {}, "rule-syntax", 6),
        ("i (j ...) -> i", {}, "rule-syntax", 5),
        ("(i) j -> i", {}, "rule-syntax", 0),
        ("i (j k -> i", {}, "rule-syntax", 2),
        ("i j) -> i", {}, "rule-syntax", 3),
        ("(i (j k)) -> i", {}, "rule-syntax", 3),
        ("i j i -> j", {}, "duplicate-factor", 4),
        ("(i j) i -> j", {}, "duplicate-factor", 6),
        ("(i j) -> (i j)", {}, "unknown-size", 1),
        ("i k -> i k", {"reduction": ("k",)}, "factor-reduction", 9),
        ("i -> i", {"reduction": ("k",)}, "unknown-factor", None),
        ("i -> i", {"k": 3}, "unknown-factor", None),
        ("i -> i", {"i": 0}, "factor-size", 0),
        ("i -> i", {"i": "two"}, "factor-size", None),
        ("i -> i", {"permutation": ("i",), "need_replication": ("i",)}, "factor-kinds", None),
        ("i -> i", {"blocked": ("i", "i")}, "factor-kinds", None),
    ],
)
def test_a_wrong_text_is_refused_at_once(text: str, options: dict[str, object], code: str, column: int | None) -> None:
    """What no shapes could make right is an error that shows the text and the place."""
    with pytest.raises(RuleError) as caught:
        rule(text, **options)  # type: ignore[arg-type]
    item = caught.value.diagnostics[0]
    assert item.code == code
    if column is not None:
        assert item.excerpt == f"{text}\n{' ' * column}^"
        assert f"\n    {text}\n" in str(caught.value)


@pytest.mark.parametrize(
    ("operands", "results", "code", "column", "message"),
    [
        ([(4, 8)], [(4, 8)], "rule-arity", None, "the rule has 2 operands, the op 1"),
        ([(4, 8), (8, 6)], [], "rule-arity", None, "the rule has 1 result, the op 0"),
        ([(4, 8, 2), (8, 6)], [(4, 6)], "rule-rank", 0, "operand 0 has rank 3, in the rule 2"),
        ([(4, 8), (8,)], [(4, 6)], "rule-rank", 5, "operand 1 has rank 1, in the rule 2"),
        ([(4, 8), (7, 6)], [(4, 6)], "rule-size", 5, "factor k has size 8 in operand 0, but 7 in operand 1"),
        ([(4, 8), (8, 6)], [(4, 5)], "rule-size", 14, "factor j has size 6 in operand 1, but 5 in result"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    operands: Shapes, results: Shapes, code: str, column: int | None, message: str
) -> None:
    """The error names the tensors and shows text, place and shapes."""
    with pytest.raises(RuleError) as caught:
        rule("i k, k j -> i j", reduction=("k",)).bind(operands, results)
    item = caught.value.diagnostics[0]
    assert (item.code, item.message) == (code, message)
    lines = item.excerpt.splitlines()
    assert lines[0] == "i k, k j -> i j"
    assert lines[-1] == f"operands {_shown(operands)}; results {_shown(results)}"
    if column is not None:
        assert lines[1] == " " * column + "^"


def _shown(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join("x".join(map(str, shape)) for shape in shapes) or "none"


@pytest.mark.parametrize(
    ("text", "options", "operands", "results"),
    [
        ("(a b) -> a b", {}, [(9,)], [(2, 4)]),
        ("(a b) -> (a b)", {"a": 2}, [(9,)], [(9,)]),
        ("i -> i", {"i": 4}, [(8,)], [(8,)]),
        ("... i -> ... i", {}, [(2, 8)], [(3, 8)]),
        ("... i -> ... i", {}, [(2, 8)], [(8,)]),
        ("... i j -> ...", {}, [(8,)], [()]),
        ("i ... j -> ... i", {}, [(8, 2, 4)], [(3, 8)]),
        ("i ... j -> i", {}, [(8,)], [(8,)]),
    ],
)
def test_compounds_and_ellipses_have_to_fit(
    text: str, options: dict[str, int], operands: Shapes, results: Shapes
) -> None:
    """Products, given sizes and ellipses are checked against the shapes, too."""
    with pytest.raises(RuleError) as caught:
        rule(text, **options).bind(operands, results)
    assert caught.value.diagnostics[0].code in ("rule-size", "rule-rank")


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ({"reduction": None}, "reduction is None, not names of factors"),
        ({"reduction": [None]}, "reduction names None, which is not a factor"),
        ({"reduction": {1: "max"}}, "reduction names 1, which is not a factor"),
        ({"need_replication": 5}, "need_replication is 5, not names of factors"),
        ({"permutation": b"k"}, "permutation is b'k', not names of factors"),
        ({"pass_through": [["k"]]}, r"pass_through names \['k'\], which is not a factor"),
        ({"initial": None}, "initial: None is not the number of an operand"),
        ({"initial": [0, 1.5]}, r"initial: \[0, 1.5\] is not the number of an operand"),
        ({"reduction": {"k": np.array([0, 1])}}, "a reduction cannot combine by"),
    ],
)
def test_marks_of_wrong_types_are_errors(marks, message):
    """A mark that is no list of names, and an operand that is no number, are named."""
    with pytest.raises(RuleError, match=message):
        rule("i k -> i", **marks)


@pytest.mark.parametrize("shapes", [None, 8, [8], ["8x4"], [[[8], 4]]])
def test_shapes_of_wrong_types_are_errors(shapes):
    """What is no tuple of sizes per tensor is an error of the rule, and not of Python."""
    with pytest.raises(RuleError, match="not one tuple of sizes per operand"):
        rule("i k -> i", reduction="k").bind(shapes, [(8,)])


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("", "<([i, j, k], [k, l])->([i, j, l]) {i=2, j=3, k=4, l=5} reduction={k}>"),
        ("... n", "<([i, j, l], [l, k])->([i, j, k]) {i=2, j=3, k=5, l=4} reduction={l}>"),
        ("k", "<([j, k, i], [i, l])->([j, k, l]) {i=4, j=2, k=3, l=5} reduction={i}>"),
    ],
)
def test_the_order_of_factors_may_be_said(order: str, expected: str) -> None:
    """Named factors come first, all dimensions of an ellipsis together; the others follow as the text has them."""
    spec = rule("... k, k n -> ... n", reduction="k", order=order)
    assert str(spec.bind([(2, 3, 4), (4, 5)], [(2, 3, 5)])) == expected


def test_an_order_of_unknown_factors_is_refused() -> None:
    """The error names the factor."""
    with pytest.raises(RuleError, match="order: the rule has no factor 'm'"):
        rule("i -> i", order="m")

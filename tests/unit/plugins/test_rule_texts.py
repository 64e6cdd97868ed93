"""Dialects whose rules are written as texts."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.ir import Builder, tensor
from shardy_py.ir.graph.program import Op


def _op(name: str, operands: list[tuple[int, ...]], result: tuple[int, ...]) -> Op:
    b = Builder()
    with b.function("main", [tensor(*shape) for shape in operands]) as arguments:
        value = b.op(name, list(arguments), [tensor(*result)])
        b.return_(value)
    return value.owner


def _attention() -> sdy.Dialect:
    toy = sdy.Dialect("toy")

    @toy.op("toy.attention")
    def attention(op: Op) -> sdy.RuleSpec:
        group = op.operands[0].type.shape[1] // op.operands[1].type.shape[1]
        return sdy.rule("b (h g) s d, b h t d, b h t d -> b (h g) s d", g=group, reduction=("t",))

    return toy


def test_a_text_is_all_an_op_needs() -> None:
    """A rule given as a text with its marks is the rule of the op."""
    toy = sdy.Dialect("toy")
    toy.op("toy.matmul", rule="i k, k j -> i j", reduction=("k",))
    rule = sdy.Registry.of([toy]).get_sharding_rule(_op("toy.matmul", [(8, 4), (4, 2)], (8, 2)))
    assert str(rule) == "<([i, j], [j, k])->([i, k]) {i=8, j=4, k=2} reduction={j}>"


def test_a_rule_function_may_return_a_text() -> None:
    """A function chooses sizes by the op, and a rule text says the rest."""
    op = _op("toy.attention", [(2, 8, 16, 4), (2, 4, 32, 4), (2, 4, 32, 4)], (2, 8, 16, 4))
    rule = sdy.Registry.of([_attention()]).get_sharding_rule(op)
    assert str(rule) == (
        "<([i, jk, l, m], [i, j, n, m], [i, j, n, m])->([i, jk, l, m]) {i=2, j=4, k=2, l=16, m=4, n=32} reduction={n}>"
    )


def test_a_rule_with_sizes_may_be_given_as_a_value() -> None:
    """What `rule` returns is a rule function itself."""
    toy = sdy.Dialect("toy")
    toy.op("toy.split", rule=sdy.rule("(a b) -> a b", b=2))
    rule = sdy.Registry.of([toy]).get_sharding_rule(_op("toy.split", [(8,)], (4, 2)))
    assert str(rule) == "<([ij])->([i, j]) {i=4, j=2}>"


def test_a_mistake_in_a_text_names_the_op_when_it_is_registered() -> None:
    """The error has the op, the text and the place."""
    with pytest.raises(sdy.RuleError) as caught:
        sdy.Dialect("toy").op("toy.matmul", rule="i k, k j -> i k j", reduction=("k",))
    assert str(caught.value) == (
        "error: 'toy.matmul' op: a result has the factor k, which is reduced [factor-reduction]\n"
        "    i k, k j -> i k j\n"
        "                  ^\n"
        "  hint: a reduced factor is gone from every result"
    )


def test_a_text_that_does_not_fit_its_op_names_the_op_and_the_owner() -> None:
    """The error on first use has the op, its place, the text, the shapes and who defined the rule."""
    op = _op("toy.attention", [(2, 9, 16, 4), (2, 4, 32, 4), (2, 4, 32, 4)], (2, 9, 16, 4))
    with pytest.raises(sdy.RuleError) as caught:
        sdy.Registry.of([_attention()]).get_sharding_rule(op)
    (item,) = caught.value.diagnostics
    assert item.op == "toy.attention"
    assert item.hint.startswith("defined by dialect 'toy' at ")
    assert "operands 2x9x16x4, 2x4x32x4, 2x4x32x4; results 2x9x16x4" in item.excerpt


def test_an_elementwise_op_needs_no_rule() -> None:
    """The trait says it all, unless a rule or data-flow edges say otherwise."""
    toy = sdy.Dialect("toy")
    toy.op("toy.add", traits=[sdy.Elementwise])
    toy.op("toy.other")
    toy.op("toy.apart", traits=[sdy.Elementwise], rule=lambda op: None)
    registry = sdy.Registry.of([toy])
    shapes: list[tuple[int, ...]] = [(8, 4), (8, 4)]
    assert str(registry.get_sharding_rule(_op("toy.add", shapes, (8, 4)))) == "<([i, j], [i, j])->([i, j]) {i=8, j=4}>"
    assert registry.get_sharding_rule(_op("toy.other", shapes, (8, 4))) is None
    assert registry.get_sharding_rule(_op("toy.apart", shapes, (8, 4))) is None


def test_marks_belong_to_a_text() -> None:
    """Kinds of factors beside a rule function would be ignored, so they are refused."""
    with pytest.raises(sdy.PluginError, match="reduction goes with a rule given as a text only"):
        sdy.Dialect("toy").op("toy.sum", reduction=("i",))

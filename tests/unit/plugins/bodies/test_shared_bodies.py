"""Scalar bodies on shards: how partial results combine, what padding does, dimensions that stay whole."""

from __future__ import annotations

import numpy as np
import pytest

import shardy_py as sdy
from shardy_py.testing import assert_rule_holds, make_op, run_sharded

ROWS = "(i)[k] -> (i, k)"
PRODUCT = ["(i, j)[k] -> (i, k)", "(i, j)[k] -> (k, j)"]


def registry_of(**definition):
    """Return a registry with one op, ``odd.op``."""
    dialect = sdy.Dialect("odd")
    dialect.op("odd.op", **definition)
    return sdy.Registry.of([dialect])


def rule_of(operands, results, **definition):
    """Return the text of the rule of the op."""
    return str(registry_of(**definition).get_sharding_rule(make_op("odd.op", operands, results)))


def runs(function, operands, result, shardings, *, strict=False, **definition):
    """Run the op on four devices, and return what was found."""
    b = sdy.Builder()
    with b.function("main", operands) as arguments:
        b.return_(b.op("odd.op", list(arguments), [result]))
    registry = registry_of(**definition)
    return run_sharded(
        b.program, {"odd.op": function}, {"a": 4}, in_shardings=shardings, registry=registry, strict=strict
    )


@pytest.mark.parametrize(
    ("body", "dtype", "result", "kind"),
    [
        ("x -> i32(sum(x))", "f32", "i32", "need_replication"),
        ("x -> i32(sum(x))", "i8", "i32", "need_replication"),
        ("x -> f32(sum(x))", "i32", "f32", "need_replication"),
        ("x -> i1(sum(x))", "f32", "i1", "need_replication"),
        ("x -> f32(any(x > 1))", "f32", "f32", "need_replication"),
        ("x -> ui8(max(x))", "i8", "ui8", "need_replication"),
        ("x -> i8(max(x))", "i32", "i8", "need_replication"),
        ("x -> i8(sum(i32(x)))", "i8", "i8", "reduction"),
        ("x -> i32(max(x))", "ui8", "i32", "reduction"),
        ("x -> f32(min(x))", "i32", "f32", "reduction"),
        ("x -> i32(any(x > 1))", "f32", "i32", "reduction"),
        ("x -> f16(sum(f32(x)))", "f16", "f16", "reduction"),
        ("x -> f8E5M2(sum(f32(x)))", "f8E5M2", "f8E5M2", "need_replication"),
        ("x -> max(x)", "f8E5M2", "f8E5M2", "reduction"),
    ],
)
def test_casts_behind_sums(body, dtype, result, kind) -> None:
    """Partial results combine where a cast gives the same of parts and of the whole."""
    actual = rule_of([sdy.tensor(8, 4, dtype=dtype)], [sdy.tensor(8, dtype=result)], indexing=ROWS, emission=body)
    assert actual == f"<([i, j])->([i]) {{i=8, j=4}} {kind}={{j}}>"


@pytest.mark.parametrize(
    ("body", "function", "gathers"),
    [
        ("x -> max(abs(x))", lambda x: np.abs(x).max(1), True),
        ("x -> sum(exp(x))", lambda x: np.exp(x).sum(1), True),
        ("x -> sum(x + 1)", lambda x: (x + 1).sum(1), True),
        ("x -> sum(1 / x)", lambda x: (1 / x).sum(1), True),
        ("x -> min(-x)", lambda x: (-x).min(1), True),
        ("x -> sum(f32(x >= 0))", lambda x: (x >= 0).sum(1).astype(x.dtype), True),
        ("x -> sum(abs(x) * 0.5 + x ** 2)", lambda x: (np.abs(x) / 2 + x * x).sum(1), False),
        ("x -> sum(x if x > 0 else tanh(x))", lambda x: np.where(x > 0, x, np.tanh(x)).sum(1), False),
        ("x -> sum(f32(x > 0))", lambda x: (x > 0).sum(1).astype(x.dtype), False),
        ("x -> max(x)", lambda x: x.max(1), False),
    ],
)
def test_padding_of_reduced_dimensions(body, function, gathers) -> None:
    """Where elements beyond the end would count, the op is gathered; where they are neutral, it is not."""
    run = runs(function, [sdy.tensor(3, 7)], sdy.tensor(3), {0: (None, "a")}, indexing=ROWS, emission=body)
    assert run.ok, run.difference
    assert run.gathered == (("odd.op",) if gathers else ())


def test_expressions_that_count_padding_are_named() -> None:
    """Why an op is gathered is said with the expression in which no value is neutral."""
    definition = {"indexing": ROWS, "emission": "x -> sum(x+exp(x))"}
    operands, shardings = [sdy.tensor(3, 7)], {0: (None, "a")}
    with pytest.raises(sdy.ShardyError, match=r"and no value is neutral in sum\(x \+ exp\(x\)\)"):
        runs(lambda x: (x + np.exp(x)).sum(1), operands, sdy.tensor(3), shardings, strict=True, **definition)


def test_padding_of_products() -> None:
    """The product of two lowest values is the highest one; a scale that nobody masks may be infinite."""
    operands, shardings = [sdy.tensor(3, 7), sdy.tensor(7, 2)], {0: (None, "a")}
    largest = runs(
        lambda x, w: (x[:, :, None] * w[None]).max(1),
        operands,
        sdy.tensor(3, 2),
        shardings,
        indexing=PRODUCT,
        emission="x, w -> max(x * w)",
    )
    assert largest.ok
    assert largest.gathered == ("odd.op",)
    plain = runs(np.matmul, operands, sdy.tensor(3, 2), shardings, indexing=PRODUCT, emission="x, w -> sum(x * w)")
    assert plain.ok
    assert not plain.gathered
    scaled = runs(
        lambda x, s: (x * s[:, None]).sum(1),
        [sdy.tensor(3, 7), sdy.tensor(3)],
        sdy.tensor(3),
        shardings,
        indexing=[ROWS, "(i)[k] -> (i)"],
        emission="x, s -> sum(x * s)",
    )
    assert scaled.ok
    assert scaled.gathered == ("odd.op",)


def test_even_shards_are_not_gathered() -> None:
    """Without padding partial results are combined, whatever a body makes of zeros."""
    run = runs(
        lambda x: np.exp(x).sum(1),
        [sdy.tensor(3, 8)],
        sdy.tensor(3),
        {0: (None, "a")},
        indexing=ROWS,
        emission="x -> sum(exp(x))",
    )
    assert run.ok
    assert run.collectives == ("all_reduce",)


@pytest.mark.parametrize(
    ("body", "function"),
    [
        ("x -> x if d1 <= d0 else 0", np.tril),
        ("x -> x * f32(d0) + f32(d1)", lambda x: x * np.arange(5)[:, None] + np.arange(7)),
    ],
)
@pytest.mark.parametrize("definition", [{"indexing": "(i, j) -> (i, j)"}, {"traits": [sdy.Elementwise]}])
def test_bodies_that_name_their_index(body, function, definition) -> None:
    """A dimension whose index a body names is whole."""
    operands = [sdy.tensor(5, 7)]
    assert "need_replication={i, j}" in rule_of(operands, operands, emission=body, **definition)
    for sharding in [("a", None), (None, "a")]:
        run = runs(function, operands, operands[0], {0: sharding}, emission=body, **definition)
        assert run.ok, run.difference


def test_one_named_dimension() -> None:
    """The other dimensions stay as they are."""
    actual = rule_of([(8, 4)], [(8, 4)], indexing="(i, j) -> (i, j)", emission="x -> x * f32(d1)")
    assert actual == "<([i, j])->([i, j]) {i=8, j=4} need_replication={j}>"


def smallest(b, op):
    """Return the smallest element of a row and its place."""

    def step(at, carried):
        value, place = b.operand(0, at), b.op("arith.index_cast", at[1], dtype="i32")
        is_less = b.op("arith.cmpf", value, carried[0], dtype="i1", predicate="olt")
        pairs = zip((value, place), carried, ("f32", "i32"), strict=True)
        return [b.op("arith.select", is_less, new, old, dtype=dtype) for new, old, dtype in pairs]

    return b.reduce(b.maps[0], [b.constant(float("inf"), "f32"), b.constant(0, "i32")], step)


def counted(b, op):
    """Return the index of the row."""
    return b.op("arith.sitofp", b.op("arith.index_cast", b.indices[0], dtype="i32"), dtype="f32")


def normalized(b, op):
    """Return an element divided by the sum of its row, which is not what the map says."""
    from shardy_py.indexing import IndexingMap, bounds_of, dim, symbol

    rows, columns = op.results[0].type.shape
    row = IndexingMap((dim(0), symbol(0)), bounds_of((rows, columns)), bounds_of((columns,)))
    (total,) = b.reduce(
        row, [b.constant(0, "f32")], lambda at, carried: [b.op("arith.addf", carried[0], b.operand(0, at))]
    )
    return b.op("arith.divf", b.operand(0), total)


def test_functions_that_read_places() -> None:
    """A function that reads its maps' elements keeps all rows apart; one that reads others, or its index, does not."""
    actual = rule_of([(8, 4)], [(8,), sdy.tensor(8, dtype="i32")], indexing=ROWS, emission=smallest)
    assert actual == "<([i, j])->([i], [i]) {i=8, j=4} need_replication={j}>"
    actual = rule_of([(8, 4)], [(8, 4)], indexing="(i, j) -> (i, j)", emission=counted)
    assert actual == "<([i, j])->([i, j]) {i=8, j=4} need_replication={i}>"
    actual = rule_of([(8, 4)], [(8, 4)], indexing="(i, j) -> (i, j)", emission=normalized)
    assert actual == "<([i, j])->([i, j]) {i=8, j=4} need_replication={i, j}>"


def test_a_rule_that_is_given_counts() -> None:
    """A rule of the definition is taken as it is."""
    actual = rule_of([(8, 4)], [(8, 4)], indexing="(i, j) -> (i, j)", emission="x -> x * f32(d1)", rule="i j -> i j")
    assert actual == "<([i, j])->([i, j]) {i=8, j=4}>"


def test_a_function_that_fails_says_nothing() -> None:
    """Nothing is known of the dimensions then."""
    actual = rule_of([(8, 4)], [(8, 4)], indexing="(i, j) -> (i, j)", emission=lambda b, op: 1 / 0)
    assert actual == "<([i, j])->([i, j]) {i=8, j=4} need_replication={i, j}>"


def test_a_diagonal_on_shards() -> None:
    """The part of a diagonal that a device has is not the diagonal of its part."""
    definition = {"indexing": "(i) -> (i, i)", "emission": "x -> x"}
    run = runs(np.diag, [sdy.tensor(7, 7)], sdy.tensor(7), {0: ("a", None)}, **definition)
    assert run.ok, run.difference
    assert_rule_holds("odd.op", np.diag, [(7, 7)], [(7,)], registry=registry_of(**definition))
